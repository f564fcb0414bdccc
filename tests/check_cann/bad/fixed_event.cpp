// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule event-id: ids belong to TPipe, a fixed one meets its queues'.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void fixed_event(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::SetFlag<AscendC::HardEvent::V_S>(3);           // bad: event-id
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(EVENT_ID3);  // bad: event-id
}
