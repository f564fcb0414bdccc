// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_FLOAT_MODE_H
#define SIM_FLOAT_MODE_H

#include <cstdint>

#include "settings.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace sim {

// This thread's floating-point mode while it works for a launch.
class FloatMode {
public:
    FloatMode() : before_(Read()) {
        if (!KeepSubnormals()) {
            Write(before_ | kFlush);
        }
    }
    ~FloatMode() { Write(before_); }
    FloatMode(const FloatMode&) = delete;
    FloatMode& operator=(const FloatMode&) = delete;

private:
#if defined(__SSE__)
    using Register = uint32_t;
    static constexpr Register kFlush = 0x8040;  // results (FTZ) and operands (DAZ)
    static Register Read() { return _mm_getcsr(); }
    static void Write(Register value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
    using Register = uint64_t;
    static constexpr Register kFlush = 1ull << 24;  // FPCR.FZ
    static Register Read() {
        Register value;
        asm volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void Write(Register value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
    using Register = uint32_t;
    static constexpr Register kFlush = 0;
    static Register Read() { return 0; }
    static void Write(Register) {}
#endif

    Register before_;
};

}  // namespace sim

#endif  // SIM_FLOAT_MODE_H
