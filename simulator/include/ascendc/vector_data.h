// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_VECTOR_DATA_H
#define ASCENDC_VECTOR_DATA_H

#include "ascendc/copy_params.h"
#include "ascendc/tensor.h"
#include "sim/vector_ops.h"

namespace AscendC {

// Filling, copying, converting and rearranging in UB.

template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dstLocal, const T& scalarValue, uint64_t mask,
               const uint8_t repeatTimes, const uint16_t dstBlockStride,
               const uint8_t dstRepeatStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float>,
                  "Duplicate: unsupported element type");
    sim::VecDuplicate(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(scalarValue),
                      sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                      {dstBlockStride, dstRepeatStride}, where);
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dstLocal, const T& scalarValue, uint64_t mask[],
               const uint8_t repeatTimes, const uint16_t dstBlockStride,
               const uint8_t dstRepeatStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float>,
                  "Duplicate: unsupported element type");
    sim::VecDuplicate(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(scalarValue),
                      sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                      {dstBlockStride, dstRepeatStride}, where);
}
template <typename T>
void Duplicate(const LocalTensor<T>& dstLocal, const T& scalarValue, const int32_t& calCount,
               SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float>,
                  "Duplicate: unsupported element type");
    sim::VecDuplicate(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(scalarValue),
                      sim::Lanes::Count(calCount), {}, where);
}

template <typename T>
void Brcb(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,
          const uint8_t repeatTimes, const BrcbRepeatParams& p, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Brcb: 16 and 32 bit elements only");
    sim::VecBrcb(sizeof(T), dstLocal.Ref(), src0Local.Ref(), repeatTimes,
                 {p.dstBlkStride, p.dstRepStride}, where);
}

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint64_t mask[],
          const uint8_t repeatTimes, const CopyRepeatParams& p, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy: 16 and 32 bit elements only");
    sim::VecCopy(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                 sim::Lanes::Bits(isSetMask, mask, repeatTimes), {p.dstStride, p.dstRepeatSize},
                 {p.srcStride, p.srcRepeatSize}, where);
}
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint64_t mask,
          const uint8_t repeatTimes, const CopyRepeatParams& p, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy: 16 and 32 bit elements only");
    sim::VecCopy(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                 sim::Lanes::Mask(isSetMask, mask, repeatTimes), {p.dstStride, p.dstRepeatSize},
                 {p.srcStride, p.srcRepeatSize}, where);
}

template <typename T1, typename T2, bool isSetMask = true>
void Cast(const LocalTensor<T1>& dstLocal, const LocalTensor<T2>& srcLocal,
          const RoundMode& round_mode, const uint64_t mask[], const uint8_t repeatTimes,
          const UnaryRepeatParams& p, SIM_WHERE) {
    sim::VecCast(sim::TypeTag<T1>::value, sim::TypeTag<T2>::value, round_mode, dstLocal.Ref(),
                 srcLocal.Ref(), sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                 {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where);
}
template <typename T1, typename T2, bool isSetMask = true>
void Cast(const LocalTensor<T1>& dstLocal, const LocalTensor<T2>& srcLocal,
          const RoundMode& round_mode, const uint64_t mask, const uint8_t repeatTimes,
          const UnaryRepeatParams& p, SIM_WHERE) {
    sim::VecCast(sim::TypeTag<T1>::value, sim::TypeTag<T2>::value, round_mode, dstLocal.Ref(),
                 srcLocal.Ref(), sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                 {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where);
}
template <typename T1, typename T2>
void Cast(const LocalTensor<T1>& dstLocal, const LocalTensor<T2>& srcLocal,
          const RoundMode& round_mode, const uint32_t calCount, SIM_WHERE) {
    sim::VecCast(sim::TypeTag<T1>::value, sim::TypeTag<T2>::value, round_mode, dstLocal.Ref(),
                 srcLocal.Ref(), sim::Lanes::Count(calCount), {}, {}, where);
}

template <typename T>
void Gather(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
            const LocalTensor<uint32_t>& srcOffsetLocal, const uint32_t srcBaseAddr,
            const uint64_t mask, const uint8_t repeatTimes, const uint16_t dstRepStride,
            SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: 16 and 32 bit elements only");
    sim::VecGather(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), srcOffsetLocal.Ref(),
                   srcBaseAddr, sim::Lanes::Mask(true, mask, repeatTimes), dstRepStride, where);
}
template <typename T>
void Gather(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
            const LocalTensor<uint32_t>& srcOffsetLocal, const uint32_t srcBaseAddr,
            const uint64_t mask[], const uint8_t repeatTimes, const uint16_t dstRepStride,
            SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: 16 and 32 bit elements only");
    sim::VecGather(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), srcOffsetLocal.Ref(),
                   srcBaseAddr, sim::Lanes::Bits(true, mask, repeatTimes), dstRepStride, where);
}
template <typename T>
void Gather(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
            const LocalTensor<uint32_t>& srcOffsetLocal, const uint32_t srcBaseAddr,
            const uint32_t count, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: 16 and 32 bit elements only");
    sim::VecGather(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), srcOffsetLocal.Ref(),
                   srcBaseAddr, sim::Lanes::Count(count), 8, where);
}
template <typename T>
void Gatherb(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,
             const LocalTensor<uint32_t>& offsetLocal, const uint8_t repeatTimes,
             const GatherRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, uint16_t, uint32_t>, "Gatherb: uint16_t and uint32_t only");
    sim::VecGatherb(sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), offsetLocal.Ref(),
                    repeatTimes, {p.dstBlkStride, p.dstRepStride}, where);
}

template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,
                const LocalTensor<U>& src1Pattern, const bool reduceMode, const uint32_t mask,
                const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt, SIM_WHERE) {
    static_assert((sizeof(T) == 2 || sizeof(T) == 4) && sizeof(U) == sizeof(T) &&
                      sim::kOneOf<U, uint16_t, uint32_t>,
                  "GatherMask: 16 and 32 bit elements, pattern uint16_t or uint32_t to match");
    sim::VecGatherMask(sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), &src1Pattern.Ref(),
                       0, reduceMode, mask, gatherMaskParams, &rsvdCnt, where);
}
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,
                const uint8_t src1Pattern, const bool reduceMode, const uint32_t mask,
                const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "GatherMask: 16 and 32 bit elements only");
    sim::VecGatherMask(sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), nullptr,
                       src1Pattern, reduceMode, mask, gatherMaskParams, &rsvdCnt, where);
}

template <typename T>
void Transpose(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, SIM_WHERE) {
    static_assert(sizeof(T) == 2, "Transpose: 16 bit elements only");
    sim::VecTranspose16(sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), where);
}
template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dstLocalList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const LocalTensor<T> (&srcLocalList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& nchwconvParams, SIM_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "TransDataTo5HD: 16 and 32 bit elements only");
    const sim::Local* dst[NCHW_CONV_ADDR_LIST_SIZE];
    const sim::Local* src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = &dstLocalList[i].Ref();
        src[i] = &srcLocalList[i].Ref();
    }
    sim::VecTransData(sim::TypeTag<T>::value, dst, src, nchwconvParams, where);
}

template <typename T>
void CreateVecIndex(LocalTensor<T>& dstLocal, const T& firstValue, uint64_t mask,
                    uint8_t repeatTimes, uint16_t dstBlkStride, uint8_t dstRepStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float, int16_t, int32_t>, "CreateVecIndex: element type");
    sim::VecIndex(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(firstValue),
                  sim::Lanes::Mask(true, mask, repeatTimes), {dstBlkStride, dstRepStride}, where);
}
template <typename T>
void CreateVecIndex(LocalTensor<T>& dstLocal, const T& firstValue, uint64_t mask[],
                    uint8_t repeatTimes, uint16_t dstBlkStride, uint8_t dstRepStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float, int16_t, int32_t>, "CreateVecIndex: element type");
    sim::VecIndex(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(firstValue),
                  sim::Lanes::Bits(true, mask, repeatTimes), {dstBlkStride, dstRepStride}, where);
}
template <typename T>
void CreateVecIndex(LocalTensor<T> dstLocal, const T& firstValue, uint32_t calCount, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float, int16_t, int32_t>, "CreateVecIndex: element type");
    sim::VecIndex(sim::TypeTag<T>::value, dstLocal.Ref(), sim::ScalarBits(firstValue),
                  sim::Lanes::Count(calCount), {}, where);
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, SIM_WHERE) {
    sim::SetMask(mode == MaskMode::COUNTER, maskHigh, maskLow, where);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len, SIM_WHERE) {
    sim::SetMaskLength(mode == MaskMode::COUNTER, sim::TypeTag<T>::value, len, where);
}
inline void ResetMask() {
    sim::This().mask = sim::VectorMask();
}
inline void SetMaskCount() {
    sim::This().counterMode = true;
}
inline void SetMaskNorm() {
    sim::This().counterMode = false;
}

}  // namespace AscendC

#endif  // ASCENDC_VECTOR_DATA_H
