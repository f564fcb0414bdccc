// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule entry: workspace and tiling are the last two parameters.
#include "kernel_operator.h"

#include "../copy_tiling.h"

// bad-next: entry
extern "C" __global__ __aicore__ void entry_without_workspace(GM_ADDR x, GM_ADDR out,
                                                              GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
}
