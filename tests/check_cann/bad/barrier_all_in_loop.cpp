// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule barrier-all-in-loop: PIPE_ALL empties every pipe on every turn.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void barrier_all_in_loop(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                          GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    for (int64_t i = 0; i < td.count; ++i) {
        AscendC::Adds(tile, tile, 1.0f, 64);
        AscendC::PipeBarrier<PIPE_ALL>();  // bad: barrier-all-in-loop
    }
}
