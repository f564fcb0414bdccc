// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule gm-pointer: an element pointer without __gm__ means local memory on the NPU.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void gm_pointer(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::GlobalTensor<float> gm;
    gm.SetGlobalBuffer((float*)x);  // bad: gm-pointer
}
