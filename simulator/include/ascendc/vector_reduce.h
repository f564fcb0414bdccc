// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_VECTOR_REDUCE_H
#define ASCENDC_VECTOR_REDUCE_H

#include "ascendc/tensor.h"
#include "sim/vector_ops.h"

namespace AscendC {

// One value a repeat.
#define SIM_WHOLE(name, orderParameter, orderValue)                                               \
    template <typename T, bool isSetMask = true>                                                  \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                     \
              const uint64_t mask[], const int32_t repeatTimes, const int32_t dstRepStride,       \
              const int32_t srcBlkStride, const int32_t srcRepStride orderParameter, SIM_WHERE) { \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");                \
        sim::VecReduce(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),     \
                       sim::Lanes::Bits(isSetMask, mask, repeatTimes), dstRepStride,              \
                       {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, orderValue, where);      \
    }                                                                                             \
    template <typename T, bool isSetMask = true>                                                  \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const int32_t mask, \
              const int32_t repeatTimes, const int32_t dstRepStride, const int32_t srcBlkStride,  \
              const int32_t srcRepStride orderParameter, SIM_WHERE) {                             \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");                \
        sim::VecReduce(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),     \
                       sim::Lanes::Mask(isSetMask, mask, repeatTimes), dstRepStride,              \
                       {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, orderValue, where);      \
    }
#define SIM_ORDER , ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX
SIM_WHOLE(WholeReduceSum, , ReduceOrder::ORDER_ONLY_VALUE)
SIM_WHOLE(WholeReduceMax, SIM_ORDER, order)
SIM_WHOLE(WholeReduceMin, SIM_ORDER, order)
#undef SIM_ORDER
#undef SIM_WHOLE

// One value a 32 B block, or a pair.
#define SIM_BLOCK(name)                                                                       \
    template <typename T, bool isSetMask = true>                                              \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                 \
              const int32_t repeat, const int32_t mask, const int32_t dstRepStride,           \
              const int32_t srcBlkStride, const int32_t srcRepStride, SIM_WHERE) {            \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");            \
        sim::VecReduce(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), \
                       sim::Lanes::Mask(isSetMask, mask, repeat), dstRepStride,               \
                       {uint32_t(srcBlkStride), uint32_t(srcRepStride)},                      \
                       ReduceOrder::ORDER_ONLY_VALUE, where);                                 \
    }                                                                                         \
    template <typename T, bool isSetMask = true>                                              \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                 \
              const int32_t repeat, const uint64_t mask[], const int32_t dstRepStride,        \
              const int32_t srcBlkStride, const int32_t srcRepStride, SIM_WHERE) {            \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");            \
        sim::VecReduce(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), \
                       sim::Lanes::Bits(isSetMask, mask, repeat), dstRepStride,               \
                       {uint32_t(srcBlkStride), uint32_t(srcRepStride)},                      \
                       ReduceOrder::ORDER_ONLY_VALUE, where);                                 \
    }
SIM_BLOCK(BlockReduceSum)
SIM_BLOCK(BlockReduceMax)
SIM_BLOCK(BlockReduceMin)
SIM_BLOCK(PairReduceSum)
#undef SIM_BLOCK

template <typename T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                     const int32_t repeat, const int32_t elemsInOneRepeat,
                     const int32_t dstBlkStride, const int32_t srcBlkStride,
                     const int32_t dstRepStride, const int32_t srcRepStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "RepeatReduceSum: half and float only");
    (void)dstBlkStride;
    sim::VecReduce(sim::Op::RepeatReduceSum, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                   sim::Lanes::Mask(isSetMask, elemsInOneRepeat, repeat), dstRepStride,
                   {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, ReduceOrder::ORDER_ONLY_VALUE,
                   where);
}

// Everything to one value.
#define SIM_REDUCE(name)                                                                         \
    template <typename T>                                                                        \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                    \
              const LocalTensor<T>& workLocal, const int32_t mask, const int32_t repeatTimes,    \
              const int32_t srcRepStride, bool calIndex = false, SIM_WHERE) {                    \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");               \
        sim::VecReduceAll(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), \
                          workLocal.Ref(), sim::Lanes::Mask(true, mask, repeatTimes),            \
                          {1, uint32_t(srcRepStride)}, calIndex, where);                         \
    }                                                                                            \
    template <typename T>                                                                        \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                    \
              const LocalTensor<T>& workLocal, const uint64_t mask[], const int32_t repeatTimes, \
              const int32_t srcRepStride, bool calIndex = false, SIM_WHERE) {                    \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");               \
        sim::VecReduceAll(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), \
                          workLocal.Ref(), sim::Lanes::Bits(true, mask, repeatTimes),            \
                          {1, uint32_t(srcRepStride)}, calIndex, where);                         \
    }                                                                                            \
    template <typename T>                                                                        \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                    \
              const LocalTensor<T>& workLocal, const int32_t count, bool calIndex = false,       \
              SIM_WHERE) {                                                                       \
        static_assert(sim::kOneOf<T, half, float>, #name ": half and float only");               \
        sim::VecReduceAll(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(), \
                          workLocal.Ref(), sim::Lanes::Count(count), {}, calIndex, where);       \
    }
SIM_REDUCE(ReduceMax)
SIM_REDUCE(ReduceMin)
#undef SIM_REDUCE

template <typename T>
void ReduceSum(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
               const LocalTensor<T>& workLocal, const int32_t mask, const int32_t repeatTimes,
               const int32_t srcRepStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "ReduceSum: half and float only");
    sim::VecReduceAll(sim::Op::ReduceSum, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                      workLocal.Ref(), sim::Lanes::Mask(true, mask, repeatTimes),
                      {1, uint32_t(srcRepStride)}, false, where);
}
template <typename T>
void ReduceSum(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
               const LocalTensor<T>& workLocal, const uint64_t mask[], const int32_t repeatTimes,
               const int32_t srcRepStride, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "ReduceSum: half and float only");
    sim::VecReduceAll(sim::Op::ReduceSum, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                      workLocal.Ref(), sim::Lanes::Bits(true, mask, repeatTimes),
                      {1, uint32_t(srcRepStride)}, false, where);
}
template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
               const LocalTensor<T>& workLocal, const int32_t count, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, float>, "ReduceSum: half and float only");
    sim::VecReduceAll(sim::Op::ReduceSum, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),
                      workLocal.Ref(), sim::Lanes::Count(count), {}, false, where);
}

}  // namespace AscendC

#endif  // ASCENDC_VECTOR_REDUCE_H
