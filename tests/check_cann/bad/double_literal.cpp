// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule double-literal: 1.0 is a double, and so is everything it touches.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void double_literal(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    AscendC::Muls(tile, tile, static_cast<float>(1.5e-3), 64);  // bad: double-literal
    AscendC::Adds(tile, tile, 1.5e-3f, 64);
}
