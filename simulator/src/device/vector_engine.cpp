// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "vector_engine.h"

namespace sim {

namespace {

// A pattern of ones from bit 0 on is a plain lane count.
bool Leading(uint64_t low, uint64_t high, uint32_t* count) {
    const uint32_t ones =
        static_cast<uint32_t>(__builtin_popcountll(low) + __builtin_popcountll(high));
    const uint64_t wantLow = ones >= 64 ? ~0ull : (1ull << ones) - 1;
    const uint64_t wantHigh = ones <= 64 ? 0 : ones == 128 ? ~0ull : (1ull << (ones - 64)) - 1;
    *count = ones;
    return low == wantLow && high == wantHigh;
}

void UseBits(Core& core, Walk& walk, uint64_t low, uint64_t high) {
    if (walk.lanes < 128) {
        high = 0;
    }
    if (walk.lanes < 64) {
        low &= (1ull << walk.lanes) - 1;
    }
    uint32_t count = 0;
    if (Leading(low, high, &count)) {
        if (count == 0) {
            core.Fail("the mask selects no element");
        }
        walk.active = walk.lastActive = count;
        return;
    }
    walk.bits = true;
    walk.low = low;
    walk.high = high;
    walk.active = walk.lastActive = high != 0 ? 128 - static_cast<uint32_t>(__builtin_clzll(high))
                                              : 64 - static_cast<uint32_t>(__builtin_clzll(low));
}

void UseTotal(Walk& walk, int64_t total) {
    walk.rows = static_cast<uint32_t>((total + walk.lanes - 1) / walk.lanes);
    walk.active = walk.lanes;
    walk.lastActive =
        static_cast<uint32_t>(total - static_cast<int64_t>(walk.rows - 1) * walk.lanes);
    if (walk.rows == 1) {
        walk.active = walk.lastActive;
    }
}

// From a row's start to the end of its last block.
int64_t RowBytes(const Operand& operand, uint32_t active) {
    const int64_t bytes = static_cast<int64_t>(active) * operand.size;
    if (bytes <= kBlockBytes || operand.block == kBlockBytes) {
        return bytes;
    }
    if (operand.block == 0) {
        return kBlockBytes;
    }
    const int64_t before = (bytes - 1) / kBlockBytes;
    return before * operand.block + bytes - before * kBlockBytes;
}

}  // namespace

Walk Resolve(Core& core, const Lanes& lanes, uint32_t elementBytes) {
    Walk walk;
    walk.lanes = kRepeatBytes / elementBytes;
    if (lanes.counted) {
        if (lanes.count < 0 || lanes.count > 196608) {
            core.Fail("%lld elements", static_cast<long long>(lanes.count));
        }
        if (lanes.count > 0) {
            UseTotal(walk, lanes.count);
        }
        core.mask = VectorMask();
        CountRepeats(core, walk);
        return walk;
    }
    walk.rows = lanes.repeats;
    if (walk.rows > 255) {
        core.Fail("repeatTime %u: at most 255", walk.rows);
    }
    if (lanes.setMask) {
        VectorMask mask;
        if (core.counterMode) {
            mask.counter = true;
            mask.low = lanes.bits != nullptr ? lanes.bits[0] : lanes.mask;
            mask.high = 0;
        } else if (lanes.bits != nullptr) {
            mask.bits = true;
            mask.low = lanes.bits[0];
            mask.high = walk.lanes > 64 ? lanes.bits[1] : 0;
        } else {
            if (lanes.mask == 0 || lanes.mask > walk.lanes) {
                core.Fail("mask %llu: it must be in 1..%u for %u byte elements",
                          static_cast<unsigned long long>(lanes.mask), walk.lanes, elementBytes);
            }
            mask.bits = true;
            mask.low = lanes.mask >= 64 ? ~0ull : (1ull << lanes.mask) - 1;
            mask.high = lanes.mask <= 64    ? 0
                        : lanes.mask == 128 ? ~0ull
                                            : (1ull << (lanes.mask - 64)) - 1;
        }
        core.mask = mask;
    }
    if (core.counterMode) {
        walk.rows = 0;
        if (core.mask.low > 196608) {
            core.Fail("counter mode with %llu elements",
                      static_cast<unsigned long long>(core.mask.low));
        }
        if (core.mask.low > 0) {
            UseTotal(walk, static_cast<int64_t>(core.mask.low));
        }
    } else if (walk.rows > 0) {
        UseBits(core, walk, core.mask.low, core.mask.high);
    }
    CountRepeats(core, walk);
    return walk;
}

Operand Bind(Core& core, const Local& local, uint32_t size, Stride stride, const Walk& walk,
             const char* name, uint32_t align) {
    core.CheckSpace(local, Space::Ub, name);
    core.CheckAlign(local, align, name);
    Operand operand;
    operand.size = size;
    operand.block = static_cast<int64_t>(stride.block) * kBlockBytes;
    operand.row = static_cast<int64_t>(stride.repeat) * kBlockBytes;
    if (walk.rows == 0) {
        operand.base = core.Check(local, 0, 0, name);
        return operand;
    }
    // The furthest byte: of the last row, or of the one before, which may have more lanes.
    int64_t end = (walk.rows - 1) * operand.row + RowBytes(operand, walk.lastActive);
    if (walk.lastActive != walk.active && walk.rows > 1) {
        end = std::max(end, (walk.rows - 2) * operand.row + RowBytes(operand, walk.active));
    }
    operand.base = core.Check(local, 0, end, name);
    return operand;
}

namespace {

struct Span {
    int64_t low;
    int64_t high;
    bool Meets(const Span& other) const { return low < other.high && other.low < high; }
};

Span RowSpan(const Operand& operand, const Walk& walk, uint32_t row) {
    const int64_t start = reinterpret_cast<int64_t>(operand.base) + row * operand.row;
    const int64_t bytes = static_cast<int64_t>(walk.ActiveIn(row)) * operand.size;
    const int64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
    return Span{
        start,
        start + (Packed(operand, walk) ? bytes : (blocks - 1) * operand.block + kBlockBytes)};
}

}  // namespace

void CheckOverlap(Core& core, const Walk& walk, const Operand& dst, const Operand& src,
                  bool accumulating) {
    const bool same = dst.base == src.base && dst.block == src.block && dst.size == src.size;
    if (same && dst.row == src.row) {
        if (dst.row != 0 || walk.rows <= 1 || accumulating) {
            return;
        }
        core.Fail("repeat N+1 reads what repeat N wrote (both repeat strides are 0)");
    }
    if (walk.rows == 0) {
        return;
    }
    const Span dstFirst = RowSpan(dst, walk, 0);
    const Span srcFirst = RowSpan(src, walk, 0);
    const Span dstAll{dstFirst.low, RowSpan(dst, walk, walk.rows - 1).high};
    const Span srcAll{srcFirst.low, RowSpan(src, walk, walk.rows - 1).high};
    if (!Span{dstAll.low, std::max(dstAll.high, dstFirst.high)}.Meets(
            Span{srcAll.low, std::max(srcAll.high, srcFirst.high)})) {
        return;
    }
    // Interleaved tiles: rows of one pitch that keep clear of each other.
    if (dst.row == src.row && dst.row > 0) {
        const int64_t shift = ((srcFirst.low - dstFirst.low) % dst.row + dst.row) % dst.row;
        if (shift >= dstFirst.high - dstFirst.low &&
            shift + (srcFirst.high - srcFirst.low) <= dst.row) {
            return;
        }
    }
    if (!Packed(dst, walk) || !Packed(src, walk)) {
        // Blocks may interleave in ways that spans do not show; the order of rows keeps it defined.
        return;
    }
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const Span written = RowSpan(dst, walk, r);
        for (uint32_t q = r; q < walk.rows; ++q) {
            const Span read = RowSpan(src, walk, q);
            if (!written.Meets(read)) {
                continue;
            }
            if (q > r && !accumulating) {
                core.Fail("repeat %u reads bytes that repeat %u wrote: such overlap is undefined",
                          q, r);
            }
            if (q == r && written.low != read.low) {
                core.Fail("in repeat %u source and destination overlap in part", r);
            }
        }
    }
}

void SetMask(bool counter, uint64_t high, uint64_t low, const Where& where) {
    Core& core = This();
    core.Begin(Op::SetVectorMask, where);
    core.mask = VectorMask();
    core.mask.counter = counter;
    core.mask.bits = !counter;
    core.mask.low = low;
    core.mask.high = high;
}

void SetMaskLength(bool counter, DType type, int32_t length, const Where& where) {
    Core& core = This();
    core.Begin(Op::SetVectorMask, where);
    const uint32_t lanes = kRepeatBytes / SizeOf(type);
    if (length < 0 || (!counter && static_cast<uint32_t>(length) > lanes)) {
        core.Fail("mask length %d: at most %u for %s", length, lanes, Name(type));
    }
    core.mask = VectorMask();
    core.mask.counter = counter;
    core.mask.bits = !counter;
    const uint64_t count = static_cast<uint64_t>(length);
    core.mask.low = counter ? count : count >= 64 ? ~0ull : (1ull << count) - 1;
    core.mask.high = counter || count <= 64 ? 0 : count == 128 ? ~0ull : (1ull << (count - 64)) - 1;
}

}  // namespace sim
