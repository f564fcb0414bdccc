// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "kernel_operator.h"

#include "sim_test_row_update_tiling_data.h"

// state = scale * state + x + bias + offset, a row a time; copy = the new state.
namespace row_update {

constexpr uint32_t kMaxColumns = 1024;

class Kernel {
public:
    __aicore__ inline void Init(GM_ADDR state, GM_ADDR x, GM_ADDR bias, GM_ADDR copy,
                                const SimTestRowUpdateTilingData& td, AscendC::TPipe* pipe) {
        td_ = &td;
        state_.SetGlobalBuffer((__gm__ float*)state);
        x_.SetGlobalBuffer((__gm__ float*)x);
        xHalf_.SetGlobalBuffer((__gm__ bfloat16_t*)x);
        bias_.SetGlobalBuffer((__gm__ float*)bias);
        copy_.SetGlobalBuffer((__gm__ float*)copy);
        pipe->InitBuffer(in_, 2, kMaxColumns * sizeof(float));
        pipe->InitBuffer(out_, 2, kMaxColumns * sizeof(float));
        pipe->InitBuffer(wide_, kMaxColumns * sizeof(float));
    }

    __aicore__ inline void Process() {
        const int64_t cores = AscendC::GetBlockNum();
        for (int64_t row = AscendC::GetBlockIdx(); row < td_->rows; row += cores) {
            Row(row);
        }
    }

private:
    __aicore__ inline AscendC::LocalTensor<float> Load(const AscendC::GlobalTensor<float>& gm,
                                                       int64_t offset) {
        AscendC::LocalTensor<float> tile = in_.AllocTensor<float>();
        AscendC::DataCopyPad(tile, gm[offset], Row32(),
                             AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
        in_.EnQue(tile);
        return in_.DeQue<float>();
    }

    __aicore__ inline AscendC::DataCopyExtParams Row32() const {
        return {1, static_cast<uint32_t>(td_->columns * sizeof(float)), 0, 0, 0};
    }

    __aicore__ inline void AddX(const AscendC::LocalTensor<float>& sum, int64_t offset) {
        const int32_t count = static_cast<int32_t>(td_->columns);
        if (td_->isHalf == 0) {
            AscendC::LocalTensor<float> x = Load(x_, offset);
            AscendC::Add(sum, sum, x, count);
            in_.FreeTensor(x);
            return;
        }
        AscendC::LocalTensor<bfloat16_t> x = in_.AllocTensor<bfloat16_t>();
        AscendC::DataCopyPad(
            x, xHalf_[offset],
            AscendC::DataCopyExtParams{1, static_cast<uint32_t>(td_->columns * sizeof(bfloat16_t)),
                                       0, 0, 0},
            AscendC::DataCopyPadExtParams<bfloat16_t>{false, 0, 0, 0});
        in_.EnQue(x);
        x = in_.DeQue<bfloat16_t>();
        AscendC::LocalTensor<float> wide = wide_.Get<float>();
        AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(sum, sum, wide, count);
        in_.FreeTensor(x);
    }

    __aicore__ inline void Row(int64_t row) {
        const int64_t offset = row * td_->columns;
        const int32_t count = static_cast<int32_t>(td_->columns);
        AscendC::LocalTensor<float> sum = out_.AllocTensor<float>();
        AscendC::LocalTensor<float> state = Load(state_, offset);
        AscendC::Muls(sum, state, td_->scale, count);
        in_.FreeTensor(state);
        AscendC::PipeBarrier<PIPE_V>();
        AddX(sum, offset);
        AscendC::PipeBarrier<PIPE_V>();
        if (td_->hasBias != 0) {
            AscendC::LocalTensor<float> bias = Load(bias_, 0);
            AscendC::Add(sum, sum, bias, count);
            in_.FreeTensor(bias);
            AscendC::PipeBarrier<PIPE_V>();
        }
        AscendC::Adds(sum, sum, td_->offset, count);
        out_.EnQue(sum);
        sum = out_.DeQue<float>();
        AscendC::DataCopyPad(state_[offset], sum, Row32());
        if (td_->hasCopy != 0) {
            AscendC::DataCopyPad(copy_[offset], sum, Row32());
        }
        out_.FreeTensor(sum);
    }

    const SimTestRowUpdateTilingData* td_ = nullptr;
    AscendC::GlobalTensor<float> state_;
    AscendC::GlobalTensor<float> x_;
    AscendC::GlobalTensor<bfloat16_t> xHalf_;
    AscendC::GlobalTensor<float> bias_;
    AscendC::GlobalTensor<float> copy_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> out_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide_;
};

}  // namespace row_update

extern "C" __global__ __aicore__ void sim_test_row_update(GM_ADDR state, GM_ADDR x, GM_ADDR bias,
                                                          GM_ADDR counts, GM_ADDR stateRef,
                                                          GM_ADDR copy, GM_ADDR workspace,
                                                          GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(SimTestRowUpdateTilingData);
    GET_TILING_DATA_WITH_STRUCT(SimTestRowUpdateTilingData, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    row_update::Kernel kernel;
    kernel.Init(stateRef, x, bias, copy, td, &pipe);
    kernel.Process();
}
