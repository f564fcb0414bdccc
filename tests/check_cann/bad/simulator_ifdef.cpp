// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule simulator-ifdef: the NPU and the CPU run the same source.
#include "kernel_operator.h"
#ifdef ASCEND_SIM  // bad: simulator-ifdef
#endif
#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void simulator_ifdef(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
}
