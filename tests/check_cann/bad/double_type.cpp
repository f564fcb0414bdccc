// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule no-double: the device has no double.
#include "kernel_operator.h"

#include "../copy_tiling.h"

__aicore__ inline float Half(float x) {
    const double wide = x;  // bad: no-double
    return static_cast<float>(wide * 0.5f);
}

extern "C" __global__ __aicore__ void double_type(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    (void)Half(1.0f);
}
