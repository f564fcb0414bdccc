// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cmath>

#include "convert.h"
#include "defined.h"
#include "vector_engine.h"
#include "vector_math.h"

// Element-wise arithmetic. Each instruction and type has one compiled loop; a table finds it.
namespace sim {

namespace {

// Element functions.
struct AddF {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }
};
struct SubF {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a - b);
    }
};
struct MulF {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a * b);
    }
};
struct DivF {
    float operator()(float a, float b) const { return a / b; }
};
struct MaxF {
    template <typename T>
    T operator()(T a, T b) const {
        return a > b ? a : b;
    }
};
struct MinF {
    template <typename T>
    T operator()(T a, T b) const {
        return a < b ? a : b;
    }
};
struct AndF {
    uint16_t operator()(uint16_t a, uint16_t b) const { return a & b; }
};
struct OrF {
    uint16_t operator()(uint16_t a, uint16_t b) const { return a | b; }
};
struct AddReluF {
    template <typename T>
    T operator()(T a, T b) const {
        const T sum = static_cast<T>(a + b);
        return sum < T(0) ? T(0) : sum;
    }
};
struct SubReluF {
    template <typename T>
    T operator()(T a, T b) const {
        const T difference = static_cast<T>(a - b);
        return difference < T(0) ? T(0) : difference;
    }
};

// Half computes in float and rounds once.
constexpr size_t kChunk = 512;

template <typename T, typename F>
struct Binary {
    F f{};
    void operator()(T* d, const T* a, const T* b, size_t n) const {
#pragma GCC ivdep
        for (size_t i = 0; i < n; ++i) {
            d[i] = f(a[i], b[i]);
        }
    }
    void Block(T* d, const T* a, const T* b, size_t n) const {
        constexpr size_t kPer = kBlockBytes / sizeof(T);
        T block[kPer];
        std::memcpy(block, b, sizeof(block));
        for (size_t at = 0; at + kPer <= n; at += kPer) {
#pragma GCC ivdep
            for (size_t i = 0; i < kPer; ++i) {
                d[at + i] = f(a[at + i], block[i]);
            }
        }
        for (size_t i = n / kPer * kPer; i < n; ++i) {
            d[i] = f(a[i], block[i % kPer]);
        }
    }
};
template <typename F>
struct Binary<half, F> {
    F f{};
    void operator()(half* d, const half* a, const half* b, size_t n) const {
        float x[kChunk];
        float y[kChunk];
        for (size_t at = 0; at < n; at += kChunk) {
            const size_t count = std::min(kChunk, n - at);
            HalfToFloat(x, &a[at].bits, count);
            HalfToFloat(y, &b[at].bits, count);
            for (size_t i = 0; i < count; ++i) {
                x[i] = f(x[i], y[i]);
            }
            FloatToHalf(&d[at].bits, x, count);
        }
    }
};

template <typename T, typename F>
struct Unary {
    F f{};
    void operator()(T* d, const T* a, const T*, size_t n) const {
#pragma GCC ivdep
        for (size_t i = 0; i < n; ++i) {
            d[i] = f(a[i]);
        }
    }
};
template <typename F>
struct Unary<half, F> {
    F f{};
    void operator()(half* d, const half* a, const half*, size_t n) const {
        float x[kChunk];
        for (size_t at = 0; at < n; at += kChunk) {
            const size_t count = std::min(kChunk, n - at);
            HalfToFloat(x, &a[at].bits, count);
            for (size_t i = 0; i < count; ++i) {
                x[i] = f(x[i]);
            }
            FloatToHalf(&d[at].bits, x, count);
        }
    }
};

struct ExpF {
    __attribute__((always_inline)) float operator()(float x) const { return ExpOf(x); }
};
struct LnF {
    __attribute__((always_inline)) float operator()(float x) const { return LnOf(x); }
};
struct AbsF {
    float operator()(float x) const { return std::fabs(x); }
};
struct SqrtF {
    float operator()(float x) const { return __builtin_sqrtf(x); }
};
struct RsqrtF {
    float operator()(float x) const { return 1.0f / __builtin_sqrtf(x); }
};
struct ReciprocalF {
    float operator()(float x) const { return 1.0f / x; }
};
struct ReluF {
    template <typename T>
    T operator()(T x) const {
        return x < T(0) ? T(0) : x;
    }
};
struct NotF {
    uint16_t operator()(uint16_t x) const { return static_cast<uint16_t>(~x); }
};

// With a scalar.
template <typename F, typename T>
struct WithScalar {
    T scalar;
    T operator()(T x) const { return F()(x, scalar); }
};
struct LeakyF {
    float operator()(float x, float slope) const { return x >= 0 ? x : x * slope; }
};
struct ShiftLeftF {
    template <typename T>
    T operator()(T x, T by) const {
        return static_cast<T>(static_cast<typename std::make_unsigned<T>::type>(x) << by);
    }
};
struct ShiftRightF {
    template <typename T>
    T operator()(T x, T by) const {
        return static_cast<T>(x >> by);
    }
};

// Reading the destination as well: d = f(a, b, d).
template <typename D, typename S, typename F>
struct Ternary {
    F f{};
    void operator()(D* d, const S* a, const S* b, size_t n) const {
#pragma GCC ivdep
        for (size_t i = 0; i < n; ++i) {
            d[i] = static_cast<D>(
                f(static_cast<float>(a[i]), static_cast<float>(b[i]), static_cast<float>(d[i])));
        }
    }
    void Block(D* d, const S* a, const S* b, size_t n) const {
        constexpr size_t kPer = kBlockBytes / sizeof(S);
        S block[kPer];
        std::memcpy(static_cast<void*>(block), b, sizeof(block));
        for (size_t at = 0; at + kPer <= n; at += kPer) {
#pragma GCC ivdep
            for (size_t i = 0; i < kPer; ++i) {
                d[at + i] =
                    static_cast<D>(f(static_cast<float>(a[at + i]), static_cast<float>(block[i]),
                                     static_cast<float>(d[at + i])));
            }
        }
        for (size_t i = n / kPer * kPer; i < n; ++i) {
            d[i] = static_cast<D>(f(static_cast<float>(a[i]), static_cast<float>(block[i % kPer]),
                                    static_cast<float>(d[i])));
        }
    }
};
struct MulAddDstF {
    float operator()(float a, float b, float d) const { return a * b + d; }
};
struct FusedMulAddF {
    float operator()(float a, float b, float d) const { return a * d + b; }
};
struct FusedMulAddReluF {
    float operator()(float a, float b, float d) const {
        const float value = a * d + b;
        return value < 0 ? 0 : value;
    }
};
struct AxpyF {
    float scalar;
    float operator()(float a, float, float d) const { return a * scalar + d; }
};

using BinaryRun = void (*)(const Walk&, const Operand&, const Operand&, const Operand&);
using ScalarRun = void (*)(const Walk&, const Operand&, const Operand&, uint32_t);

template <typename T, typename F>
void RunBinary(const Walk& walk, const Operand& d, const Operand& a, const Operand& b) {
    RunRows<T, T, T>(walk, d, a, b, Binary<T, F>());
}
template <typename T, typename F>
void RunUnary(const Walk& walk, const Operand& d, const Operand& a, const Operand&) {
    RunRows<T, T, T>(walk, d, a, a, Unary<T, F>());
}
template <typename T, typename F>
void RunScalar(const Walk& walk, const Operand& d, const Operand& a, uint32_t bits) {
    using Value = typename std::conditional<std::is_same<T, half>::value, float, T>::type;
    Value scalar;
    if constexpr (std::is_same<T, half>::value) {
        scalar = HalfBitsToFloat(static_cast<uint16_t>(bits));
    } else {
        std::memcpy(&scalar, &bits, sizeof(scalar));
    }
    using Bound = WithScalar<F, Value>;
    RunRows<T, T, T>(walk, d, a, a, Unary<T, Bound>{Bound{scalar}});
}
template <typename D, typename S, typename F>
void RunTernary(const Walk& walk, const Operand& d, const Operand& a, const Operand& b) {
    RunRows<D, S, S>(walk, d, a, b, Ternary<D, S, F>());
}

// The loop of an element function for a type. int32 wraps, so sums and products of it compute
// unsigned; comparisons must not.
template <typename F>
struct Binaries {
    using Run = BinaryRun;
    template <typename T>
    static constexpr Run kLoop = RunBinary<T, F>;
};
template <typename F>
struct Scalars {
    using Run = ScalarRun;
    template <typename T>
    static constexpr Run kLoop = RunScalar<T, F>;
};
template <typename Loops, typename Int32>
typename Loops::Run PickArithmetic(DType type) {
    switch (type) {
        case DType::F32:
            return Loops::template kLoop<float>;
        case DType::F16:
            return Loops::template kLoop<half>;
        case DType::I32:
            return Loops::template kLoop<Int32>;
        case DType::I16:
            return Loops::template kLoop<int16_t>;
        default:
            return nullptr;
    }
}

BinaryRun PickBinary(Op op, DType type) {
    switch (op) {
        case Op::Add:
            return PickArithmetic<Binaries<AddF>, uint32_t>(type);
        case Op::Sub:
            return PickArithmetic<Binaries<SubF>, uint32_t>(type);
        case Op::Mul:
            return PickArithmetic<Binaries<MulF>, uint32_t>(type);
        case Op::Max:
            return PickArithmetic<Binaries<MaxF>, int32_t>(type);
        case Op::Min:
            return PickArithmetic<Binaries<MinF>, int32_t>(type);
        case Op::Div:
            return type == DType::F32 ? RunBinary<float, DivF> : RunBinary<half, DivF>;
        case Op::And:
            return RunBinary<uint16_t, AndF>;
        case Op::Or:
            return RunBinary<uint16_t, OrF>;
        case Op::AddRelu:
            return PickArithmetic<Binaries<AddReluF>, int32_t>(type);
        case Op::SubRelu:
            return PickArithmetic<Binaries<SubReluF>, int32_t>(type);
        case Op::FusedMulAdd:
            return type == DType::F32 ? RunTernary<float, float, FusedMulAddF>
                                      : RunTernary<half, half, FusedMulAddF>;
        case Op::FusedMulAddRelu:
            return type == DType::F32 ? RunTernary<float, float, FusedMulAddReluF>
                                      : RunTernary<half, half, FusedMulAddReluF>;
        default:
            return nullptr;
    }
}

BinaryRun PickUnary(Op op, DType type) {
    const bool wide = type == DType::F32;
    switch (op) {
        case Op::Exp:
            return wide ? RunUnary<float, ExpF> : RunUnary<half, ExpF>;
        case Op::Ln:
            return wide ? RunUnary<float, LnF> : RunUnary<half, LnF>;
        case Op::Abs:
            return wide ? RunUnary<float, AbsF> : RunUnary<half, AbsF>;
        case Op::Sqrt:
            return wide ? RunUnary<float, SqrtF> : RunUnary<half, SqrtF>;
        case Op::Rsqrt:
            return wide ? RunUnary<float, RsqrtF> : RunUnary<half, RsqrtF>;
        case Op::Reciprocal:
            return wide ? RunUnary<float, ReciprocalF> : RunUnary<half, ReciprocalF>;
        case Op::Relu:
            return wide                 ? RunUnary<float, ReluF>
                   : type == DType::F16 ? RunUnary<half, ReluF>
                                        : RunUnary<int32_t, ReluF>;
        case Op::Not:
            return RunUnary<uint16_t, NotF>;
        default:
            return nullptr;
    }
}

template <typename F>
ScalarRun PickScalarBits(DType type) {
    switch (type) {
        case DType::U16:
            return RunScalar<uint16_t, F>;
        case DType::I16:
            return RunScalar<int16_t, F>;
        case DType::U32:
            return RunScalar<uint32_t, F>;
        case DType::I32:
            return RunScalar<int32_t, F>;
        default:
            return nullptr;
    }
}

ScalarRun PickScalar(Op op, DType type) {
    switch (op) {
        case Op::Adds:
            return PickArithmetic<Scalars<AddF>, uint32_t>(type);
        case Op::Muls:
            return PickArithmetic<Scalars<MulF>, uint32_t>(type);
        case Op::Maxs:
            return PickArithmetic<Scalars<MaxF>, int32_t>(type);
        case Op::Mins:
            return PickArithmetic<Scalars<MinF>, int32_t>(type);
        case Op::ShiftLeft:
            return PickScalarBits<ShiftLeftF>(type);
        case Op::ShiftRight:
            return PickScalarBits<ShiftRightF>(type);
        case Op::LeakyRelu:
            return type == DType::F32 ? RunScalar<float, LeakyF> : RunScalar<half, LeakyF>;
        default:
            return nullptr;
    }
}

// The manual lets the destination of one repeat feed the second source of the next for these.
bool MayAccumulate(Op op, DType type, Stride d, Stride s1) {
    const bool listed = op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Max ||
                        op == Op::Min || op == Op::AddRelu || op == Op::SubRelu;
    return listed && type != DType::I16 && (d.repeat == 0 || s1.repeat == 0);
}

}  // namespace

void VecBinary(Op op, DType type, const Local& dst, const Local& src0, const Local& src1,
               const Lanes& lanes, Stride d, Stride s0, Stride s1, const Where& where) {
    Core& core = This();
    StartVector(core, op, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    const Operand a = Bind(core, src0, size, s0, walk, "source 0");
    const Operand b = Bind(core, src1, size, s1, walk, "source 1");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, a, false);
    CheckOverlap(core, walk, to, b, MayAccumulate(op, type, d, s1));
    Report(core, op,
           {AccessOf(a, walk, false), AccessOf(b, walk, false), AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        const Merge merge = op == Op::And                                        ? Merge::BitAnd
                            : op == Op::Or                                       ? Merge::BitOr
                            : op == Op::FusedMulAdd || op == Op::FusedMulAddRelu ? Merge::Keep
                                                                                 : Merge::Any;
        TrackLanes(core, walk, to, {{&a, "source 0"}, {&b, "source 1"}}, merge);
    }
    PickBinary(op, type)(walk, to, a, b);
}

void VecUnary(Op op, DType type, const Local& dst, const Local& src, const Lanes& lanes, Stride d,
              Stride s, const Where& where) {
    Core& core = This();
    StartVector(core, op, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    const Operand a = Bind(core, src, size, s, walk, "the source");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, a, false);
    Report(core, op, {AccessOf(a, walk, false), AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {{&a, "the source"}});
    }
    PickUnary(op, type)(walk, to, a, a);
}

void VecMulAddDst(DType type, DType sourceType, const Local& dst, const Local& src0,
                  const Local& src1, const Lanes& lanes, Stride d, Stride s0, Stride s1,
                  const Where& where) {
    Core& core = This();
    StartVector(core, Op::MulAddDst, where);
    const Walk walk = Resolve(core, lanes, SizeOf(type));
    const Operand to = Bind(core, dst, SizeOf(type), d, walk, "the destination");
    const Operand a = Bind(core, src0, SizeOf(sourceType), s0, walk, "source 0");
    const Operand b = Bind(core, src1, SizeOf(sourceType), s1, walk, "source 1");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, a, false);
    CheckOverlap(core, walk, to, b, false);
    Report(core, Op::MulAddDst,
           {AccessOf(a, walk, false), AccessOf(b, walk, false), AccessOf(to, walk, false),
            AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {{&a, "source 0"}, {&b, "source 1"}}, Merge::Keep);
    }
    const BinaryRun run = type == DType::F16         ? RunTernary<half, half, MulAddDstF>
                          : sourceType == DType::F16 ? RunTernary<float, half, MulAddDstF>
                                                     : RunTernary<float, float, MulAddDstF>;
    run(walk, to, a, b);
}

void VecScalar(Op op, DType type, const Local& dst, const Local& src, uint32_t scalar,
               const Lanes& lanes, Stride d, Stride s, const Where& where) {
    Core& core = This();
    StartVector(core, op, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    const Operand a = Bind(core, src, size, s, walk, "the source");
    if ((op == Op::ShiftLeft || op == Op::ShiftRight) && scalar > size * 8) {
        core.Fail("a shift by %d bits of %u", static_cast<int32_t>(scalar), size * 8);
    }
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, a, false);
    Report(core, op, {AccessOf(a, walk, false), AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {{&a, "the source"}});
    }
    PickScalar(op, type)(walk, to, a, scalar);
}

void VecAxpy(DType type, DType sourceType, const Local& dst, const Local& src, uint32_t scalar,
             const Lanes& lanes, Stride d, Stride s, const Where& where) {
    Core& core = This();
    StartVector(core, Op::Axpy, where);
    const Walk walk = Resolve(core, lanes, SizeOf(type));
    const Operand to = Bind(core, dst, SizeOf(type), d, walk, "the destination");
    const Operand a = Bind(core, src, SizeOf(sourceType), s, walk, "the source");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, a, false);
    Report(core, Op::Axpy,
           {AccessOf(a, walk, false), AccessOf(to, walk, false), AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {{&a, "the source"}}, Merge::Keep);
    }
    const float factor =
        sourceType == DType::F32 ? FloatOf(scalar) : HalfBitsToFloat(static_cast<uint16_t>(scalar));
    if (type == DType::F16) {
        RunRows<half, half, half>(walk, to, a, a, Ternary<half, half, AxpyF>{AxpyF{factor}});
    } else if (sourceType == DType::F16) {
        RunRows<float, half, half>(walk, to, a, a, Ternary<float, half, AxpyF>{AxpyF{factor}});
    } else {
        RunRows<float, float, float>(walk, to, a, a, Ternary<float, float, AxpyF>{AxpyF{factor}});
    }
}

}  // namespace sim
