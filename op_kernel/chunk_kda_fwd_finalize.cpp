// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// fwd_finalize: o = qg_scaled h + Aqk v_new. Cube only: both products of a chunk and value head
// accumulate in one L0C tile, and one Fixpipe rounds it once and writes it where the output's
// layout wants it. Two tasks are in flight: one loads while the other multiplies.
//
// Cube work of a task with R rows, in multiply-adds: max(R, 16 if R = 1) * 128 * (128 + R),
// 1,572,864 for a full chunk.
#include "kernel_operator.h"

#include "chunk_kda_fwd_finalize_tiling_data.h"
#include "common/chunk_index.h"
#include "common/cube.h"

namespace kda {

struct FwdFinalizeOperands {
    GM_ADDR qgScaled;
    GM_ADDR aqk;
    GM_ADDR vNew;
    GM_ADDR h;
    GM_ADDR cuSeqlens;
    GM_ADDR chunkIndices;
    GM_ADDR o;
};

// T: bfloat16_t or half, the type of every operand.
template <typename T>
class FwdFinalize {
public:
    __aicore__ inline FwdFinalize(const ChunkKdaFwdFinalizeTilingData& tiling,
                                  const FwdFinalizeOperands& gm)
        : tiling_(tiling), gm_(gm), index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices) {}

    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        l0_.Init(pipe);
        pipe.InitBuffer(left_, 2, (kKeyDim + kChunkRows) * kChunkRows * sizeof(T));
        pipe.InitBuffer(right_, 2, (kKeyDim + kChunkRows) * kValueDim * sizeof(T));
    }

    __aicore__ inline void Process() {
        const int64_t heads = tiling_.geometry.valueHeads;
        const int64_t tasks = index_.ChunkTaskCount(heads);
        const int64_t blocks = AscendC::GetBlockNum();
        int64_t task = AscendC::GetBlockIdx();
        if (task < tasks) {
            Load(index_.LocateTask(task, heads));
        }
        for (; task < tasks; task += blocks) {
            if (task + blocks < tasks) {
                Load(index_.LocateTask(task + blocks, heads));
            }
            Compute(index_.LocateTask(task, heads));
        }
    }

private:
    using L1 = AscendC::LocalTensor<T>;

    __aicore__ inline AscendC::GlobalTensor<T> Io(GM_ADDR base, int64_t offset) const {
        AscendC::GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer((__gm__ T*)base + offset);
        return tensor;
    }

    __aicore__ inline void Load(const ChunkPlace& place) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        L1 left = left_.template AllocTensor<T>();
        LoadNdToL1(left, Io(gm_.qgScaled, index_.ValueCacheOffset(place, kKeyDim)), rows, kKeyDim,
                   kKeyDim, kChunkRows);
        LoadNdToL1(left[kChunkRows * kKeyDim],
                   Io(gm_.aqk, index_.ValueCacheOffset(place, kChunkRows)), rows, kChunkRows,
                   kChunkRows, kChunkRows);
        left_.EnQue(left);
        L1 right = right_.template AllocTensor<T>();
        const bool vFirst = tiling_.stateVFirst != 0;
        LoadNdToL1(right, Io(gm_.h, index_.ChunkStateOffset(place, kKeyDim, kValueDim)),
                   vFirst ? kValueDim : kKeyDim, vFirst ? kKeyDim : kValueDim,
                   vFirst ? kKeyDim : kValueDim);
        LoadNdToL1(right[kKeyDim * kValueDim],
                   Io(gm_.vNew, index_.ValueCacheOffset(place, kValueDim)), rows, kValueDim,
                   kValueDim, kChunkRows);
        right_.EnQue(right);
    }

    __aicore__ inline void Compute(const ChunkPlace& place) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        L1 left = left_.template DeQue<T>();
        L1 right = right_.template DeQue<T>();
        auto c = l0_.AllocC();
        auto a = l0_.template AllocA<T>();
        LoadA(a, left, rows, kKeyDim, kChunkRows);
        auto b = l0_.template AllocB<T>();
        if (tiling_.stateVFirst != 0) {
            LoadBTransposed(b, right, kKeyDim, kValueDim, kValueDim);
        } else {
            LoadB(b, right, kKeyDim, kValueDim, kKeyDim);
        }
        l0_.Multiply(c, a, b, rows, kValueDim, kKeyDim);
        a = l0_.template AllocA<T>();
        LoadA(a, left[kChunkRows * kKeyDim], rows, rows, kChunkRows);
        b = l0_.template AllocB<T>();
        LoadB(b, right[kKeyDim * kValueDim], rows, kValueDim, kChunkRows);
        left_.FreeTensor(left);
        right_.FreeTensor(right);
        l0_.Multiply(c, a, b, rows, kValueDim, rows, true);
        l0_.FinishC(c);
        StoreC(Io(gm_.o, ChunkIndex::RowOffset(tiling_.output, place)), c, rows, kValueDim,
               static_cast<uint64_t>(tiling_.output.tokenStride));
        l0_.FreeC(c);
    }

    const ChunkKdaFwdFinalizeTilingData& tiling_;
    const FwdFinalizeOperands& gm_;
    ChunkIndex index_;
    CubeBuffers l0_;
    AscendC::TQue<AscendC::TPosition::A1, 2> left_;   // qg_scaled, Aqk
    AscendC::TQue<AscendC::TPosition::B1, 2> right_;  // h, v_new
};

template <typename T>
__aicore__ inline void RunFwdFinalize(const ChunkKdaFwdFinalizeTilingData& tiling,
                                      const FwdFinalizeOperands& gm) {
    AscendC::TPipe pipe;
    FwdFinalize<T> stage(tiling, gm);
    stage.Init(pipe);
    stage.Process();
}

}  // namespace kda

extern "C" __global__ __aicore__ void chunk_kda_fwd_finalize(GM_ADDR qg_scaled, GM_ADDR aqk,
                                                             GM_ADDR v_new, GM_ADDR h,
                                                             GM_ADDR cu_seqlens,
                                                             GM_ADDR chunk_indices, GM_ADDR o,
                                                             GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaFwdFinalizeTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaFwdFinalizeTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    (void)workspace;
    if ASCEND_IS_AIC {
        const kda::FwdFinalizeOperands operands = {qg_scaled,  aqk,           v_new, h,
                                                   cu_seqlens, chunk_indices, o};
        if (tilingData.geometry.ioIsHalf != 0) {
            kda::RunFwdFinalize<half>(tilingData, operands);
        } else {
            kda::RunFwdFinalize<bfloat16_t>(tilingData, operands);
        }
    }
}
