// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Only the headers see it: DataCopy takes tensors of one type.
#include "kernel_operator.h"

#include "../copy_tiling.h"

extern "C" __global__ __aicore__ void wrong_argument(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    AscendC::LocalTensor<float> tile = buffer.Get<float>();
    AscendC::GlobalTensor<half> gm;
    gm.SetGlobalBuffer((__gm__ half*)x);
    AscendC::DataCopy(tile, gm, 64);  // bad: type-check
}
