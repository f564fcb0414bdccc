// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// bwd_prepare: what the backward needs from d_o before the state scan, chunk by chunk.
//   dAqk     = scale * tril(d_o v_new^T)   fp32, the gradient of the unscaled masked score
//   dv_local = Aqk^T d_o
//   dq_raw   = d_o h^T                     fp32, no scale and no gate
//
// A task is one chunk of one value head with L real rows. The AIC reads d_o into L1 once for its
// three products; dv_local and dq_raw leave by Fixpipe in their final form. dAqk goes through a
// ring of workspace slots to the AIVs (half of the rows each), which scale and mask it by Select:
// what the masked half holds, stale columns of a short chunk included, cannot leak. MACs: 2 * L * L
// * 128 + L * 128 * 128.
#include "kernel_operator.h"

#include "chunk_kda_bwd_prepare_tiling_data.h"
#include "common/chunk_index.h"
#include "common/cross_core.h"
#include "common/cube.h"
#include "common/vector_tile.h"

namespace kda {
namespace bwd_prepare {

constexpr uint32_t kRingDepth = 2;
constexpr int32_t kScoreFloats = kChunkRows * kChunkRows;
using ScoreRing = CubeToVectorRing<0, 1, kRingDepth>;

struct Pointers {
    GM_ADDR aqk;
    GM_ADDR vNew;
    GM_ADDR outputGrad;
    GM_ADDR h;
    GM_ADDR cuSeqlens;
    GM_ADDR chunkIndices;
    GM_ADDR dAqk;
    GM_ADDR dvLocal;
    GM_ADDR dqRaw;
    GM_ADDR workspace;
};

__aicore__ inline void BindScores(AscendC::GlobalTensor<float>& scores, GM_ADDR workspace) {
    scores.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace) +
                           BlockOfCore() * kRingDepth * kScoreFloats);
}

// T: bfloat16_t or half, the type of every operand but the fp32 outputs.
template <typename T>
class Cube {
public:
    __aicore__ inline Cube(const ChunkKdaBwdPrepareTilingData& tiling, const Pointers& gm)
        : tiling_(tiling), index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices) {
        aqk_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.aqk));
        vNew_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.vNew));
        outputGrad_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.outputGrad));
        h_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.h));
        dvLocal_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.dvLocal));
        dqRaw_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.dqRaw));
        BindScores(scores_, gm.workspace);
    }

    __aicore__ inline void Run(AscendC::TPipe& pipe) {
        pipe.InitBuffer(l1_, 2, kL1Elements * sizeof(T));
        l0_.Init(pipe);
        const int64_t heads = tiling_.geometry.valueHeads;
        const int64_t tasks = index_.ChunkTaskCount(heads);
        for (int64_t task = BlockOfCore(); task < tasks; task += AscendC::GetBlockNum()) {
            const ChunkPlace place = index_.LocateTask(task, heads);
            auto tiles = l1_.template AllocTensor<T>();
            Load(tiles, place);
            l1_.EnQue(tiles);
            tiles = l1_.template DeQue<T>();
            Multiply(tiles, place);
            l1_.FreeTensor(tiles);
        }
        ring_.Drain();
    }

private:
    // Offsets of the four operands in one L1 buffer.
    static constexpr uint32_t kOutputGradAt = 0;
    static constexpr uint32_t kVNewAt = kOutputGradAt + kChunkRows * kValueDim;
    static constexpr uint32_t kAqkAt = kVNewAt + kChunkRows * kValueDim;
    static constexpr uint32_t kHAt = kAqkAt + kChunkRows * kChunkRows;
    static constexpr uint32_t kL1Elements = kHAt + kKeyDim * kValueDim;

    __aicore__ inline void Load(const AscendC::LocalTensor<T>& tiles, const ChunkPlace& place) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        LoadNdToL1(tiles[kOutputGradAt],
                   outputGrad_[ChunkIndex::RowOffset(tiling_.outputGrad, place)], rows, kValueDim,
                   static_cast<uint64_t>(tiling_.outputGrad.tokenStride));
        LoadNdToL1(tiles[kVNewAt], vNew_[index_.ValueCacheOffset(place, kValueDim)], rows,
                   kValueDim, kValueDim);
        LoadNdToL1(tiles[kAqkAt], aqk_[index_.ValueCacheOffset(place, kChunkRows)], rows,
                   kChunkRows, kChunkRows);
        const bool vFirst = tiling_.stateVFirst != 0;
        LoadNdToL1(tiles[kHAt], h_[index_.ChunkStateOffset(place, kKeyDim, kValueDim)],
                   vFirst ? kValueDim : kKeyDim, vFirst ? kKeyDim : kValueDim,
                   vFirst ? kKeyDim : kValueDim);
    }

    __aicore__ inline void Multiply(const AscendC::LocalTensor<T>& tiles, const ChunkPlace& place) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        const uint32_t l1Rows = AlignUp(rows, kFractalRows);
        {
            auto a = l0_.template AllocA<T>();
            LoadA(a, tiles[kOutputGradAt], rows, kValueDim, l1Rows);
            auto b = l0_.template AllocB<T>();
            LoadBTransposed(b, tiles[kVNewAt], kValueDim, rows, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, rows, kValueDim);
            l0_.FinishC(c);
            const uint32_t slot = ring_.Acquire();
            StoreC(scores_[slot * kScoreFloats], c, rows, l1Rows, kChunkRows);
            ring_.Publish();
            l0_.FreeC(c);
        }
        {
            auto a = l0_.template AllocA<T>();
            LoadATransposed(a, tiles[kAqkAt], rows, rows, l1Rows);
            auto b = l0_.template AllocB<T>();
            LoadB(b, tiles[kOutputGradAt], rows, kValueDim, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, kValueDim, rows);
            l0_.FinishC(c);
            StoreC(dvLocal_[index_.ValueCacheOffset(place, kValueDim)], c, rows, kValueDim,
                   kValueDim);
            l0_.FreeC(c);
        }
        {
            auto a = l0_.template AllocA<T>();
            LoadA(a, tiles[kOutputGradAt], rows, kValueDim, l1Rows);
            auto b = l0_.template AllocB<T>();
            if (tiling_.stateVFirst != 0) {
                LoadB(b, tiles[kHAt], kValueDim, kKeyDim, kValueDim);
            } else {
                LoadBTransposed(b, tiles[kHAt], kValueDim, kKeyDim, kKeyDim);
            }
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, kKeyDim, kValueDim);
            l0_.FinishC(c);
            StoreC(dqRaw_[index_.ValueCacheOffset(place, kKeyDim)], c, rows, kKeyDim, kKeyDim);
            l0_.FreeC(c);
        }
    }

    const ChunkKdaBwdPrepareTilingData& tiling_;
    const ChunkIndex index_;
    AscendC::GlobalTensor<T> aqk_;
    AscendC::GlobalTensor<T> vNew_;
    AscendC::GlobalTensor<T> outputGrad_;
    AscendC::GlobalTensor<T> h_;
    AscendC::GlobalTensor<T> dvLocal_;
    AscendC::GlobalTensor<float> dqRaw_;
    AscendC::GlobalTensor<float> scores_;
    AscendC::TQue<AscendC::TPosition::A1, 2> l1_;
    CubeBuffers l0_;
    ScoreRing ring_;
};

class Vector {
public:
    __aicore__ inline Vector(const ChunkKdaBwdPrepareTilingData& tiling, const Pointers& gm)
        : tiling_(tiling), index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices) {
        dAqk_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.dAqk));
        BindScores(scores_, gm.workspace);
    }

    __aicore__ inline void Run(AscendC::TPipe& pipe) {
        pipe.InitBuffer(in_, 2, kHalfRows * kChunkRows * sizeof(float));
        pipe.InitBuffer(out_, 2, kHalfRows * kChunkRows * sizeof(float));
        pipe.InitBuffer(masks_, 3 * kMaskBytes);
        pipe.InitBuffer(scratch_, (kLanes + kLanes * kBlockFloats) * sizeof(float));
        auto masks = masks_.Get<uint8_t>();
        MakeTriangleMasks(masks, masks[kMaskBytes], masks[2 * kMaskBytes], scratch_.Get<float>());
        const int32_t firstRow = static_cast<int32_t>(AscendC::GetSubBlockIdx()) * kHalfRows;
        const auto keep = masks[kMaskBytes + firstRow * kChunkRows / 8];

        const int64_t heads = tiling_.geometry.valueHeads;
        const int64_t tasks = index_.ChunkTaskCount(heads);
        for (int64_t task = BlockOfCore(); task < tasks; task += AscendC::GetBlockNum()) {
            const ChunkPlace place = index_.LocateTask(task, heads);
            const int32_t left = place.rows - firstRow;
            const int32_t rows = left < kHalfRows ? left : kHalfRows;
            const uint32_t slot = ring_.Wait();
            if (rows <= 0) {  // a short chunk without rows for this core
                ring_.Release();
                continue;
            }
            auto scores = in_.AllocTensor<float>();
            LoadRows(scores, scores_[slot * kScoreFloats + firstRow * kChunkRows], rows, kChunkRows,
                     kChunkRows);
            ring_.Release();
            in_.EnQue(scores);
            scores = in_.DeQue<float>();
            auto out = out_.AllocTensor<float>();
            TileMuls<kChunkRows>(out, scores, tiling_.scale, rows);
            in_.FreeTensor(scores);
            KeepMasked(out, keep, out, rows);
            out_.EnQue(out);
            out = out_.DeQue<float>();
            StoreRows(dAqk_[index_.ValueCacheOffset(place, kChunkRows) + firstRow * kChunkRows],
                      out, rows, kChunkRows, kChunkRows);
            out_.FreeTensor(out);
        }
    }

private:
    static constexpr int32_t kHalfRows = kChunkRows / 2;

    const ChunkKdaBwdPrepareTilingData& tiling_;
    const ChunkIndex index_;
    AscendC::GlobalTensor<float> dAqk_;
    AscendC::GlobalTensor<float> scores_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> out_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> masks_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> scratch_;
    ScoreRing ring_;
};

}  // namespace bwd_prepare
}  // namespace kda

extern "C" __global__ __aicore__ void chunk_kda_bwd_prepare(GM_ADDR aqk, GM_ADDR v_new, GM_ADDR d_o,
                                                            GM_ADDR h, GM_ADDR cu_seqlens,
                                                            GM_ADDR chunk_indices, GM_ADDR d_aqk,
                                                            GM_ADDR dv_local, GM_ADDR dq_raw,
                                                            GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaBwdPrepareTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaBwdPrepareTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    const kda::bwd_prepare::Pointers gm = {
        aqk,           v_new, d_o,      h,      cu_seqlens,
        chunk_indices, d_aqk, dv_local, dq_raw, AscendC::GetUserWorkspace(workspace)};
    AscendC::TPipe pipe;
    if ASCEND_IS_AIC {
        if (tilingData.geometry.ioIsHalf != 0) {
            kda::bwd_prepare::Cube<half> cube(tilingData, gm);
            cube.Run(pipe);
        } else {
            kda::bwd_prepare::Cube<bfloat16_t> cube(tilingData, gm);
            cube.Run(pipe);
        }
    }
    if ASCEND_IS_AIV {
        kda::bwd_prepare::Vector vector(tilingData, gm);
        vector.Run(pipe);
    }
}
