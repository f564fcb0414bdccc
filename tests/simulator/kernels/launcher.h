// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef TESTS_SIMULATOR_KERNELS_LAUNCHER_H
#define TESTS_SIMULATOR_KERNELS_LAUNCHER_H

#include "kernel_operator.h"

// Every test kernel has this shape: three inputs, one output that is also read, and plain numbers
// as its tiling.
using TestKernel = void (*)(GM_ADDR in0, GM_ADDR in1, GM_ADDR in2, GM_ADDR out, GM_ADDR workspace,
                            GM_ADDR tiling);

struct TestParams {
    int64_t v[256];  // device.py's PARAMS
};

struct TestRegistrar {
    TestRegistrar(const char* name, TestKernel kernel);
};

#define TEST_KERNEL(name)                                                                          \
    extern "C" __global__ __aicore__ void name(GM_ADDR in0, GM_ADDR in1, GM_ADDR in2, GM_ADDR out, \
                                               GM_ADDR workspace, GM_ADDR tiling);                 \
    static const TestRegistrar name##Registrar(#name, &name);                                      \
    extern "C" __global__ __aicore__ void name(                                                    \
        [[maybe_unused]] GM_ADDR in0, [[maybe_unused]] GM_ADDR in1, [[maybe_unused]] GM_ADDR in2,  \
        [[maybe_unused]] GM_ADDR out, [[maybe_unused]] GM_ADDR workspace,                          \
        [[maybe_unused]] GM_ADDR tiling)

template <typename T>
AscendC::GlobalTensor<T> Gm(GM_ADDR address) {
    AscendC::GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer((__gm__ T*)address);
    return tensor;
}

// Waits until everything issued so far is done; tests are not about speed.
inline void Settle() {
    AscendC::PipeBarrier<PIPE_ALL>();
}

inline float FloatBits(int64_t bits) {
    const uint32_t word = static_cast<uint32_t>(bits);
    float value;
    __builtin_memcpy(&value, &word, sizeof(value));
    return value;
}

#endif  // TESTS_SIMULATOR_KERNELS_LAUNCHER_H
