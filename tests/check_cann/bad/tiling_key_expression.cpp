// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule tiling-key: TILING_KEY_IS is read as text by the op compiler.
#include "kernel_operator.h"

#include "../copy_tiling.h"

constexpr uint64_t kFast = 3;

extern "C" __global__ __aicore__ void tiling_key_expression(GM_ADDR x, GM_ADDR out,
                                                            GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(kFast)) {  // bad: tiling-key
        return;
    }
}
