// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule scalar-in-loop: GetValue and SetValue stop the vector pipe on every turn.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void scalar_in_loop(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    for (int32_t i = 0; i < 64; ++i) {
        tile.SetValue(i, 0.0f);  // bad: scalar-in-loop
    }
    for (int32_t i = 0; i < 2; ++i) {
        tile.SetValue(i, 1.0f);  // scalar: two seeds a task
    }
}
