// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CONVERT_H
#define SIM_CONVERT_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ascendc/types.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Conversions and transposes of contiguous data, written so that the compiler vectorises them.
namespace sim {

inline void Bf16ToFloat(float* dst, const uint16_t* src, size_t count) {
    uint32_t* bits = reinterpret_cast<uint32_t*>(dst);
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
        bits[i] = static_cast<uint32_t>(src[i]) << 16;
    }
}

// Nearest even.
inline void FloatToBf16(uint16_t* dst, const float* src, size_t count) {
    using Bits = uint32_t __attribute__((vector_size(32)));
    using Short = uint16_t __attribute__((vector_size(16)));
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        Bits b;
        std::memcpy(&b, src + i, sizeof(b));
        const Bits rounded = (b + 0x7FFFu + ((b >> 16) & 1u)) >> 16;
        const Bits quiet = (b >> 16) | 0x40u;
        const Bits result = (b & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded;
        const Short narrow = __builtin_convertvector(result, Short);
        std::memcpy(dst + i, &narrow, sizeof(narrow));
    }
    for (; i < count; ++i) {
        dst[i] = FloatToBf16Bits(src[i]);
    }
}

inline void HalfToFloat(float* dst, const uint16_t* src, size_t count) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(
            dst + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i))));
    }
#endif
    for (size_t left = count - i; left > 0; --left, ++i) {
        dst[i] = HalfBitsToFloat(src[i]);
    }
}

inline void FloatToHalf(uint16_t* dst, const float* src, size_t count) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < count; ++i) {
        dst[i] = FloatToHalfBits(src[i]);
    }
}

using Float8 = float __attribute__((vector_size(32)));
using Int8 = int32_t __attribute__((vector_size(32)));

inline Float8 LoadFloat8(const float* from) {
    Float8 value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

inline void StoreFloat8(float* to, Float8 value) {
    std::memcpy(to, &value, sizeof(value));
}

inline void Transpose8x8(float* dst, size_t dstPitch, const float* src, size_t srcPitch) {
    Float8 r[8];
    for (int i = 0; i < 8; ++i) {
        r[i] = LoadFloat8(src + i * srcPitch);
    }
    Float8 s[8];
    for (int i = 0; i < 8; i += 2) {
        s[i] = __builtin_shuffle(r[i], r[i + 1], Int8{0, 8, 1, 9, 4, 12, 5, 13});
        s[i + 1] = __builtin_shuffle(r[i], r[i + 1], Int8{2, 10, 3, 11, 6, 14, 7, 15});
    }
    for (int i = 0; i < 8; i += 4) {
        for (int j = 0; j < 2; ++j) {
            r[i + 2 * j] =
                __builtin_shuffle(s[i + j], s[i + j + 2], Int8{0, 1, 8, 9, 4, 5, 12, 13});
            r[i + 2 * j + 1] =
                __builtin_shuffle(s[i + j], s[i + j + 2], Int8{2, 3, 10, 11, 6, 7, 14, 15});
        }
    }
    for (int i = 0; i < 4; ++i) {
        StoreFloat8(dst + i * dstPitch,
                    __builtin_shuffle(r[i], r[i + 4], Int8{0, 1, 2, 3, 8, 9, 10, 11}));
        StoreFloat8(dst + (i + 4) * dstPitch,
                    __builtin_shuffle(r[i], r[i + 4], Int8{4, 5, 6, 7, 12, 13, 14, 15}));
    }
}

inline void Transpose16x16(float* dst, const float* src) {
    for (int r = 0; r < 16; r += 8) {
        for (int c = 0; c < 16; c += 8) {
            Transpose8x8(dst + c * 16 + r, 16, src + r * 16 + c, 16);
        }
    }
}

}  // namespace sim

#endif  // SIM_CONVERT_H
