// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule sync-all: the op compiler looks for the text SyncAll<...>();
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void sync_all_form(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                    GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    AscendC::TPipe pipe;
    AscendC::SyncAll<false>();
    AscendC::SyncAll();  // bad: sync-all
}
