// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <limits>

#include "convert.h"
#include "defined.h"

namespace sim {

namespace {

using AscendC::ReduceOrder;

// Sums of neighbours, level by level, as the hardware's adder tree does it. Shuffles stay within
// 128 bits, which permutes the vectors but not the tree.
Float8 PairSums(Float8 a, Float8 b) {
    return __builtin_shuffle(a, b, Int8{0, 2, 8, 10, 4, 6, 12, 14}) +
           __builtin_shuffle(a, b, Int8{1, 3, 9, 11, 5, 7, 13, 15});
}

float TreeSum8(const float* v) {
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// The sums of 64 floats' blocks of eight.
void EightSums(const float* v, float* eights) {
    Float8 pairs[4];
    for (int i = 0; i < 4; ++i) {
        pairs[i] = PairSums(LoadFloat8(v + 16 * i), LoadFloat8(v + 16 * i + 8));
    }
    // Lane i of the low half holds the first four of vector i's eight values, the high half the
    // rest.
    const Float8 low = PairSums(pairs[0], pairs[1]);
    const Float8 high = PairSums(pairs[2], pairs[3]);
    const Float8 sums = __builtin_shuffle(low, high, Int8{0, 1, 2, 3, 8, 9, 10, 11}) +
                        __builtin_shuffle(low, high, Int8{4, 5, 6, 7, 12, 13, 14, 15});
    StoreFloat8(eights, sums);
}

float TreeSum64(const float* v) {
    float eights[8];
    EightSums(v, eights);
    return TreeSum8(eights);
}

// `count` is 8, 16, 64 or 128.
float TreeSum(const float* values, uint32_t count) {
    switch (count) {
        case 8:
            return TreeSum8(values);
        case 16:
            return TreeSum8(values) + TreeSum8(values + 8);
        case 64:
            return TreeSum64(values);
        default:
            return TreeSum64(values) + TreeSum64(values + 64);
    }
}

// One row as floats, in place if it is complete; lanes outside the mask hold `filler`.
const float* ReadRow(DType type, const Operand& src, const Walk& walk, uint32_t row, float filler,
                     float* out) {
    const uint32_t count = walk.ActiveIn(row);
    alignas(32) uint8_t gathered[kRepeatBytes];
    const uint8_t* values = src.base + row * src.row;
    const bool packed = Packed(src, walk);
    if (type == DType::F32 && packed && count == walk.lanes && !walk.bits) {
        return reinterpret_cast<const float*>(values);
    }
    if (!packed) {
        GatherRow(gathered, src, row, count);
        values = gathered;
    }
    if (type == DType::F32) {
        std::memcpy(out, values, count * sizeof(float));
    } else {
        HalfToFloat(out, reinterpret_cast<const uint16_t*>(values), count);
    }
    for (uint32_t i = count; i < walk.lanes; ++i) {
        out[i] = filler;
    }
    if (walk.bits) {
        for (uint32_t i = 0; i < count; ++i) {
            if (!walk.Takes(i)) {
                out[i] = filler;
            }
        }
    }
    return out;
}

void StoreValue(DType type, uint8_t* at, float value) {
    if (type == DType::F32) {
        std::memcpy(at, &value, 4);
    } else {
        const uint16_t bits = FloatToHalfBits(value);
        std::memcpy(at, &bits, 2);
    }
}

void StoreIndex(DType type, uint8_t* at, uint32_t index) {
    std::memcpy(at, &index, type == DType::F32 ? 4 : 2);
}

// The first of the largest (or smallest) values.
uint32_t Extreme(const float* values, uint32_t count, bool largest) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; ++i) {
        if (largest ? values[i] > values[best] : values[i] < values[best]) {
            best = i;
        }
    }
    return best;
}

bool IsMax(Op op) {
    return op == Op::WholeReduceMax || op == Op::BlockReduceMax || op == Op::ReduceMax;
}
bool IsMin(Op op) {
    return op == Op::WholeReduceMin || op == Op::BlockReduceMin || op == Op::ReduceMin;
}

float Filler(Op op) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    return IsMax(op) ? -kInf : IsMin(op) ? kInf : 0.0f;
}

}  // namespace

void VecReduce(Op op, DType type, const Local& dst, const Local& src, const Lanes& lanes,
               uint32_t dstRepeat, Stride s, ReduceOrder order, const Where& where) {
    Core& core = This();
    StartVector(core, op, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand from = Bind(core, src, size, s, walk, "the source");
    const bool whole = op == Op::WholeReduceSum || op == Op::WholeReduceMax ||
                       op == Op::WholeReduceMin || op == Op::RepeatReduceSum;
    const bool pair = op == Op::PairReduceSum;
    const bool both =
        order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE;
    // Results of a row and the unit of the destination's repeat stride, in elements.
    const uint32_t results = whole ? (both ? 2u : 1u) : pair ? walk.lanes / 2 : 8u;
    const uint32_t unit = whole ? results : pair ? walk.lanes / 2 : 8u;
    const uint32_t align = whole ? results * size : pair ? kBlockBytes : 8 * size;
    core.CheckSpace(dst, Space::Ub, "the destination");
    core.CheckAlign(dst, align, "the destination");
    if (walk.rows == 0) {
        return;
    }
    const int64_t step = static_cast<int64_t>(dstRepeat) * unit * size;
    uint8_t* out = core.Check(dst, 0, (walk.rows - 1) * step + results * size, "the destination");
    Report(core, op,
           {AccessOf(from, walk, false), {out, results * size, true, Space::Ub, walk.rows, step}});
    if constexpr (kTracksDefined) {
        const uint32_t group = whole ? walk.lanes : pair ? 2 : kBlockBytes / size;
        TrackGroups(core, walk, from, out, step, group, whole ? results * size : size);
    }
    const bool sum = !IsMax(op) && !IsMin(op);
    const float filler = Filler(op);
    const uint32_t perBlock = kBlockBytes / size;
    for (uint32_t r = 0; r < walk.rows; ++r) {
        float space[128];
        const float* values = ReadRow(type, from, walk, r, filler, space);
        uint8_t* at = out + r * step;
        if (whole && sum) {
            StoreValue(type, at, TreeSum(values, walk.lanes));
        } else if (whole) {
            const uint32_t best = Extreme(values, walk.lanes, IsMax(op));
            const uint32_t valueAt = order == ReduceOrder::ORDER_INDEX_VALUE ? size : 0;
            const uint32_t indexAt = order == ReduceOrder::ORDER_VALUE_INDEX ? size : 0;
            if (order != ReduceOrder::ORDER_ONLY_INDEX) {
                StoreValue(type, at + valueAt, values[best]);
            }
            if (order != ReduceOrder::ORDER_ONLY_VALUE) {
                StoreIndex(type, at + indexAt, best);
            }
        } else if (pair) {
            for (uint32_t i = 0; i < walk.lanes / 2; ++i) {
                StoreValue(type, at + i * size, values[2 * i] + values[2 * i + 1]);
            }
        } else if (sum && type == DType::F32) {
            float eights[8];
            EightSums(values, eights);
            std::memcpy(at, eights, sizeof(eights));
        } else {
            for (uint32_t b = 0; b < 8; ++b) {
                const float* block = values + b * perBlock;
                const float result =
                    sum ? TreeSum(block, perBlock) : block[Extreme(block, perBlock, IsMax(op))];
                StoreValue(type, at + b * size, result);
            }
        }
    }
}

void VecReduceAll(Op op, DType type, const Local& dst, const Local& src, const Local& work,
                  const Lanes& lanes, Stride s, bool index, const Where& where) {
    Core& core = This();
    StartVector(core, op, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand from = Bind(core, src, size, s, walk, "the source");
    core.CheckSpace(dst, Space::Ub, "the destination");
    core.CheckSpace(work, Space::Ub, "the work space");
    core.CheckAlign(work, kBlockBytes, "the work space");
    const bool sum = op == Op::ReduceSum;
    const uint32_t results = index && !sum ? 2 : 1;
    core.CheckAlign(dst, size * results, "the destination");
    uint8_t* out = core.Check(dst, 0, results * size, "the destination");
    // A row leaves one value (two with an index), and whole blocks are written.
    const int64_t workBytes =
        (static_cast<int64_t>(walk.rows) * (sum ? 1 : 2) * size + kBlockBytes - 1) / kBlockBytes *
        kBlockBytes;
    uint8_t* scratch = core.Check(work, 0, workBytes, "the work space");
    if (walk.rows == 0) {
        return;
    }
    Report(core, op,
           {AccessOf(from, walk, false),
            {scratch, static_cast<uint32_t>(workBytes), true, Space::Ub},
            {out, results * size, true, Space::Ub}});
    if constexpr (kTracksDefined) {
        std::memset(ShadowOf(scratch), 0xFF, static_cast<size_t>(workBytes));
        TrackPadding(core, Access{scratch, static_cast<uint32_t>(workBytes), true, Space::Ub}, 0,
                     "the work space of a reduction");
        TrackTotal(core, walk, from, out, results * size);
    }
    std::memset(scratch, 0xFF, static_cast<size_t>(workBytes));
    if (sum) {
        // The rows' sums, 64 at a time, then those in order.
        float total = 0;
        for (uint32_t first = 0; first < walk.rows; first += 64) {
            float sums[64] = {};
            for (uint32_t r = first; r < walk.rows && r < first + 64; ++r) {
                float space[128];
                const float* row = ReadRow(type, from, walk, r, 0.0f, space);
                sums[r - first] = TreeSum(row, walk.lanes);
            }
            total += TreeSum(sums, 64);
        }
        StoreValue(type, out, total);
        return;
    }
    const bool largest = IsMax(op);
    float best = Filler(op);
    uint32_t at = 0;
    for (uint32_t r = 0; r < walk.rows; ++r) {
        float space[128];
        const float* values = ReadRow(type, from, walk, r, Filler(op), space);
        const uint32_t i = Extreme(values, walk.lanes, largest);
        if (r == 0 || (largest ? values[i] > best : values[i] < best)) {
            best = values[i];
            at = r * walk.lanes + i;
        }
    }
    StoreValue(type, out, best);
    if (index) {
        StoreIndex(type, out + size, at);
    }
}

}  // namespace sim
