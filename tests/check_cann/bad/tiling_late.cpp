// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule tiling-first: reading the tiling copies through UB address 0.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void tiling_late(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);  // bad: tiling-first
    AscendC::TPipe pipe;
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
}
