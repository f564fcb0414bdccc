// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule no-std: the device has no C++ standard library.
#include "kernel_operator.h"
#include <algorithm>  // bad: no-std
#include "../copy_tiling.h"

__aicore__ inline int64_t Smaller(int64_t a, int64_t b) {
    return std::min(a, b);  // bad: no-std
}

extern "C" __global__ __aicore__ void std_function(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    (void)Smaller(td.count, 4);
}
