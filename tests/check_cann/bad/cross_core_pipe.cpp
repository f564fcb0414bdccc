// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule cross-core: a flag is set on the pipe whose work must be done; 11..14 are SyncAll's.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void cross_core_pipe(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    AscendC::TPipe pipe;
    if ASCEND_IS_AIV {
        AscendC::CrossCoreSetFlag<2, PIPE_S>(1);      // bad: cross-core
        AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(12);  // bad: cross-core
    }
    if ASCEND_IS_AIC {
        AscendC::CrossCoreWaitFlag(1);
        AscendC::CrossCoreWaitFlag(12);  // bad: cross-core
    }
}
