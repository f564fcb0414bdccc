// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule advanced-api: only the basic API.
#include "kernel_operator.h"
#include "lib/activation/kernel_operator_sigmoid_intf.h"  // bad: advanced-api
#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void advanced_api(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    AscendC::Sigmoid(tile, tile, 64);  // bad: advanced-api
}
