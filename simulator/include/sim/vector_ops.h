// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_VECTOR_OPS_H
#define SIM_VECTOR_OPS_H

#include "ascendc/vector_params.h"
#include "sim/core.h"

namespace sim {

// How a vector instruction runs over its operands.
struct Lanes {
    // Count form: so many consecutive elements.
    static Lanes Count(int64_t count) {
        Lanes lanes;
        lanes.counted = true;
        lanes.count = count;
        return lanes;
    }
    // Mask forms: `repeats` times 256 bytes, of which the first `mask` elements, or those whose
    // bits are set, take part. With set = false the mask register decides.
    static Lanes Mask(bool set, uint64_t mask, uint32_t repeats) {
        Lanes lanes;
        lanes.setMask = set;
        lanes.mask = mask;
        lanes.repeats = repeats;
        return lanes;
    }
    static Lanes Bits(bool set, const uint64_t* bits, uint32_t repeats) {
        Lanes lanes;
        lanes.setMask = set;
        lanes.bits = bits;
        lanes.repeats = repeats;
        return lanes;
    }

    bool counted = false;
    int64_t count = 0;
    bool setMask = true;
    uint64_t mask = 0;
    const uint64_t* bits = nullptr;
    uint32_t repeats = 1;
};

// In 32 B blocks, from start to start.
struct Stride {
    uint32_t block = 1;
    uint32_t repeat = 8;
};

void VecUnary(Op op, DType type, const Local& dst, const Local& src, const Lanes& lanes, Stride d,
              Stride s, const Where& where);
void VecBinary(Op op, DType type, const Local& dst, const Local& src0, const Local& src1,
               const Lanes& lanes, Stride d, Stride s0, Stride s1, const Where& where);
// dst (type) from src0, src1 (sourceType) and dst itself.
void VecMulAddDst(DType type, DType sourceType, const Local& dst, const Local& src0,
                  const Local& src1, const Lanes& lanes, Stride d, Stride s0, Stride s1,
                  const Where& where);
// `scalar` holds the element's bits.
void VecScalar(Op op, DType type, const Local& dst, const Local& src, uint32_t scalar,
               const Lanes& lanes, Stride d, Stride s, const Where& where);
void VecAxpy(DType type, DType sourceType, const Local& dst, const Local& src, uint32_t scalar,
             const Lanes& lanes, Stride d, Stride s, const Where& where);
void VecDuplicate(DType type, const Local& dst, uint32_t scalar, const Lanes& lanes, Stride d,
                  const Where& where);
void VecCopy(DType type, const Local& dst, const Local& src, const Lanes& lanes, Stride d, Stride s,
             const Where& where);
void VecCast(DType type, DType sourceType, AscendC::RoundMode round, const Local& dst,
             const Local& src, const Lanes& lanes, Stride d, Stride s, const Where& where);
void VecBrcb(uint32_t elementBytes, const Local& dst, const Local& src, uint32_t repeats, Stride d,
             const Where& where);

// Without dst the result goes to the compare mask register. src1 null: compare with `scalar`.
void VecCompare(DType type, AscendC::CMPMODE mode, const Local* dst, const Local& src0,
                const Local* src1, uint32_t scalar, const Lanes& lanes, Stride s0, Stride s1,
                const Where& where);
// select null: the compare mask register. src1 null: `scalar`.
void VecSelect(DType type, AscendC::SELMODE mode, const Local& dst, const Local* select,
               const Local& src0, const Local* src1, uint32_t scalar, const Lanes& lanes, Stride d,
               Stride s0, Stride s1, const Where& where);
void VecCompareMask(const Local& tensor, bool load, const Where& where);

// Whole/Repeat/Block/Pair reductions. dstRepeat: see each instruction's documented unit.
void VecReduce(Op op, DType type, const Local& dst, const Local& src, const Lanes& lanes,
               uint32_t dstRepeat, Stride s, AscendC::ReduceOrder order, const Where& where);
void VecReduceAll(Op op, DType type, const Local& dst, const Local& src, const Local& work,
                  const Lanes& lanes, Stride s, bool index, const Where& where);

void VecGather(DType type, const Local& dst, const Local& src, const Local& offsets,
               uint32_t srcBase, const Lanes& lanes, uint32_t dstRepeat, const Where& where);
void VecGatherb(DType type, const Local& dst, const Local& src, const Local& offsets,
                uint32_t repeats, Stride d, const Where& where);
void VecGatherMask(DType type, const Local& dst, const Local& src, const Local* pattern,
                   uint32_t fixedPattern, bool counter, uint32_t mask,
                   const AscendC::GatherMaskParams& params, uint64_t* kept, const Where& where);
void VecTranspose16(DType type, const Local& dst, const Local& src, const Where& where);
void VecTransData(DType type, const Local* const* dst, const Local* const* src,
                  const AscendC::TransDataTo5HDParams& params, const Where& where);
void VecIndex(DType type, const Local& dst, uint32_t first, const Lanes& lanes, Stride d,
              const Where& where);

void SetMask(bool counter, uint64_t high, uint64_t low, const Where& where);
void SetMaskLength(bool counter, DType type, int32_t length, const Where& where);

template <typename T>
uint32_t ScalarBits(const T& value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

}  // namespace sim

#endif  // SIM_VECTOR_OPS_H
