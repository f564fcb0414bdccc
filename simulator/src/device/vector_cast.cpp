// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cmath>
#include <limits>

#include "convert.h"
#include "defined.h"
#include "vector_engine.h"

namespace sim {

namespace {

using AscendC::RoundMode;

// The everyday conversions are loops of their own; the rest goes element by element through double.
struct Bf16ToFloatRow {
    void operator()(float* d, const uint16_t* a, const uint16_t*, size_t n) const {
        Bf16ToFloat(d, a, n);
    }
};
struct FloatToBf16Row {
    void operator()(uint16_t* d, const float* a, const float*, size_t n) const {
        FloatToBf16(d, a, n);
    }
};
struct HalfToFloatRow {
    void operator()(float* d, const uint16_t* a, const uint16_t*, size_t n) const {
        HalfToFloat(d, a, n);
    }
};
struct FloatToHalfRow {
    void operator()(uint16_t* d, const float* a, const float*, size_t n) const {
        FloatToHalf(d, a, n);
    }
};
struct IntToFloatRow {
    void operator()(float* d, const int32_t* a, const int32_t*, size_t n) const {
#pragma GCC ivdep
        for (size_t i = 0; i < n; ++i) {
            d[i] = static_cast<float>(a[i]);
        }
    }
};

double RoundInteger(double value, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return std::floor(value);
        case RoundMode::CAST_CEIL:
            return std::ceil(value);
        case RoundMode::CAST_ROUND:
            return std::round(value);
        case RoundMode::CAST_TRUNC:
            return std::trunc(value);
        case RoundMode::CAST_ODD: {
            const double down = std::trunc(value);
            if (down == value || std::fmod(down, 2.0) != 0) {
                return down;
            }
            return down + (value < 0 ? -1 : 1);
        }
        default:
            return std::nearbyint(value);
    }
}

// Rounds to a format with `digits` significant bits and least exponent `least`.
double RoundFloat(double value, RoundMode mode, int digits, int least, double largest) {
    if (value == 0 || !std::isfinite(value)) {
        return value;
    }
    int exponent = 0;
    std::frexp(value, &exponent);
    const int unit = std::max(exponent - digits, least);
    const double rounded = std::ldexp(RoundInteger(std::ldexp(value, -unit), mode), unit);
    if (std::fabs(rounded) > largest) {
        return std::copysign(std::numeric_limits<double>::infinity(), value);
    }
    // A result of zero keeps its sign.
    return rounded == 0 ? std::copysign(0.0, value) : rounded;
}

double ReadElement(DType type, const uint8_t* at) {
    switch (type) {
        case DType::F32: {
            float value;
            std::memcpy(&value, at, 4);
            return value;
        }
        case DType::F16:
        case DType::BF16: {
            uint16_t bits;
            std::memcpy(&bits, at, 2);
            return type == DType::F16 ? HalfBitsToFloat(bits) : Bf16BitsToFloat(bits);
        }
        case DType::I8:
            return *reinterpret_cast<const int8_t*>(at);
        case DType::U8:
            return *at;
        case DType::I16:
            return *reinterpret_cast<const int16_t*>(at);
        default:
            return *reinterpret_cast<const int32_t*>(at);
    }
}

template <typename T>
void StoreInteger(uint8_t* at, double value) {
    T result = 0;
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
        result = std::numeric_limits<T>::max();
    } else if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
        result = std::numeric_limits<T>::min();
    } else if (value == value) {
        result = static_cast<T>(value);
    }
    std::memcpy(at, &result, sizeof(T));
}

void WriteElement(DType type, RoundMode mode, double value, uint8_t* at) {
    switch (type) {
        case DType::F32: {
            const float result =
                static_cast<float>(RoundFloat(value, mode, 24, -149, 3.4028234663852886e38));
            std::memcpy(at, &result, 4);
            return;
        }
        case DType::F16: {
            const uint16_t bits =
                FloatToHalfBits(static_cast<float>(RoundFloat(value, mode, 11, -24, 65504.0)));
            std::memcpy(at, &bits, 2);
            return;
        }
        case DType::BF16: {
            const uint16_t bits = FloatToBf16Bits(
                static_cast<float>(RoundFloat(value, mode, 8, -133, 3.3895313892515355e38)));
            std::memcpy(at, &bits, 2);
            return;
        }
        case DType::I8:
            return StoreInteger<int8_t>(at, RoundInteger(value, mode));
        case DType::U8:
            return StoreInteger<uint8_t>(at, RoundInteger(value, mode));
        case DType::I16:
            return StoreInteger<int16_t>(at, RoundInteger(value, mode));
        case DType::I32:
            return StoreInteger<int32_t>(at, RoundInteger(value, mode));
        default:
            return StoreInteger<int64_t>(at, RoundInteger(value, mode));
    }
}

void ConvertOne(DType to, DType from, RoundMode mode, uint8_t* d, const uint8_t* s) {
    if (from == DType::I64) {
        int64_t value;
        std::memcpy(&value, s, 8);
        if (to == DType::F32) {
            // Through double would round twice.
            const float result = static_cast<float>(value);
            std::memcpy(d, &result, 4);
        } else {
            const int64_t kept = std::min<int64_t>(std::max<int64_t>(value, INT32_MIN), INT32_MAX);
            const int32_t result = static_cast<int32_t>(kept);
            std::memcpy(d, &result, 4);
        }
        return;
    }
    const double value = ReadElement(from, s);
    if (from == DType::F32 && to == DType::F32) {
        const float result = static_cast<float>(RoundInteger(value, mode));
        std::memcpy(d, &result, 4);
        return;
    }
    WriteElement(to, mode, value, d);
}

uint32_t Modes(std::initializer_list<RoundMode> modes) {
    uint32_t set = 0;
    for (RoundMode mode : modes) {
        set |= 1u << static_cast<uint32_t>(mode);
    }
    return set;
}

// The combinations of the manual for this chip; 0: none.
uint32_t Allowed(DType to, DType from) {
    const uint32_t none = Modes({RoundMode::CAST_NONE});
    const uint32_t five = Modes({RoundMode::CAST_RINT, RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL,
                                 RoundMode::CAST_ROUND, RoundMode::CAST_TRUNC});
    const uint32_t odd = Modes({RoundMode::CAST_ODD});
    switch (from) {
        case DType::F32:
            return to == DType::F16 ? none | five | odd
                   : to == DType::F32 || to == DType::BF16 || to == DType::I32 ||
                           to == DType::I64 || to == DType::I16
                       ? five
                       : 0;
        case DType::F16:
            return to == DType::F32                       ? none
                   : to == DType::I32 || to == DType::I16 ? five
                   : to == DType::I8 || to == DType::U8   ? none | five
                                                          : 0;
        case DType::BF16:
            return to == DType::F32 ? none : to == DType::I32 ? five : 0;
        case DType::U8:
        case DType::I8:
            return to == DType::F16 ? none : 0;
        case DType::I16:
            return to == DType::F16 ? none | five : to == DType::F32 ? none : 0;
        case DType::I32:
            return to == DType::F32 ? none | five : to == DType::I64 || to == DType::I16 ? none : 0;
        case DType::I64:
            return to == DType::I32 ? none : to == DType::F32 ? five : 0;
        default:
            return 0;
    }
}

}  // namespace

void VecCast(DType to, DType from, RoundMode round, const Local& dst, const Local& src,
             const Lanes& lanes, Stride d, Stride s, const Where& where) {
    Core& core = This();
    StartVector(core, Op::Cast, where);
    const uint32_t allowed = Allowed(to, from);
    if (!((allowed >> static_cast<uint32_t>(round)) & 1)) {
        static const char* const names[] = {"NONE",  "RINT",  "FLOOR", "CEIL",
                                            "ROUND", "TRUNC", "ODD"};
        core.Fail("%s to %s with CAST_%s is not supported", Name(from), Name(to),
                  names[static_cast<size_t>(round)]);
    }
    const uint32_t toSize = SizeOf(to);
    const uint32_t fromSize = SizeOf(from);
    const Walk walk = Resolve(core, lanes, std::max(toSize, fromSize));
    if (lanes.counted) {
        // The narrow side advances by its own bytes.
        const uint32_t widest = std::max(toSize, fromSize);
        d.repeat = 8 * toSize / widest;
        s.repeat = 8 * fromSize / widest;
    }
    const Operand out = Bind(core, dst, toSize, d, walk, "the destination");
    const Operand in = Bind(core, src, fromSize, s, walk, "the source");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, out, in, false);
    Report(core, Op::Cast, {AccessOf(in, walk, false), AccessOf(out, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, out, {{&in, "the source"}});
    }
    if (from == DType::BF16 && to == DType::F32) {
        return RunRows<float, uint16_t, uint16_t>(walk, out, in, in, Bf16ToFloatRow());
    }
    if (from == DType::F16 && to == DType::F32) {
        return RunRows<float, uint16_t, uint16_t>(walk, out, in, in, HalfToFloatRow());
    }
    if (from == DType::F32 && to == DType::BF16 && round == RoundMode::CAST_RINT) {
        return RunRows<uint16_t, float, float>(walk, out, in, in, FloatToBf16Row());
    }
    if (from == DType::F32 && to == DType::F16 &&
        (round == RoundMode::CAST_RINT || round == RoundMode::CAST_NONE)) {
        return RunRows<uint16_t, float, float>(walk, out, in, in, FloatToHalfRow());
    }
    if (from == DType::I32 && to == DType::F32 &&
        (round == RoundMode::CAST_RINT || round == RoundMode::CAST_NONE)) {
        return RunRows<float, int32_t, int32_t>(walk, out, in, in, IntToFloatRow());
    }
    for (uint32_t r = 0; r < walk.rows; ++r) {
        for (uint32_t lane = 0; lane < walk.ActiveIn(r); ++lane) {
            if (walk.Takes(lane)) {
                ConvertOne(to, from, round, out.Lane(r, lane), in.Lane(r, lane));
            }
        }
    }
}

}  // namespace sim
