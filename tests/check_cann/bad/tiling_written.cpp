// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Only the headers see it: for static shapes the tiling data are a constant.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void tiling_written(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    td.count = 4;  // bad: type-check
}
