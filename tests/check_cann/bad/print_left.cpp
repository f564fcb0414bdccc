// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule no-print: debugging output must not stay in a kernel.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void print_left(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    AscendC::DumpTensor(tile, 1, 64);  // bad: no-print
}
