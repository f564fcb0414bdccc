// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// state <- M_r state + E_r over the ranks of one sequence, in place, all in fp32.
//
//   AIC  product = M_r state          (fp32 Mmad; state was rewritten by the AIVs before)
//   AIV  state   = product + E_r      (half of the key rows on each AIV)
//
// Columns of the state never mix, so a task is one head's state or a slice of its columns; the bits
// do not depend on the slicing. Two tasks are in flight on a core: while the vector cores finish
// one the cube core multiplies the other.
//
// MACs: keyDim * keyDim * valueDim a head and merged rank.
#include "kernel_operator.h"

#include "common/cross_core.h"
#include "common/chunk_index.h"
#include "common/cube.h"
#include "common/transpose.h"
#include "chunk_kda_merge_fwd_bwd_tiling_data.h"

namespace kda {

using AscendC::GlobalTensor;
using AscendC::LocalTensor;
using AscendC::TPosition;
using AscendC::TQue;

namespace {

constexpr uint32_t kInFlight = 2;     // tasks of a core that alternate
constexpr uint32_t kDepthStep = 64;   // K is multiplied in halves: both fit one half of L0A
constexpr uint32_t kVectorRows = 32;  // rows an AIV adds at a time
constexpr uint32_t kTileBytes = kKeyDim * kValueDim * sizeof(float);

using ProductReady = CubeToVectorFlag<0>;
using StateReady = VectorToCubeFlag<1>;

// The walk over tasks and ranks that both kinds of cores follow.
class MergeTasks {
public:
    __aicore__ inline MergeTasks() {}
    __aicore__ inline void Init(const ChunkKdaMergeFwdBwdTilingData& tiling, GM_ADDR state,
                                GM_ADDR summaries, GM_ADDR workspace) {
        tiling_ = tiling;
        columns_ = static_cast<uint32_t>(tiling.sliceColumns);
        state_.SetGlobalBuffer((__gm__ float*)state);
        summaries_.SetGlobalBuffer((__gm__ float*)summaries);
        products_.SetGlobalBuffer((__gm__ float*)workspace);
    }

protected:
    __aicore__ inline int64_t TaskCount() const { return tiling_.heads * tiling_.slices; }
    __aicore__ inline bool VFirst() const { return tiling_.stateVFirst != 0; }
    // The slice's columns of the task's state; V first, these are rows of keyDim.
    __aicore__ inline GlobalTensor<float> State(int64_t task) const {
        const int64_t head = task / tiling_.slices;
        return state_[head * tiling_.keyDim * tiling_.valueDim +
                      SliceColumn(task) * (VFirst() ? tiling_.keyDim : 1)];
    }
    // A column of [E | M] of the task's head.
    __aicore__ inline GlobalTensor<float> Summary(int64_t task, int64_t step,
                                                  int64_t column) const {
        const int64_t rank = tiling_.firstRank + step * tiling_.rankStep;
        const int64_t head = task / tiling_.slices;
        return summaries_[(rank * tiling_.heads + head) * tiling_.keyDim * SummaryPitch() + column];
    }
    __aicore__ inline int64_t SummaryPitch() const { return tiling_.valueDim + tiling_.keyDim; }
    __aicore__ inline int64_t SliceColumn(int64_t task) const {
        return task % tiling_.slices * tiling_.sliceColumns;
    }
    __aicore__ inline GlobalTensor<float> Product(uint32_t lane) const {
        return products_[(BlockOfCore() * kInFlight + lane) * tiling_.keyDim * columns_];
    }

    ChunkKdaMergeFwdBwdTilingData tiling_;
    uint32_t columns_ = 0;
    GlobalTensor<float> state_;
    GlobalTensor<float> summaries_;
    GlobalTensor<float> products_;
};

class MergeCube : public MergeTasks {
public:
    __aicore__ inline MergeCube() {}
    __aicore__ inline void Run(AscendC::TPipe& pipe) {
        // A kernel before this one may have left it on: fp32 operands would lose half their bits.
        AscendC::SetHF32Mode(false);
        l0_.Init(pipe);
        pipe.InitBuffer(summaryTiles_, 2, kTileBytes);
        pipe.InitBuffer(stateTiles_, 2, kTileBytes);
        const int64_t stride = AscendC::GetBlockNum();
        for (int64_t task = BlockOfCore(); task < TaskCount(); task += kInFlight * stride) {
            const uint32_t lanes = task + stride < TaskCount() ? kInFlight : 1;
            for (int64_t step = 0; step < tiling_.rankCount; ++step) {
                for (uint32_t lane = 0; lane < lanes; ++lane) {
                    MultiplyRank(task + lane * stride, step, lane);
                }
            }
            // The last products were read: their slots belong to the next tasks.
            for (uint32_t lane = 0; lane < lanes && tiling_.rankCount > 0; ++lane) {
                StateReady::Wait();
            }
        }
    }

private:
    __aicore__ inline void MultiplyRank(int64_t task, int64_t step, uint32_t lane) {
        const uint32_t keys = kKeyDim;
        LocalTensor<float> m = summaryTiles_.AllocTensor<float>();
        LoadNdToL1(m, Summary(task, step, tiling_.valueDim), keys, keys, SummaryPitch());
        summaryTiles_.EnQue(m);
        if (step > 0) {
            StateReady::Wait();
        }
        LocalTensor<float> s = stateTiles_.AllocTensor<float>();
        if (VFirst()) {
            LoadNdToL1(s, State(task), columns_, keys, keys);
        } else {
            LoadNdToL1Squares(s, State(task), keys, columns_,
                              static_cast<uint32_t>(tiling_.valueDim));
        }
        stateTiles_.EnQue(s);

        m = summaryTiles_.DeQue<float>();
        s = stateTiles_.DeQue<float>();
        LocalTensor<float> c = l0_.AllocC();
        for (uint32_t depth = 0; depth < keys; depth += kDepthStep) {
            LocalTensor<float> a = l0_.AllocA<float>();
            LoadA(a, m[depth * keys], keys, kDepthStep, keys);
            LocalTensor<float> b = l0_.AllocB<float>();
            if (VFirst()) {
                LoadBTransposed(b, s[depth * columns_], kDepthStep, columns_, columns_);
            } else {
                LoadBFromSquares(b, s[depth * columns_], kDepthStep, columns_);
            }
            l0_.Multiply(c, a, b, keys, columns_, kDepthStep, depth > 0);
        }
        summaryTiles_.FreeTensor(m);
        stateTiles_.FreeTensor(s);
        l0_.FinishC(c);
        StoreC(Product(lane), c, keys, columns_, columns_);
        ProductReady::Set();
        l0_.FreeC(c);
    }

    CubeBuffers l0_;
    TQue<TPosition::A1, 2> summaryTiles_;
    TQue<TPosition::B1, 2> stateTiles_;
};

class MergeVector : public MergeTasks {
public:
    __aicore__ inline MergeVector() {}
    __aicore__ inline void Run(AscendC::TPipe& pipe) {
        const uint32_t bytes = kVectorRows * kValueDim * sizeof(float);
        pipe.InitBuffer(productTiles_, 2, bytes);
        pipe.InitBuffer(offsetTiles_, 2, bytes);
        pipe.InitBuffer(resultTiles_, 2, bytes);
        const int64_t stride = AscendC::GetBlockNum();
        for (int64_t task = BlockOfCore(); task < TaskCount(); task += kInFlight * stride) {
            const uint32_t lanes = task + stride < TaskCount() ? kInFlight : 1;
            for (int64_t step = 0; step < tiling_.rankCount; ++step) {
                for (uint32_t lane = 0; lane < lanes; ++lane) {
                    ProductReady::Wait();
                    AddRows(task + lane * stride, step, lane);
                    StateReady::Set();
                }
            }
        }
    }

private:
    __aicore__ inline void AddRows(int64_t task, int64_t step, uint32_t lane) {
        const uint32_t rows = kKeyDim / kVectorCoresPerBlock;
        const uint32_t first = AscendC::GetSubBlockIdx() * rows;
        const uint32_t count = kVectorRows * columns_;
        const uint32_t rowBytes = columns_ * sizeof(float);
        const auto padding = AscendC::DataCopyPadExtParams<float>(false, 0, 0, 0.0f);
        AscendC::DataCopyExtParams offsetRows(
            kVectorRows, rowBytes,
            static_cast<uint32_t>((SummaryPitch() - columns_) * sizeof(float)), 0, 0);
        AscendC::DataCopyExtParams stateRows(
            kVectorRows, rowBytes, 0,
            static_cast<uint32_t>((tiling_.valueDim - columns_) * sizeof(float)), 0);
        AscendC::DataCopyExtParams stateKeys(
            static_cast<uint16_t>(columns_), kVectorRows * sizeof(float), 0,
            static_cast<uint32_t>((tiling_.keyDim - kVectorRows) * sizeof(float)), 0);
        for (uint32_t row = first; row < first + rows; row += kVectorRows) {
            LocalTensor<float> product = productTiles_.AllocTensor<float>();
            AscendC::DataCopy(product, Product(lane)[row * columns_], count);
            productTiles_.EnQue(product);
            LocalTensor<float> offset = offsetTiles_.AllocTensor<float>();
            AscendC::DataCopyPad(offset,
                                 Summary(task, step, row * SummaryPitch() + SliceColumn(task)),
                                 offsetRows, padding);
            offsetTiles_.EnQue(offset);

            product = productTiles_.DeQue<float>();
            offset = offsetTiles_.DeQue<float>();
            LocalTensor<float> result = resultTiles_.AllocTensor<float>();
            if (VFirst()) {
                AscendC::Add(product, product, offset, count);
                AscendC::PipeBarrier<PIPE_V>();
                TransposeTile(result, kVectorRows, product, columns_, kVectorRows, columns_);
            } else {
                AscendC::Add(result, product, offset, count);
            }
            productTiles_.FreeTensor(product);
            offsetTiles_.FreeTensor(offset);
            resultTiles_.EnQue(result);
            result = resultTiles_.DeQue<float>();
            if (VFirst()) {
                AscendC::DataCopyPad(State(task)[row], result, stateKeys);
            } else {
                AscendC::DataCopyPad(State(task)[row * tiling_.valueDim], result, stateRows);
            }
            resultTiles_.FreeTensor(result);
        }
    }

    TQue<TPosition::VECIN, 2> productTiles_;
    TQue<TPosition::VECIN, 2> offsetTiles_;
    TQue<TPosition::VECOUT, 2> resultTiles_;
};

}  // namespace
}  // namespace kda

extern "C" __global__ __aicore__ void chunk_kda_merge_fwd_bwd(GM_ADDR state, GM_ADDR summaries,
                                                              GM_ADDR stateRef, GM_ADDR workspace,
                                                              GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaMergeFwdBwdTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaMergeFwdBwdTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    (void)state;  // the same memory as stateRef
    AscendC::TPipe pipe;
    GM_ADDR user = AscendC::GetUserWorkspace(workspace);
    if ASCEND_IS_AIC {
        kda::MergeCube cube;
        cube.Init(tilingData, stateRef, summaries, user);
        cube.Run(pipe);
    }
    if ASCEND_IS_AIV {
        kda::MergeVector vector;
        vector.Init(tilingData, stateRef, summaries, user);
        vector.Run(pipe);
    }
}
