// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_VECTOR_MATH_H
#define SIM_VECTOR_MATH_H

#include <cstdint>
#include <limits>

#include "ascendc/types.h"

// exp and ln without branches or calls, so that loops over them vectorise; forced inline, because
// a call in the loop would undo that. At most about 1 ulp off.
namespace sim {

__attribute__((always_inline)) inline float ExpOf(float x) {
    constexpr float kLog2E = 1.44269504088896341f;
    constexpr float kLn2High = 0.693359375f;
    constexpr float kLn2Low = -2.12194440e-4f;
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    // Comparisons written so that a NaN passes through.
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float shifted = x * kLog2E + kMagic;
    const float n = shifted - kMagic;
    const int32_t exponent = static_cast<int32_t>(BitsOf(shifted)) - 0x4B400000;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    // In two steps: 2^exponent itself may be out of range where the result is not.
    const int32_t half = exponent >> 1;
    const float first = FloatOf(static_cast<uint32_t>(half + 127) << 23);
    const float second = FloatOf(static_cast<uint32_t>(exponent - half + 127) << 23);
    return p * first * second;
}

__attribute__((always_inline)) inline float LnOf(float x) {
    constexpr float kTiny = 1.17549435e-38f;
    const bool tiny = x < kTiny;
    const float scaled = tiny ? x * 8388608.0f : x;
    const uint32_t bits = BitsOf(scaled);
    // mantissa in [sqrt(1/2), sqrt(2))
    const uint32_t shifted = bits - 0x3F3504F3u;
    int32_t exponent = static_cast<int32_t>(shifted) >> 23;
    const float m = FloatOf((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
    const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z;
    y = y + e * -2.12194440e-4f;
    y = y - 0.5f * z;
    float result = (m + y) + e * 0.693359375f;
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    result = x == kInf ? kInf : result;
    result = x == 0.0f ? -kInf : result;
    return x >= 0.0f ? result : kNan;
}

}  // namespace sim

#endif  // SIM_VECTOR_MATH_H
