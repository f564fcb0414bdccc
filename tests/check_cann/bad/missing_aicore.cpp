// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule aicore: the device compiler calls only functions marked __aicore__.
#include "kernel_operator.h"

#include "../copy_tiling.h"

class Copier {
public:
    __aicore__ inline explicit Copier(int64_t count) : count_{count} {}
    __aicore__ inline int64_t Count() const { return count_; }
    inline int64_t Rows() const {  // bad: aicore
        return count_ / 64;
    }

private:
    int64_t count_;
};

extern "C" __global__ __aicore__ void missing_aicore(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    (void)Copier(td.count).Rows();
}
