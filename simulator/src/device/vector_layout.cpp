// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "defined.h"

// Gathers, transposes and index vectors.
namespace sim {

namespace {

template <typename T>
void CopyElement(uint8_t* to, const uint8_t* from) {
    std::memcpy(to, from, sizeof(T));
}

void CopySized(uint8_t* to, const uint8_t* from, uint32_t size) {
    if (size == 4) {
        CopyElement<uint32_t>(to, from);
    } else {
        CopyElement<uint16_t>(to, from);
    }
}

void MoveSized(Core& core, uint8_t* to, const uint8_t* from, uint32_t size) {
    if constexpr (kTracksDefined) {
        TrackMove(core, to, from, size);
    }
    CopySized(to, from, size);
}

// The bytes of a source that offsets picked so far.
struct Reach {
    int64_t low = INT64_MAX;
    int64_t high = 0;

    void Add(int64_t at, int64_t bytes) {
        low = std::min(low, at);
        high = std::max(high, at + bytes);
    }
    Access From(const Local& source) const {
        const int64_t bytes = std::max<int64_t>(0, high - low);
        return Access{bytes != 0 ? source.Address() + low : source.Address(),
                      static_cast<uint32_t>(bytes), false, Space::Ub};
    }
};

uint32_t OffsetAt(const uint8_t* address) {
    uint32_t offset;
    std::memcpy(&offset, address, sizeof(offset));
    return offset;
}

}  // namespace

void VecGather(DType type, const Local& dst, const Local& src, const Local& offsets,
               uint32_t srcBase, const Lanes& lanes, uint32_t dstRepeat, const Where& where) {
    Core& core = This();
    StartVector(core, Op::Gather, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, Stride{1, dstRepeat}, walk, "the destination");
    const Operand by =
        Bind(core, offsets, 4, Stride{1, walk.lanes * 4 / kBlockBytes}, walk, "the offsets");
    core.CheckSpace(src, Space::Ub, "the source");
    core.CheckAlign(src, kBlockBytes, "the source");
    if (walk.rows == 0) {
        return;
    }
    if constexpr (kHooked) {
        Reach reach;
        for (uint32_t r = 0; r < walk.rows; ++r) {
            for (uint32_t i = 0; i < walk.ActiveIn(r); ++i) {
                if (walk.Takes(i)) {
                    if constexpr (kTracksDefined) {
                        TrackControl(core, by.Lane(r, i), 4, "the offsets");
                    }
                    const int64_t at = static_cast<int64_t>(srcBase) + OffsetAt(by.Lane(r, i));
                    core.Check(src, at, size, "the source");
                    reach.Add(at, size);
                }
            }
        }
        Report(core, Op::Gather,
               {AccessOf(by, walk, false), reach.From(src), AccessOf(to, walk, true)});
    }
    for (uint32_t r = 0; r < walk.rows; ++r) {
        for (uint32_t i = 0; i < walk.ActiveIn(r); ++i) {
            if (!walk.Takes(i)) {
                continue;
            }
            const int64_t at = static_cast<int64_t>(srcBase) + OffsetAt(by.Lane(r, i));
            if (at % size != 0) {
                core.Fail("offset %lld bytes is not a multiple of the element's %u bytes",
                          static_cast<long long>(at), size);
            }
            MoveSized(core, to.Lane(r, i), core.Check(src, at, size, "the source"), size);
        }
    }
}

void VecGatherb(DType type, const Local& dst, const Local& src, const Local& offsets,
                uint32_t repeats, Stride d, const Where& where) {
    Core& core = This();
    StartVector(core, Op::Gatherb, where);
    const Walk walk =
        Resolve(core, Lanes::Mask(true, kRepeatBytes / SizeOf(type), repeats), SizeOf(type));
    const Operand to = Bind(core, dst, SizeOf(type), d, walk, "the destination");
    core.CheckSpace(offsets, Space::Ub, "the offsets");
    core.CheckAlign(offsets, kBlockBytes, "the offsets");
    core.CheckSpace(src, Space::Ub, "the source");
    core.CheckAlign(src, kBlockBytes, "the source");
    if (walk.rows == 0) {
        return;
    }
    const uint8_t* by = core.Check(offsets, 0, static_cast<int64_t>(repeats) * 32, "the offsets");
    if constexpr (kTracksDefined) {
        TrackControl(core, by, static_cast<int64_t>(repeats) * 32, "the offsets");
    }
    if constexpr (kHooked) {
        Reach reach;
        for (uint32_t i = 0; i < repeats * 8; ++i) {
            core.Check(src, OffsetAt(by + i * 4), kBlockBytes, "the source");
            reach.Add(OffsetAt(by + i * 4), kBlockBytes);
        }
        Report(core, Op::Gatherb,
               {{by, repeats * 32, false, Space::Ub}, reach.From(src), AccessOf(to, walk, true)});
    }
    for (uint32_t r = 0; r < repeats; ++r) {
        for (uint32_t b = 0; b < 8; ++b) {
            const uint32_t offset = OffsetAt(by + (r * 8 + b) * 4);
            if (offset % kBlockBytes != 0) {
                core.Fail("offset %u bytes is not a multiple of 32", offset);
            }
            uint8_t* block = to.base + r * to.row + b * to.block;
            const uint8_t* taken = core.Check(src, offset, kBlockBytes, "the source");
            if constexpr (kTracksDefined) {
                TrackMove(core, block, taken, kBlockBytes);
            }
            std::memcpy(block, taken, kBlockBytes);
        }
    }
}

void VecGatherMask(DType type, const Local& dst, const Local& src, const Local* pattern,
                   uint32_t fixedPattern, bool counter, uint32_t mask,
                   const AscendC::GatherMaskParams& p, uint64_t* kept, const Where& where) {
    Core& core = This();
    StartVector(core, Op::GatherMask, where);
    const uint32_t size = SizeOf(type);
    const uint32_t full = kRepeatBytes / size;
    core.region->counters.repeats[static_cast<size_t>(Op::GatherMask)] += p.repeatTimes;
    core.CheckSpace(dst, Space::Ub, "the destination");
    core.CheckSpace(src, Space::Ub, "the source");
    core.CheckAlign(dst, kBlockBytes, "the destination");
    core.CheckAlign(src, kBlockBytes, "the source");
    if (pattern == nullptr && (fixedPattern < 1 || fixedPattern > 7)) {
        core.Fail("pattern %u: the fixed patterns are 1..7", fixedPattern);
    }
    const uint32_t lanes = counter ? mask : full;
    if (pattern != nullptr) {
        core.CheckSpace(*pattern, Space::Ub, "the pattern");
        core.CheckAlign(*pattern, kBlockBytes, "the pattern");
    }
    uint64_t count = 0;
    Reach reach;
    Reach patternReach;
    const uint32_t perBlock = kBlockBytes / size;
    for (uint32_t r = 0; r < p.repeatTimes; ++r) {
        for (uint32_t i = 0; i < lanes; ++i) {
            bool take;
            if (pattern != nullptr) {
                const int64_t place = r * p.src1RepeatStride * 32ll + i / 8;
                const uint8_t* bits = core.Check(*pattern, place, 1, "the pattern");
                if constexpr (kHooked) {
                    patternReach.Add(place, 1);
                }
                if constexpr (kTracksDefined) {
                    TrackControl(core, bits, 1, "the pattern");
                }
                take = ((*bits >> (i % 8)) & 1) != 0;
            } else {
                take = fixedPattern == 7   ? true
                       : fixedPattern <= 2 ? i % 2 == fixedPattern - 1
                                           : i % 4 == fixedPattern - 3;
            }
            if (!take) {
                continue;
            }
            const int64_t at = r * p.src0RepeatStride * 32ll +
                               static_cast<int64_t>(i / perBlock) * p.src0BlockStride * 32 +
                               i % perBlock * size;
            const uint8_t* from = core.Check(src, at, size, "the source");
            if constexpr (kHooked) {
                reach.Add(at, size);
            }
            MoveSized(core,
                      core.Check(dst, static_cast<int64_t>(count) * size, size, "the destination"),
                      from, size);
            ++count;
        }
    }
    Report(core, Op::GatherMask,
           {reach.From(src),
            patternReach.From(pattern != nullptr ? *pattern : src),
            {dst.Address(), static_cast<uint32_t>(count * size), true, Space::Ub}});
    *kept = count;
}

void VecTranspose16(DType, const Local& dst, const Local& src, const Where& where) {
    Core& core = This();
    core.Begin(Op::Transpose, where);
    core.NeedVector();
    core.CheckSpace(dst, Space::Ub, "the destination");
    core.CheckSpace(src, Space::Ub, "the source");
    core.CheckAlign(dst, kBlockBytes, "the destination");
    core.CheckAlign(src, kBlockBytes, "the source");
    uint8_t* to = core.Check(dst, 0, 512, "the destination");
    const uint8_t* from = core.Check(src, 0, 512, "the source");
    const Access read{from, 512, false, Space::Ub};
    const Access write{to, 512, true, Space::Ub};
    Report(core, Op::Transpose, {read, write});
    const auto run = [](uint8_t* target, const uint8_t* source) {
        uint16_t values[256];
        std::memcpy(values, source, 512);
        uint16_t* out = reinterpret_cast<uint16_t*>(target);
        for (uint32_t r = 0; r < 16; ++r) {
            for (uint32_t c = 0; c < 16; ++c) {
                out[c * 16 + r] = values[r * 16 + c];
            }
        }
    };
    if constexpr (kTracksDefined) {
        TrackCopy(core, read, write, run);
    }
    run(to, from);
}

namespace {

// One repeat: sixteen blocks of T, read before the first of them is written.
template <typename T>
void TransposeBlocks(uint8_t* const* to, const uint8_t* const* from, int64_t shadow) {
    constexpr uint32_t kColumns = kBlockBytes / sizeof(T);
    constexpr uint32_t kParts = 16 / kColumns;  // 32 bit: a row of 16 takes two of the addresses
    T rows[16][kColumns];
    for (uint32_t i = 0; i < 16; ++i) {
        std::memcpy(rows[i], from[i] + shadow, kBlockBytes);
    }
    for (uint32_t i = 0; i < 16; ++i) {
        T block[kColumns];
        for (uint32_t j = 0; j < kColumns; ++j) {
            block[j] = rows[i % kParts * kColumns + j][i / kParts];
        }
        std::memcpy(to[i] + shadow, block, kBlockBytes);
    }
}

}  // namespace

void VecTransData(DType type, const Local* const* dst, const Local* const* src,
                  const AscendC::TransDataTo5HDParams& p, const Where& where) {
    Core& core = This();
    core.Begin(Op::TransDataTo5HD, where, p.repeatTimes);
    core.NeedVector();
    const uint32_t size = SizeOf(type);
    for (uint32_t i = 0; i < 16; ++i) {
        core.CheckSpace(*dst[i], Space::Ub, "a destination");
        core.CheckSpace(*src[i], Space::Ub, "a source");
        core.CheckAlign(*dst[i], kBlockBytes, "a destination");
        core.CheckAlign(*src[i], kBlockBytes, "a source");
    }
    if (p.repeatTimes == 0) {
        return;
    }
    if (p.repeatTimes == 1 && (p.dstRepStride != 0 || p.srcRepStride != 0)) {
        core.Fail("repeatTimes 1 with repeat strides %u and %u: they must be 0", p.dstRepStride,
                  p.srcRepStride);
    }
    for (uint32_t r = 0; r < p.repeatTimes; ++r) {
        const uint8_t* from[16];
        uint8_t* to[16];
        for (uint32_t i = 0; i < 16; ++i) {
            from[i] = core.Check(*src[i], r * p.srcRepStride * 32ll, kBlockBytes, "a source");
            to[i] = core.Check(*dst[i], r * p.dstRepStride * 32ll, kBlockBytes, "a destination");
            Report(core, Op::TransDataTo5HD, {{from[i], kBlockBytes, false, Space::Ub}});
        }
        for (uint32_t i = 0; i < 16; ++i) {
            Report(core, Op::TransDataTo5HD, {{to[i], kBlockBytes, true, Space::Ub}});
        }
        const auto run = [&](int64_t shadow) {
            if (size == 2) {
                TransposeBlocks<uint16_t>(to, from, shadow);
            } else {
                TransposeBlocks<uint32_t>(to, from, shadow);
            }
        };
        if constexpr (kTracksDefined) {
            TrackTranspose(core, to, from);
            run(kShadowOffset);
        }
        run(0);
    }
}

namespace {

template <typename T>
void WriteIndex(const Walk& walk, const Operand& to, T first) {
    for (uint32_t r = 0; r < walk.rows; ++r) {
        for (uint32_t i = 0; i < walk.ActiveIn(r); ++i) {
            if (walk.Takes(i)) {
                const T value = static_cast<T>(static_cast<float>(first) +
                                               static_cast<float>(r * walk.lanes + i));
                std::memcpy(to.Lane(r, i), &value, sizeof(T));
            }
        }
    }
}

}  // namespace

void VecIndex(DType type, const Local& dst, uint32_t first, const Lanes& lanes, Stride d,
              const Where& where) {
    Core& core = This();
    StartVector(core, Op::CreateVecIndex, where);
    const Walk walk = Resolve(core, lanes, SizeOf(type));
    const Operand to = Bind(core, dst, SizeOf(type), d, walk, "the destination");
    if (walk.rows == 0) {
        return;
    }
    Report(core, Op::CreateVecIndex, {AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {});
    }
    switch (type) {
        case DType::F32:
            return WriteIndex<float>(walk, to, FloatOf(first));
        case DType::F16: {
            half value;
            value.bits = static_cast<uint16_t>(first);
            return WriteIndex<half>(walk, to, value);
        }
        case DType::I16:
            return WriteIndex<int16_t>(walk, to, static_cast<int16_t>(first));
        default:
            return WriteIndex<int32_t>(walk, to, static_cast<int32_t>(first));
    }
}

}  // namespace sim
