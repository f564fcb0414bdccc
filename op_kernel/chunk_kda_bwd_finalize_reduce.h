// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The end of bwd_finalize: da_log and ddt_bias from the steps' partial sums, after all blocks are
// done with them. A head's rows are added in an order that depends on their number only, so any
// block count gives the same bits. A head without chunks gets zeros.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_REDUCE_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_REDUCE_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_buffers.h"
#include "chunk_kda_bwd_finalize_shared.h"

namespace kda {
namespace bwd_finalize {

class Reduce {
public:
    __aicore__ inline Reduce(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm,
                             VectorBuffers& buffers)
        : tiling_(tiling), b_(buffers) {
        partials_ = PartialSums(tiling, gm.workspace);
        daLog_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.daLog));
        ddtBias_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.ddtBias));
    }

    __aicore__ inline void Run() {
        const int64_t cores = AscendC::GetBlockNum() * AscendC::GetSubBlockNum();
        for (int64_t head = AscendC::GetBlockIdx(); head < tiling_.geometry.valueHeads;
             head += cores) {
            SumHead(head);
        }
    }

private:
    static constexpr int32_t kBatchRows = 16;  // one tile of VectorBuffers
    static_assert(kBatchRows * kPartialFloats == VectorBuffers::kTileFloats, "a batch is a tile");
    static constexpr int32_t kRowRepeats = kPartialFloats / kLanes;

    __aicore__ inline void SumHead(int64_t head) {
        const Tile sum = b_.Work(0);
        AscendC::Duplicate(sum, 0.0f, kFullMask, kBatchRows * kRowRepeats, 1, kRepeatBlocks);
        AscendC::PipeBarrier<PIPE_V>();
        const int64_t rows = tiling_.geometry.totalChunks;
        for (int64_t first = 0; first < rows; first += kBatchRows) {
            const int32_t count =
                rows - first < kBatchRows ? static_cast<int32_t>(rows - first) : kBatchRows;
            Tile batch = b_.AllocFull();
            LoadRows(batch, partials_[(head * rows + first) * kPartialFloats], count,
                     kPartialFloats, kPartialFloats);
            b_.EnQueFull(batch);
            batch = b_.TakeFull();
            AscendC::Add(sum, sum, batch, kFullMask, static_cast<uint8_t>(count * kRowRepeats),
                         Contiguous());
            AscendC::PipeBarrier<PIPE_V>();
            b_.FreeFull(batch);
        }
        for (int32_t half = kBatchRows / 2; half >= 1; half /= 2) {
            AscendC::Add(sum, sum, sum[half * kPartialFloats], kFullMask,
                         static_cast<uint8_t>(half * kRowRepeats), Contiguous());
            AscendC::PipeBarrier<PIPE_V>();
        }
        // Row 0: 128 sums of dg x, which are da_log together, then 128 sums of dg.
        auto out = b_.AllocOut<float>();
        AscendC::Adds(out, sum[kKeyDim], 0.0f, kFullMask, kKeyDim / kLanes, ContiguousUnary());
        AscendC::Add(sum, sum, sum[kLanes], kFullMask, 1, Contiguous());
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::WholeReduceSum<float>(out[kKeyDim], sum, kLanes, 1, 1, 1, kRepeatBlocks);
        AscendC::PipeBarrier<PIPE_V>();  // the next head clears sum
        b_.EnQueOut(out);
        out = b_.DeQueOut<float>();
        StoreValues(ddtBias_[head * kKeyDim], out, kKeyDim);
        StoreValues(daLog_[head], out[kKeyDim], 1);
        b_.FreeOut(out);
    }

    const ChunkKdaBwdFinalizeTilingData& tiling_;
    VectorBuffers& b_;
    AscendC::GlobalTensor<float> partials_;
    AscendC::GlobalTensor<float> daLog_;
    AscendC::GlobalTensor<float> ddtBias_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_REDUCE_H
