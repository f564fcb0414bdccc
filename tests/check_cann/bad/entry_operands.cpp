// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule entry-operands: the op definition has one input more.
#include "kernel_operator.h"

#include "../copy_tiling.h"

// bad-next: entry-operands
extern "C" __global__ __aicore__ void entry_operands(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
}
