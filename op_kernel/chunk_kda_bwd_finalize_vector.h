// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The vector cores' part of bwd_finalize: buffers, the schedule, and V1..V3 of the table in
// chunk_kda_bwd_finalize.cpp. V4 is in chunk_kda_bwd_finalize_gradients.h.
//
// Both AIVs of a block work on the same step, 64 of the 128 channels each: cumulative sums over
// rows and all row vectors then stay on one core, and what is summed over channels (three values a
// row) is exchanged once. Work on 64 x 64 score tiles is shared by rows.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_VECTOR_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_VECTOR_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_buffers.h"
#include "chunk_kda_bwd_finalize_decay.h"
#include "chunk_kda_bwd_finalize_gradients.h"
#include "chunk_kda_bwd_finalize_levels.h"
#include "chunk_kda_bwd_finalize_shared.h"

namespace kda {
namespace bwd_finalize {

// T: bfloat16_t or half, the type of q, k, v, of their gradients and of what products are made of.
template <typename T>
class Vector {
public:
    __aicore__ inline Vector(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm)
        : tiling_(tiling),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          byLevels_(tiling.pairsByLevels != 0),
          slots_(tiling, gm.workspace),
          levels_(slots_, buffers_),
          gradients_(tiling, gm, slots_, buffers_, levels_) {
        q_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.q));
        k_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.k));
        kLow_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.kLow));
        gk_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.gk));
        beta_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.beta));
        akk_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.akk));
        dAqk_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(gm.dAqk));
    }

    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        buffers_.Init(pipe, byLevels_, tiling_.gateToLog2);
    }
    __aicore__ inline VectorBuffers& Buffers() { return buffers_; }

    __aicore__ inline void Run() {
        const int64_t count = StepCount(index_, tiling_.geometry);
        // V1 of the next step and V4 of the previous one fill the time that the AIC needs between
        // V2, V3 and V4 of this one.
        if (count > 0) {
            MakeOperands(Locate(0), 0);
        }
        for (int64_t step = 0; step <= count && count > 0; ++step) {
            if (step < count) {
                CubeToVectorFlag<kInverseRawReady>::Wait();
                MaskInverseGrad(Locate(step), step);
            }
            if (step + 1 < count) {
                MakeOperands(Locate(step + 1), step + 1);
            }
            if (step < count) {
                CubeToVectorFlag<kScoreRawReady>::Wait();
                MaskScoreGrad(Locate(step), step);
            }
            if (step > 0) {
                CubeToVectorFlag<kPairsReady>::Wait();
                gradients_.Run(Locate(step - 1), step - 1);
            }
        }
    }

private:
    static constexpr int32_t kHalfRows = kChunkRows / 2;

    __aicore__ inline ChunkPlace Locate(int64_t step) const {
        return LocateStep(index_, tiling_.geometry, step);
    }

    // V1: operands for the AIC.
    __aicore__ inline void MakeOperands(const ChunkPlace& place, int64_t step) {
        const int32_t rows = place.rows;
        const int64_t column = buffers_.FirstChannel();
        const int64_t keyHead = place.head / tiling_.geometry.headGroup;
        const int64_t keyRow =
            index_.CacheOffset(place, keyHead, tiling_.geometry.keyHeads, kKeyDim) + column;
        buffers_.LoadFull(gk_[index_.ValueCacheOffset(place, kKeyDim) + column], rows, kKeyDim);
        // Two tiles are in the queue at a time: q waits for both halves of k.
        const bool hasKeyLow = tiling_.hasKeyLow != 0;
        buffers_.LoadKey(k_[keyRow], kLow_[keyRow], hasKeyLow, rows);
        if (!hasKeyLow) {
            buffers_.LoadHalf(q_[keyRow], rows, kKeyDim);
        }
        KeepBeta(place, step);

        const Tile factor = buffers_.Work(0);
        const Tile key = buffers_.Work(1);
        const Tile product = buffers_.Work(2);
        const Tile other = buffers_.Work(3);
        ChannelDecay& decay = buffers_.Decay();
        Tile gk = buffers_.TakeFull();
        decay.ToLog2(gk, rows);
        decay.Make(gk, rows);
        decay.MakeFactorP(factor, gk, rows);
        if (!byLevels_) {
            buffers_.FreeFull(gk);
        }
        buffers_.TakeKey<T>(key, product, hasKeyLow, rows);
        if (hasKeyLow) {
            buffers_.LoadHalf(q_[keyRow], rows, kKeyDim);
        }

        // -k 2^gk and beta k P
        const Tile negative = decay.ReferencePow();
        TileMuls<kChannels>(negative, negative, -1.0f, kRowBlocks);
        TileMul<kChannels>(product, key, factor, rows);
        BlockRowMul64(other, product, negative, rows);
        Emit(step, Slot::kKeyDecayed, other, rows);
        ColumnMul<kChannels>(product, product, buffers_.BetaColumn(), rows);
        Emit(step, Slot::kKeyP, product, rows);
        // q P
        const Tile query = buffers_.Work(4);
        auto queryIn = buffers_.TakeHalf<T>();
        ToFloat<kChannels>(query, queryIn, rows);
        buffers_.FreeHalf(queryIn);
        TileMul<kChannels>(product, query, factor, rows);
        Emit(step, Slot::kQueryP, product, rows);
        // k N
        if (byLevels_) {
            decay.MakeFactorN(factor, gk, rows);
        } else {
            TileDivide<kChannels>(factor, buffers_.One(), factor, rows);
        }
        TileMul<kChannels>(product, key, factor, rows);
        EmitKeyN(step, product, rows);
        if (byLevels_) {
            levels_.EmitRows(step, gk, key, query, rows);
            buffers_.FreeFull(gk);
        }
        EmitScoreOperands(place, step);
        VectorToCubeFlag<kOperandsReady>::Set();
    }

    // beta of the chunk's rows, as a row vector that lives as long as the step, and as a column.
    __aicore__ inline void KeepBeta(const ChunkPlace& place, int64_t step) {
        Tile values = buffers_.AllocSmall();
        LoadRows(values, beta_[index_.ValueCacheOffset(place, 1)], 1, place.rows, place.rows);
        buffers_.EnQueSmall(values);
        values = buffers_.TakeSmall();
        const Tile beta = buffers_.Beta(step);
        AscendC::Adds(beta, values, 0.0f, static_cast<uint64_t>(place.rows), 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        buffers_.FreeSmall(values);
        SpreadColumn(buffers_.BetaColumn(), beta, place.rows);
    }

    __aicore__ inline void Emit(int64_t step, int64_t area, const Tile& tile, int32_t rows) {
        auto out = buffers_.AllocOut<T>();
        ToIo<kChannels>(out, tile, rows);
        buffers_.StoreOut(slots_.Area<T>(step, area)[buffers_.FirstChannel()], out, rows, kChannels,
                          kKeyDim);
    }

    // The rows of k N once for their own row block I = J, rounded to T, and the rounded rows
    // times 2^(ref_I - ref_J) for every block I below.
    __aicore__ inline void EmitKeyN(int64_t step, const Tile& keyN, int32_t rows) {
        const auto area = slots_.Area<T>(step, Slot::kKeyN)[buffers_.FirstChannel()];
        const int32_t blocks = (rows + kBlockRows - 1) / kBlockRows;
        auto out = buffers_.AllocOut<T>();
        ToIo<kChannels>(out, keyN, rows);
        ToFloat<kChannels>(keyN, out, rows);
        buffers_.EnQueOut(out);
        out = buffers_.DeQueOut<T>();
        for (int32_t block = 0; block < blocks; ++block) {
            StoreRows(area[(PairRow(block) + block) * kBlockRows * kKeyDim],
                      out[block * kBlockRows * kChannels], RowsOfBlock(block, rows), kChannels,
                      kKeyDim);
        }
        buffers_.FreeOut(out);
        if (blocks < 2) {
            return;
        }
        // Blocks I = 1, 2 take one buffer (1 + 2 pairs), block I = 3 another (3 pairs).
        const Tile shifted = buffers_.Work(3);
        ShiftKeyN(shifted, keyN, 1);
        if (blocks > 2) {
            ShiftKeyN(shifted[kBlockRows * kChannels], keyN, 2);
        }
        out = buffers_.AllocOut<T>();
        ToIo<kChannels>(out, shifted, (blocks > 2 ? 3 : 1) * kBlockRows);
        buffers_.EnQueOut(out);
        out = buffers_.DeQueOut<T>();
        StoreRows(area[PairRow(1) * kBlockRows * kKeyDim], out, kBlockRows, kChannels, kKeyDim);
        if (blocks > 2) {
            StoreRows(area[PairRow(2) * kBlockRows * kKeyDim], out[kBlockRows * kChannels],
                      2 * kBlockRows, kChannels, kKeyDim);
        }
        buffers_.FreeOut(out);
        if (blocks > 3) {
            ShiftKeyN(shifted, keyN, 3);
            out = buffers_.AllocOut<T>();
            ToIo<kChannels>(out, shifted, 3 * kBlockRows);
            buffers_.StoreOut(area[PairRow(3) * kBlockRows * kKeyDim], out, 3 * kBlockRows,
                              kChannels, kKeyDim);
        }
    }

    // dst = rows of blocks 0 .. blockI - 1 as block I sees them.
    __aicore__ inline void ShiftKeyN(const Tile& dst, const Tile& keyN, int32_t blockI) {
        for (int32_t blockJ = 0; blockJ < blockI; ++blockJ) {
            const int32_t first = blockJ * kBlockRows * kChannels;
            RowMul<kChannels>(dst[first], keyN[first], buffers_.Decay().StepPow(blockI, blockJ),
                              kBlockRows);
        }
    }

    // Rows of a score tile that this AIV works on.
    __aicore__ inline int32_t FirstScoreRow() const { return buffers_.SubBlock() * kHalfRows; }
    __aicore__ inline int32_t ScoreRows(const ChunkPlace& place) const {
        const int32_t left = place.rows - FirstScoreRow();
        return left < 0 ? 0 : (left < kHalfRows ? left : kHalfRows);
    }

    // Ab = Akk diag(beta) and stril(dAqk). Columns past the end of a short chunk are never read:
    // the AIC multiplies with k = rows.
    __aicore__ inline void EmitScoreOperands(const ChunkPlace& place, int64_t step) {
        const int32_t rows = ScoreRows(place);
        const Tile high = buffers_.Work(1);
        if (rows == 0) {
            EmitLevelScores(step, Slot::kLevelDAqk, high, high, 0);
            return;
        }
        const int64_t first = FirstScoreRow() * kChunkRows;
        const int64_t offset = index_.ValueCacheOffset(place, kChunkRows) + first;
        buffers_.LoadHalf(akk_[offset], rows, kChunkRows);
        buffers_.LoadFull(dAqk_[offset], rows, kChunkRows);
        const Tile work = buffers_.Work(0);
        auto akk = buffers_.TakeHalf<T>();
        ToFloat<kChannels>(work, akk, rows);
        buffers_.FreeHalf(akk);
        RowMul<kChannels>(work, work, buffers_.Beta(step), rows);
        if (tiling_.preciseStates) {
            StoreScorePair(step, Slot::kAkkBeta, Slot::kAkkBetaLow, work, high, rows);
        } else {
            StoreScore(step, Slot::kAkkBeta, work, rows);
        }
        Tile dAqk = buffers_.TakeFull();
        KeepMasked(dAqk, buffers_.Below(), dAqk, rows);
        StoreScorePair(step, Slot::kDAqk, Slot::kDAqkLow, dAqk, high, rows);
        EmitLevelScores(step, Slot::kLevelDAqk, high, dAqk, rows);
        buffers_.FreeFull(dAqk);
    }

    __aicore__ inline void EmitLevelScores(int64_t step, int64_t area, const Tile& high,
                                           const Tile& low, int32_t rows) {
        if (byLevels_) {
            levels_.EmitScores(step, area, high, low, rows);
        }
    }

    __aicore__ inline void StoreScore(int64_t step, int64_t area, const Tile& tile, int32_t rows) {
        auto out = buffers_.AllocOut<T>();
        ToIo<kChannels>(out, tile, rows);
        buffers_.StoreOut(slots_.Area<T>(step, area)[FirstScoreRow() * kChunkRows], out, rows,
                          kChunkRows, kChunkRows);
    }

    // The tile as a pair of numbers of T, which high and the tile itself hold afterwards.
    __aicore__ inline void StoreScorePair(int64_t step, int64_t area, int64_t lowArea,
                                          const Tile& tile, const Tile& high, int32_t rows) {
        const int64_t first = FirstScoreRow() * kChunkRows;
        auto out = buffers_.AllocOut<T>();
        ToIo<kChannels>(out, tile, rows);
        ToFloat<kChannels>(high, out, rows);
        buffers_.StoreOut(slots_.Area<T>(step, area)[first], out, rows, kChunkRows, kChunkRows);
        TileSub<kChannels>(tile, tile, high, rows);
        StoreScore(step, lowArea, tile, rows);
    }

    // V2: -dA = tril(X v^T + dw kt^T) diag(-beta).
    __aicore__ inline void MaskInverseGrad(const ChunkPlace& place, int64_t step) {
        const int32_t rows = ScoreRows(place);
        if (rows > 0) {
            buffers_.LoadFull(slots_.Area<float>(step, Slot::kDARaw)[FirstScoreRow() * kChunkRows],
                              rows, kChunkRows);
            const Tile negative = buffers_.Work(0);
            TileMuls<kChannels>(negative, buffers_.Beta(step), -1.0f, 1);
            Tile tile = buffers_.TakeFull();
            RowMul<kChannels>(tile, tile, negative, rows);
            KeepMasked(tile, buffers_.BelowOrDiagonal(), tile, rows);
            StoreScore(step, Slot::kDA, tile, rows);
            buffers_.FreeFull(tile);
        }
        VectorToCubeFlag<kInverseGradReady>::Set();
    }

    // V3: dL = stril(-Akk^T dA Akk^T).
    __aicore__ inline void MaskScoreGrad(const ChunkPlace& place, int64_t step) {
        const int32_t rows = ScoreRows(place);
        const Tile high = buffers_.Work(1);
        if (rows == 0) {
            EmitLevelScores(step, Slot::kLevelDL, high, high, 0);
        } else {
            buffers_.LoadFull(slots_.Area<float>(step, Slot::kDLRaw)[FirstScoreRow() * kChunkRows],
                              rows, kChunkRows);
            Tile tile = buffers_.TakeFull();
            KeepMasked(tile, buffers_.Below(), tile, rows);
            StoreScorePair(step, Slot::kDL, Slot::kDLLow, tile, high, rows);
            EmitLevelScores(step, Slot::kLevelDL, high, tile, rows);
            buffers_.FreeFull(tile);
        }
        VectorToCubeFlag<kScoreGradReady>::Set();
    }

    const ChunkKdaBwdFinalizeTilingData& tiling_;
    const ChunkIndex index_;
    const bool byLevels_;
    const SlotRing slots_;
    VectorBuffers buffers_;
    Levels<T> levels_;
    Gradients<T> gradients_;
    AscendC::GlobalTensor<T> q_;
    AscendC::GlobalTensor<T> k_;
    AscendC::GlobalTensor<T> kLow_;
    AscendC::GlobalTensor<float> gk_;
    AscendC::GlobalTensor<float> beta_;
    AscendC::GlobalTensor<T> akk_;
    AscendC::GlobalTensor<float> dAqk_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_VECTOR_H
