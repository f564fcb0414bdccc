// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Everything here looks like something that a rule forbids, and is allowed.
#include "kernel_operator.h"

#include "../copy_tiling.h"

namespace block_copy_op {

constexpr float kScale = 1.5e-3f;
constexpr uint32_t kMask = 0x0F00u;

enum Side : uint8_t { kLeft, kRight };

// new, delete, std::min and double 1.0 in a comment are no code.
struct Shape {
    int32_t rows = 2;
    int32_t widths[2] = {64, 128};
};

template <typename T, int kWidth>
class Copier {
public:
    __aicore__ inline Copier(GM_ADDR x, GM_ADDR out, int64_t count)
        : count_{count}, half_(count / 2) {
        x_.SetGlobalBuffer((__gm__ T*)x);
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(out));
    }
    Copier(const Copier&) = delete;

    __aicore__ inline void Process(AscendC::TPipe* pipe) {
        pipe->InitBuffer(queue_, 2, kWidth * sizeof(T));
        const int64_t half = AscendC::GetSubBlockIdx();
        const int32_t offset = static_cast<int32_t>(half * half_ * sizeof(T) / sizeof(T));
        for (int64_t i = 0; i + kWidth <= half_; i += kWidth) {
            Copy(offset + i);
        }
    }

private:
    __aicore__ inline void Copy(int64_t offset) {
        AscendC::LocalTensor<T> tile = queue_.template AllocTensor<T>();
        AscendC::DataCopy(tile, x_[offset], kWidth);
        queue_.EnQue(tile);
        tile = queue_.template DeQue<T>();
        AscendC::DataCopy(out_[offset], tile, kWidth);
        queue_.FreeTensor(tile);
    }

    int64_t count_;
    int64_t half_;
    AscendC::GlobalTensor<T> x_;
    AscendC::GlobalTensor<T> out_;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 2> queue_;
};

}  // namespace block_copy_op

extern "C" __global__ __aicore__ void block_copy(GM_ADDR x, GM_ADDR out, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(CopyTiling);
    GET_TILING_DATA_WITH_STRUCT(CopyTiling, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        AscendC::TPipe pipe;
        block_copy_op::Copier<float, 128> copier(x, out, td.count);
        copier.Process(&pipe);
    }
}
