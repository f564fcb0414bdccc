// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_VECTOR_ARITH_H
#define ASCENDC_VECTOR_ARITH_H

#include "ascendc/tensor.h"
#include "sim/vector_ops.h"

namespace AscendC {

// Each instruction exists in three forms: a bit mask and repeats, a lane count and repeats, and a
// plain element count.

#define SIM_BINARY(name, ...)                                                                  \
    template <typename T, bool isSetMask = true>                                               \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,                 \
              const LocalTensor<T>& src1Local, uint64_t mask[], const uint8_t repeatTimes,     \
              const BinaryRepeatParams& p, SIM_WHERE) {                                        \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");        \
        sim::VecBinary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), \
                       src1Local.Ref(), sim::Lanes::Bits(isSetMask, mask, repeatTimes),        \
                       {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},   \
                       {p.src1BlkStride, p.src1RepStride}, where);                             \
    }                                                                                          \
    template <typename T, bool isSetMask = true>                                               \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,                 \
              const LocalTensor<T>& src1Local, uint64_t mask, const uint8_t repeatTimes,       \
              const BinaryRepeatParams& p, SIM_WHERE) {                                        \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");        \
        sim::VecBinary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), \
                       src1Local.Ref(), sim::Lanes::Mask(isSetMask, mask, repeatTimes),        \
                       {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},   \
                       {p.src1BlkStride, p.src1RepStride}, where);                             \
    }                                                                                          \
    template <typename T>                                                                      \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& src0Local,                 \
              const LocalTensor<T>& src1Local, const int32_t& calCount, SIM_WHERE) {           \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");        \
        sim::VecBinary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), src0Local.Ref(), \
                       src1Local.Ref(), sim::Lanes::Count(calCount), {}, {}, {}, where);       \
    }

SIM_BINARY(Add, half, float, int16_t, int32_t)
SIM_BINARY(Sub, half, float, int16_t, int32_t)
SIM_BINARY(Mul, half, float, int16_t, int32_t)
SIM_BINARY(Div, half, float)
SIM_BINARY(Max, half, float, int16_t, int32_t)
SIM_BINARY(Min, half, float, int16_t, int32_t)
SIM_BINARY(And, int16_t, uint16_t)
SIM_BINARY(Or, int16_t, uint16_t)
SIM_BINARY(AddRelu, half, float, int16_t)
SIM_BINARY(SubRelu, half, float, int16_t)
SIM_BINARY(FusedMulAdd, half, float)
SIM_BINARY(FusedMulAddRelu, half, float)
#undef SIM_BINARY

template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dstLocal, const LocalTensor<U>& src0Local,
               const LocalTensor<U>& src1Local, const uint64_t mask[], const uint8_t repeatTimes,
               const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "MulAddDst: unsupported element types");
    sim::VecMulAddDst(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(),
                      src0Local.Ref(), src1Local.Ref(),
                      sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                      {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                      {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dstLocal, const LocalTensor<U>& src0Local,
               const LocalTensor<U>& src1Local, uint64_t mask, const uint8_t repeatTimes,
               const BinaryRepeatParams& p, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "MulAddDst: unsupported element types");
    sim::VecMulAddDst(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(),
                      src0Local.Ref(), src1Local.Ref(),
                      sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                      {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                      {p.src1BlkStride, p.src1RepStride}, where);
}
template <typename T, typename U>
void MulAddDst(const LocalTensor<T>& dstLocal, const LocalTensor<U>& src0Local,
               const LocalTensor<U>& src1Local, const int32_t& calCount, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "MulAddDst: unsupported element types");
    sim::VecMulAddDst(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(),
                      src0Local.Ref(), src1Local.Ref(), sim::Lanes::Count(calCount), {}, {}, {},
                      where);
}

#define SIM_UNARY(name, ...)                                                                      \
    template <typename T, bool isSetMask = true>                                                  \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint64_t mask[],    \
              const uint8_t repeatTimes, const UnaryRepeatParams& p, SIM_WHERE) {                 \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");           \
        sim::VecUnary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                      sim::Lanes::Bits(isSetMask, mask, repeatTimes),                             \
                      {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where); \
    }                                                                                             \
    template <typename T, bool isSetMask = true>                                                  \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint64_t mask,      \
              const uint8_t repeatTimes, const UnaryRepeatParams& p, SIM_WHERE) {                 \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");           \
        sim::VecUnary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                      sim::Lanes::Mask(isSetMask, mask, repeatTimes),                             \
                      {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where); \
    }                                                                                             \
    template <typename T>                                                                         \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                     \
              const int32_t& calCount, SIM_WHERE) {                                               \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");           \
        sim::VecUnary(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                      sim::Lanes::Count(calCount), {}, {}, where);                                \
    }

SIM_UNARY(Exp, half, float)
SIM_UNARY(Ln, half, float)
SIM_UNARY(Abs, half, float)
SIM_UNARY(Sqrt, half, float)
SIM_UNARY(Rsqrt, half, float)
SIM_UNARY(Reciprocal, half, float)
SIM_UNARY(Relu, half, float, int32_t)
SIM_UNARY(Not, int16_t, uint16_t)
#undef SIM_UNARY

#define SIM_SCALAR(name, ...)                                                                      \
    template <typename T, bool isSetMask = true>                                                   \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                      \
              const T& scalarValue, uint64_t mask[], const uint8_t repeatTimes,                    \
              const UnaryRepeatParams& p, SIM_WHERE) {                                             \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");            \
        sim::VecScalar(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                       sim::ScalarBits(scalarValue),                                               \
                       sim::Lanes::Bits(isSetMask, mask, repeatTimes),                             \
                       {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where); \
    }                                                                                              \
    template <typename T, bool isSetMask = true>                                                   \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                      \
              const T& scalarValue, uint64_t mask, const uint8_t repeatTimes,                      \
              const UnaryRepeatParams& p, SIM_WHERE) {                                             \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");            \
        sim::VecScalar(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                       sim::ScalarBits(scalarValue),                                               \
                       sim::Lanes::Mask(isSetMask, mask, repeatTimes),                             \
                       {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where); \
    }                                                                                              \
    template <typename T, bool isSetMask = true>                                                   \
    void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                      \
              const T& scalarValue, const int32_t& calCount, SIM_WHERE) {                          \
        static_assert(sim::kOneOf<T, __VA_ARGS__>, #name ": unsupported element type");            \
        sim::VecScalar(sim::Op::name, sim::TypeTag<T>::value, dstLocal.Ref(), srcLocal.Ref(),      \
                       sim::ScalarBits(scalarValue), sim::Lanes::Count(calCount), {}, {}, where);  \
    }

SIM_SCALAR(Adds, half, float, int16_t, int32_t)
SIM_SCALAR(Muls, half, float, int16_t, int32_t)
SIM_SCALAR(Maxs, half, float, int16_t, int32_t)
SIM_SCALAR(Mins, half, float, int16_t, int32_t)
SIM_SCALAR(ShiftLeft, uint16_t, int16_t, uint32_t, int32_t)
SIM_SCALAR(ShiftRight, uint16_t, int16_t, uint32_t, int32_t)
SIM_SCALAR(LeakyRelu, half, float)
#undef SIM_SCALAR

template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dstLocal, const LocalTensor<U>& srcLocal, const U& scalarValue,
          uint64_t mask, const uint8_t repeatTimes, const UnaryRepeatParams& p, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "Axpy: unsupported element types");
    sim::VecAxpy(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(), srcLocal.Ref(),
                 sim::ScalarBits(scalarValue), sim::Lanes::Mask(isSetMask, mask, repeatTimes),
                 {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dstLocal, const LocalTensor<U>& srcLocal, const U& scalarValue,
          uint64_t mask[], const uint8_t repeatTimes, const UnaryRepeatParams& p, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "Axpy: unsupported element types");
    sim::VecAxpy(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(), srcLocal.Ref(),
                 sim::ScalarBits(scalarValue), sim::Lanes::Bits(isSetMask, mask, repeatTimes),
                 {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, where);
}
template <typename T, typename U>
void Axpy(const LocalTensor<T>& dstLocal, const LocalTensor<U>& srcLocal, const U& scalarValue,
          const int32_t& calCount, SIM_WHERE) {
    static_assert((IsSameType<T, U>::value && sim::kOneOf<T, half, float>) ||
                      (IsSameType<T, float>::value && IsSameType<U, half>::value),
                  "Axpy: unsupported element types");
    sim::VecAxpy(sim::TypeTag<T>::value, sim::TypeTag<U>::value, dstLocal.Ref(), srcLocal.Ref(),
                 sim::ScalarBits(scalarValue), sim::Lanes::Count(calCount), {}, {}, where);
}

}  // namespace AscendC

#endif  // ASCENDC_VECTOR_ARITH_H
