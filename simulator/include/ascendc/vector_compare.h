// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_VECTOR_COMPARE_H
#define ASCENDC_VECTOR_COMPARE_H

#include "ascendc/tensor.h"
#include "sim/vector_ops.h"

namespace AscendC {

// Results are bits, eight to a byte, lowest first.

template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
             const LocalTensor<T>& src1Local, CMPMODE cmpMode, const uint64_t mask[],
             uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float> && sizeof(U) == 1, "Compare: half/float, uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(),
                    &src1Local.Ref(), 0, sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                    {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
             const LocalTensor<T>& src1Local, CMPMODE cmpMode, const uint64_t mask,
             uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float> && sizeof(U) == 1, "Compare: half/float, uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(),
                    &src1Local.Ref(), 0, sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                    {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T>& src0Local, const LocalTensor<T>& src1Local, CMPMODE cmpMode,
             const uint64_t mask[], const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Compare: half and float only");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, nullptr, src0Local.Ref(), &src1Local.Ref(), 0,
                    sim::Lanes::Bits(isSetMask, mask, 1), {p.src0BlkStride, p.src0RepStride},
                    {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T>& src0Local, const LocalTensor<T>& src1Local, CMPMODE cmpMode,
             const uint64_t mask, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Compare: half and float only");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, nullptr, src0Local.Ref(), &src1Local.Ref(), 0,
                    sim::Lanes::Mask(isSetMask, mask, 1), {p.src0BlkStride, p.src0RepStride},
                    {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U>
void Compare(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
             const LocalTensor<T>& src1Local, CMPMODE cmpMode, uint32_t calCount, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float, int32_t> && sizeof(U) == 1,
                  "Compare: half, float or int32_t, result uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(),
                    &src1Local.Ref(), 0, sim::Lanes::Count(calCount), {}, {}, where);
}

template <typename T, typename U, bool isSetMask = true>
void CompareScalar(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
                   const T src1Scalar, CMPMODE cmpMode, const uint64_t mask[], uint8_t repeatTimes,
                   const UnaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float> && sizeof(U) == 1,
                  "CompareScalar: half/float, uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(), nullptr,
                    sim::ScalarBits(src1Scalar), sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                    {p.srcBlkStride, p.srcRepStride}, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
void CompareScalar(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
                   const T src1Scalar, CMPMODE cmpMode, const uint64_t mask, uint8_t repeatTimes,
                   const UnaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float> && sizeof(U) == 1,
                  "CompareScalar: half/float, uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(), nullptr,
                    sim::ScalarBits(src1Scalar), sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                    {p.srcBlkStride, p.srcRepStride}, {}, where);
}
template <typename T, typename U>
void CompareScalar(const LocalTensor<U>& dstLocal, const LocalTensor<T>& src0Local,
                   const T src1Scalar, CMPMODE cmpMode, uint32_t calCount, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float, int32_t> && sizeof(U) == 1,
                  "CompareScalar: half, float or int32_t, result uint8_t");
    sim::VecCompare(sim::TypeTag<T>::value, cmpMode, &dstLocal.Ref(), src0Local.Ref(), nullptr,
                    sim::ScalarBits(src1Scalar), sim::Lanes::Count(calCount), {}, {}, where);
}

template <typename T>
void GetCmpMask(const LocalTensor<T>& dst, SIM_WHERE) {
    sim::VecCompareMask(dst.Ref(), false, where);
}
template <typename T>
void SetCmpMask(const LocalTensor<T>& src, SIM_WHERE) {
    sim::VecCompareMask(src.Ref(), true, where);
}

template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, const LocalTensor<T>& src1Local, SELMODE selMode,
            uint64_t mask[], uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   &src1Local.Ref(), 0, sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                   {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                   {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, const LocalTensor<T>& src1Local, SELMODE selMode,
            uint64_t mask, uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   &src1Local.Ref(), 0, sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                   {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                   {p.src1BlkStride, p.src1RepStride}, where);
}
// With the compare mask register.
template <typename T, SELMODE selMode>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,
            const LocalTensor<T>& src1Local, uint8_t repeatTimes, const BinaryRepeatParams& p,
            SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), nullptr, src0Local.Ref(),
                   &src1Local.Ref(), 0, sim::Lanes::Mask(false, 0, repeatTimes),
                   {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                   {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, const LocalTensor<T>& src1Local, SELMODE selMode,
            uint32_t calCount, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   &src1Local.Ref(), 0, sim::Lanes::Count(calCount), {}, {}, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, T src1Local, SELMODE selMode, uint64_t mask[],
            uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   nullptr, sim::ScalarBits(src1Local),
                   sim::Lanes::Bits(isSetMask, mask, repeatTimes), {p.dstBlkStride, p.dstRepStride},
                   {p.src0BlkStride, p.src0RepStride}, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, T src1Local, SELMODE selMode, uint64_t mask,
            uint8_t repeatTimes, const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   nullptr, sim::ScalarBits(src1Local),
                   sim::Lanes::Mask(isSetMask, mask, repeatTimes), {p.dstBlkStride, p.dstRepStride},
                   {p.src0BlkStride, p.src0RepStride}, {}, where);
}
template <typename T, typename U>
void Select(const LocalTensor<T>& dstLocal, const LocalTensor<U>& selMask,
            const LocalTensor<T>& src0Local, T src1Local, SELMODE selMode, uint32_t calCount,
            SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "Select: half and float only");
    sim::VecSelect(sim::TypeTag<T>::value, selMode, dstLocal.Ref(), &selMask.Ref(), src0Local.Ref(),
                   nullptr, sim::ScalarBits(src1Local), sim::Lanes::Count(calCount), {}, {}, {},
                   where);
}

}  // namespace AscendC

#endif  // ASCENDC_VECTOR_COMPARE_H
