// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule no-dynamic: no heap on the device.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void heap_object(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    int32_t* count = new int32_t(4);  // bad: no-dynamic gm-pointer
    (void)count;
}
