// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_TYPES_H
#define ASCENDC_TYPES_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/machine.h"

// Keywords of the device dialect: plain C++ on a CPU.
#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define GM_ADDR __gm__ uint8_t*

enum pipe_t {
    PIPE_S = 0,
    PIPE_V = 1,
    PIPE_M = 2,
    PIPE_MTE1 = 3,
    PIPE_MTE2 = 4,
    PIPE_MTE3 = 5,
    PIPE_ALL = 6,
    PIPE_FIX = 10,
};

enum event_t {
    EVENT_ID0 = 0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7,
};

enum QuantMode_t {
    NoQuant = 0,
    F322F16 = 1,
    AttachF16Mul = 6,
    VREQ8 = 8,
    REQ8 = 9,
    VDEQF16 = 10,
    DEQF16 = 11,
    F322BF16 = 16,
    VQF322B8_PRE = 23,
    QF322B8_PRE = 24,
};

namespace sim {

inline uint32_t BitsOf(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline float FloatOf(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

// Nearest even; a NaN stays a NaN (quiet).
inline uint16_t FloatToBf16Bits(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

inline float Bf16BitsToFloat(uint16_t bits) {
    return FloatOf(static_cast<uint32_t>(bits) << 16);
}

inline float HalfBitsToFloat(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t rest = half & 0x7FFFu;
    // A subnormal half m * 2^-24 is (1 + m / 2^10) * 2^-14 less 2^-14, without a subnormal float.
    const float normalised = FloatOf((rest << 13) + 0x38800000u) - FloatOf(0x38800000u);
    const uint32_t finite = rest < 0x400u ? BitsOf(normalised) : (rest << 13) + 0x38000000u;
    const uint32_t infNan = 0x7F800000u | (rest << 13);
    return FloatOf((rest >= 0x7C00u ? infNan : finite) | sign);
}

// Nearest even, overflow to infinity.
inline uint16_t FloatToHalfBits(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
    }
    if (magnitude >= 0x477FF000u) {
        return static_cast<uint16_t>(sign | 0x7C00u);
    }
    if (magnitude < 0x38800000u) {
        // Adding 0.5 lets the float adder round at the half's last denormal place.
        const float sum = FloatOf(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (BitsOf(sum) - 0x3F000000u));
    }
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace sim

// Storage types: values pass through float. The device has no bfloat16 arithmetic, so there are no
// operators here and the vector instructions refuse the type.
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    bfloat16_t(float value) : bits(sim::FloatToBf16Bits(value)) {}
    operator float() const { return sim::Bf16BitsToFloat(bits); }
    float ToFloat() const { return sim::Bf16BitsToFloat(bits); }
};

struct half {
    uint16_t bits;
    half() = default;
    half(float value) : bits(sim::FloatToHalfBits(value)) {}
    operator float() const { return sim::HalfBitsToFloat(bits); }
    float ToFloat() const { return sim::HalfBitsToFloat(bits); }
};

namespace sim {

template <typename T>
struct TypeTag;
#define SIM_TYPE_TAG(type, tag)                    \
    template <>                                    \
    struct TypeTag<type> {                         \
        static constexpr DType value = DType::tag; \
    };
SIM_TYPE_TAG(float, F32)
SIM_TYPE_TAG(half, F16)
SIM_TYPE_TAG(bfloat16_t, BF16)
SIM_TYPE_TAG(int8_t, I8)
SIM_TYPE_TAG(uint8_t, U8)
SIM_TYPE_TAG(int16_t, I16)
SIM_TYPE_TAG(uint16_t, U16)
SIM_TYPE_TAG(int32_t, I32)
SIM_TYPE_TAG(uint32_t, U32)
SIM_TYPE_TAG(int64_t, I64)
SIM_TYPE_TAG(uint64_t, U64)
#undef SIM_TYPE_TAG

template <typename T, typename... List>
constexpr bool kOneOf = (std::is_same<T, List>::value || ...);

}  // namespace sim

namespace AscendC {

using TEventID = int8_t;
using TTagType = int32_t;

constexpr int32_t AIC = 1;
constexpr int32_t AIV = 2;
constexpr int32_t ONE_BLK_SIZE = 32;
constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr int32_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t DEFAULT_REPEAT_TIME = 1;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr int32_t MAX_REPEAT_TIMES = 255;
constexpr int32_t DEFAULT_C0_SIZE = 32;
constexpr int32_t BLOCK_CUBE = 16;
constexpr int32_t CUBE_MAX_SIZE = 256;
constexpr int32_t BYTE_PER_FRACTAL = 512;
constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;
constexpr uint64_t FULL_MASK = 0xffffffffffffffff;
constexpr uint64_t MASK_PLACEHOLDER = 0;

enum class TPosition : uint8_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM = SPM,
    TSCM,
    C2PIPE2GM,
    C2PIPE2LOCAL,
    MAX,
};
using QuePosition = TPosition;

enum class HardEvent : uint8_t {
    MTE2_MTE1,
    MTE1_MTE2,
    MTE1_M,
    M_MTE1,
    MTE2_V,
    V_MTE2,
    MTE3_V,
    V_MTE3,
    M_V,
    V_M,
    V_V,
    MTE3_MTE1,
    MTE1_MTE3,
    MTE1_V,
    MTE2_M,
    M_MTE2,
    V_MTE1,
    M_FIX,
    FIX_M,
    MTE3_MTE2,
    MTE2_MTE3,
    S_V,
    V_S,
    S_MTE2,
    MTE2_S,
    S_MTE3,
    MTE3_S,
    MTE2_FIX,
    FIX_MTE2,
    FIX_S,
    M_S,
    FIX_MTE3,
    MTE1_FIX,
    FIX_MTE1,
    FIX_FIX,
    MAX,
};

enum class RoundMode : uint8_t {
    CAST_NONE = 0,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD,
};
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t {
    VSEL_CMPMASK_SPR = 0,
    VSEL_TENSOR_SCALAR_MODE,
    VSEL_TENSOR_TENSOR_MODE,
};
enum class ReduceOrder : uint8_t {
    ORDER_VALUE_INDEX = 0,
    ORDER_INDEX_VALUE,
    ORDER_ONLY_VALUE,
    ORDER_ONLY_INDEX,
};
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class CacheMode {
    CACHE_MODE_DISABLE = 0,
    CACHE_MODE_NORMAL = 1,
    CACHE_MODE_LAST = 2,
    CACHE_MODE_PERSISTENT = 4,
};
enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };
enum class TBufState : uint8_t { FREE = 0, OCCUPIED, ENQUE, DEQUE };

template <typename T>
using PrimT = T;

template <typename T, typename U>
struct IsSameType {
    static constexpr bool value = std::is_same<T, U>::value;
};

}  // namespace AscendC

namespace sim {

constexpr Space SpaceOf(AscendC::TPosition position) {
    using P = AscendC::TPosition;
    return position == P::A1 || position == P::B1 || position == P::C1 || position == P::TSCM
               ? Space::L1
           : position == P::A2        ? Space::L0A
           : position == P::B2        ? Space::L0B
           : position == P::C2        ? Space::BiasTable
           : position == P::CO1       ? Space::L0C
           : position == P::C2PIPE2GM ? Space::FixBuf
           : position == P::VECIN || position == P::VECOUT || position == P::VECCALC ? Space::Ub
                                                                                     : Space::Gm;
}

const char* Name(AscendC::TPosition position);
const char* Name(AscendC::HardEvent event);

}  // namespace sim

#endif  // ASCENDC_TYPES_H
