// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule entry: CANN looks for an entry with the file's name.
#include "kernel_operator.h"

#include "../copy_tiling.h"

// bad-next: entry
extern "C" __global__ __aicore__ void entry_names(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
}
