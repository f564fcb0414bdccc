// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "kernel_operator.h"

#include "sim_test_matmul_tiling_data.h"

// out[t] = x[t] y[t]^T + out-independent vector work: the AIC multiplies 64 x 64 bf16 tiles into
// the workspace, the AIVs add 1 to one half each and write the result.
namespace matmul_op {

constexpr int32_t kSide = 64;
constexpr int32_t kTile = kSide * kSide;
constexpr uint16_t kProductReady = 0;
constexpr uint16_t kSlotFree = 1;

__aicore__ inline void LoadNz(const AscendC::LocalTensor<bfloat16_t>& tile,
                              const AscendC::GlobalTensor<bfloat16_t>& source) {
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = kSide;
    params.dValue = kSide;
    params.srcNdMatrixStride = 0;
    params.srcDValue = kSide;
    params.dstNzC0Stride = kSide;
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 0;
    AscendC::DataCopy(tile, source, params);
}

class Cube {
public:
    __aicore__ inline Cube(GM_ADDR x, GM_ADDR y, GM_ADDR product, AscendC::TPipe* pipe) {
        x_.SetGlobalBuffer((__gm__ bfloat16_t*)x);
        y_.SetGlobalBuffer((__gm__ bfloat16_t*)y);
        product_.SetGlobalBuffer((__gm__ float*)product);
        pipe->InitBuffer(a1_, 2, kTile * sizeof(bfloat16_t));
        pipe->InitBuffer(b1_, 2, kTile * sizeof(bfloat16_t));
        pipe->InitBuffer(a2_, 2, kTile * sizeof(bfloat16_t));
        pipe->InitBuffer(b2_, 2, kTile * sizeof(bfloat16_t));
        pipe->InitBuffer(c_, 2, kTile * sizeof(float));
    }

    __aicore__ inline void Process(int32_t tasks) {
        const int32_t cores = AscendC::GetBlockNum();
        const int32_t block = AscendC::GetBlockIdx();
        int32_t round = 0;
        for (int32_t task = block; task < tasks; task += cores, ++round) {
            if (round >= 2) {
                AscendC::CrossCoreWaitFlag(kSlotFree);
            }
            Multiply(task, block * 2 + round % 2);
            AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kProductReady);
        }
        for (int32_t left = round < 2 ? round : 2; left > 0; --left) {
            AscendC::CrossCoreWaitFlag(kSlotFree);
        }
    }

private:
    __aicore__ inline void Multiply(int32_t task, int32_t slot) {
        const int64_t offset = static_cast<int64_t>(task) * kTile;
        AscendC::LocalTensor<bfloat16_t> a1 = a1_.AllocTensor<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> b1 = b1_.AllocTensor<bfloat16_t>();
        LoadNz(a1, x_[offset]);
        LoadNz(b1, y_[offset]);
        a1_.EnQue(a1);
        b1_.EnQue(b1);
        Split();
        AscendC::LocalTensor<bfloat16_t> a2 = a2_.DeQue<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> b2 = b2_.DeQue<bfloat16_t>();
        AscendC::LocalTensor<float> c = c_.AllocTensor<float>();
        AscendC::MmadParams mmad;
        mmad.m = kSide;
        mmad.n = kSide;
        mmad.k = kSide;
        mmad.cmatrixInitVal = true;
        AscendC::Mmad(c, a2, b2, mmad);
        a2_.FreeTensor(a2);
        b2_.FreeTensor(b2);
        c_.EnQue(c);
        c = c_.DeQue<float>();
        AscendC::FixpipeParamsV220 fix;
        fix.nSize = kSide;
        fix.mSize = kSide;
        fix.srcStride = kSide;
        fix.dstStride = kSide;
        fix.ndNum = 1;
        fix.quantPre = QuantMode_t::NoQuant;
        AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(
            product_[static_cast<int64_t>(slot) * kTile], c, fix);
        c_.FreeTensor(c);
    }

    __aicore__ inline void Split() {
        AscendC::LocalTensor<bfloat16_t> a1 = a1_.DeQue<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> b1 = b1_.DeQue<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> a2 = a2_.AllocTensor<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> b2 = b2_.AllocTensor<bfloat16_t>();
        AscendC::LoadData2DParams load;
        load.repeatTimes = kSide / 16;
        load.srcStride = kSide / 16;
        for (int32_t m1 = 0; m1 < kSide / 16; ++m1) {
            load.startIndex = static_cast<uint16_t>(m1);
            AscendC::LoadData(a2[m1 * kSide * 16], a1, load);
        }
        load.startIndex = 0;
        load.repeatTimes = (kSide / 16) * (kSide / 16);
        load.srcStride = 1;
        AscendC::LoadData(b2, b1, load);
        a2_.EnQue(a2);
        b2_.EnQue(b2);
        a1_.FreeTensor(a1);
        b1_.FreeTensor(b1);
    }

    AscendC::GlobalTensor<bfloat16_t> x_;
    AscendC::GlobalTensor<bfloat16_t> y_;
    AscendC::GlobalTensor<float> product_;
    AscendC::TQue<AscendC::TPosition::A1, 2> a1_;
    AscendC::TQue<AscendC::TPosition::B1, 2> b1_;
    AscendC::TQue<AscendC::TPosition::A2, 2> a2_;
    AscendC::TQue<AscendC::TPosition::B2, 2> b2_;
    AscendC::TQue<AscendC::TPosition::CO1, 2> c_;
};

class Vector {
public:
    __aicore__ inline Vector(GM_ADDR product, GM_ADDR out, AscendC::TPipe* pipe) {
        product_.SetGlobalBuffer((__gm__ float*)product);
        out_.SetGlobalBuffer((__gm__ float*)out);
        pipe->InitBuffer(in_, 2, kTile / 2 * sizeof(float));
        pipe->InitBuffer(result_, 2, kTile / 2 * sizeof(float));
    }

    __aicore__ inline void Process(int32_t tasks, int32_t breakRule) {
        const int32_t cores = AscendC::GetBlockNum();
        const int32_t block = AscendC::GetBlockIdx() / 2;
        const int32_t half = AscendC::GetSubBlockIdx() * kTile / 2;
        int32_t round = 0;
        for (int32_t task = block; task < tasks; task += cores, ++round) {
            AscendC::CrossCoreWaitFlag(kProductReady);
            const int32_t slot = block * 2 + round % 2;
            AscendC::LocalTensor<float> in = in_.AllocTensor<float>();
            AscendC::DataCopy(in, product_[static_cast<int64_t>(slot) * kTile + half], kTile / 2);
            AscendC::CrossCoreSetFlag<2, PIPE_MTE2>(kSlotFree);
            in_.EnQue(in);
            in = in_.DeQue<float>();
            AscendC::LocalTensor<float> result = result_.AllocTensor<float>();
            AscendC::Adds(result, in, 1.0f, kTile / 2);
            in_.FreeTensor(in);
            result_.EnQue(result);
            result = result_.DeQue<float>();
            // A write behind the last task: the simulator must refuse it.
            const int64_t target = breakRule != 0 ? tasks : task;
            AscendC::DataCopy(out_[target * kTile + half], result, kTile / 2);
            result_.FreeTensor(result);
        }
    }

private:
    AscendC::GlobalTensor<float> product_;
    AscendC::GlobalTensor<float> out_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> result_;
};

}  // namespace matmul_op

extern "C" __global__ __aicore__ void sim_test_matmul(GM_ADDR x, GM_ADDR y, GM_ADDR out,
                                                      GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(SimTestMatmulTilingData);
    GET_TILING_DATA_WITH_STRUCT(SimTestMatmulTilingData, td, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GM_ADDR product = AscendC::GetUserWorkspace(workspace);
    AscendC::TPipe pipe;
    if ASCEND_IS_AIC {
        matmul_op::Cube cube(x, y, product, &pipe);
        cube.Process(td.tasks);
    }
    if ASCEND_IS_AIV {
        matmul_op::Vector vector(product, out, &pipe);
        vector.Process(td.tasks, td.breakRule);
    }
}
