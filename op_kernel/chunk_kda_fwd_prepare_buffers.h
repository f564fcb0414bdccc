// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// UB of one AIV in fwd_prepare, and the copies between it and GM.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_BUFFERS_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_BUFFERS_H

#include "chunk_kda_fwd_prepare_units.h"
#include "common/block_decay.h"
#include "common/gate.h"
#include "common/level_decay.h"
#include "common/vector_tile.h"

namespace kda {

// T: the type of q, k, v, of the caches and of the products' operands, bfloat16_t or half.
template <typename T>
class FwdPrepareBuffers {
protected:
    __aicore__ inline FwdPrepareBuffers(const ChunkKdaFwdPrepareTilingData& tiling,
                                        const FwdPrepareOperands& gm)
        : tiling_(tiling),
          gm_(gm),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          isBounded_(FwdPrepareIsBounded<T>(tiling)) {}

    __aicore__ inline void InitBuffers(AscendC::TPipe& pipe) {
        pipe.InitBuffer(input_, 1, kInputBytes);
        pipe.InitBuffer(parameters_, 1, (128 + kBlockFloats) * sizeof(float));
        pipe.InitBuffer(output_, 2, kOutputBytes);
        pipe.InitBuffer(tiles_, kTileFloats * sizeof(float));
        pipe.InitBuffer(small_, kSmallFloats * sizeof(float));
        const Tile tiles = tiles_.Get<float>();
        first_ = tiles;
        factorP_ = tiles[64 * 128];
        keyN_ = tiles[2 * 64 * 128];
        product_ = tiles[3 * 64 * 128];
        CutSmall(small_.Get<float>());
        MakeTriangleMasks(below_, belowOrDiagonal_, diagonal_, product_);
        if (!isBounded_) {
            LevelMasks::Make(levelMasks_, keyN_);  // product_ is still being read
            Softplus::FillConstants(softplus_);
        }
        FillBlock(one_, 1.0f);
        FillBlock(bound_, tiling_.gateBound);
        FillBlock(betaTop_, tiling_.betaTop);
    }

    using Io = AscendC::LocalTensor<T>;
    using GlobalIo = AscendC::GlobalTensor<T>;
    using GlobalFloat = AscendC::GlobalTensor<float>;

    static constexpr int32_t kHalf = 32;  // rows that leave together
    static constexpr uint32_t kInputBytes = 64 * 128 * sizeof(float);
    static constexpr uint32_t kOutputBytes = kHalf * 128 * sizeof(T);
    static constexpr uint32_t kTileFloats = 3 * 64 * 128 + kHalf * 128;
    static constexpr uint32_t kScaledPowFloats = kRowBlocks * 128;
    static constexpr uint32_t kMaskFloats = kMaskBytes / sizeof(float);
    static_assert(kLevels == FwdPrepareSpace::kLevelCount, "one product a level");
    static constexpr uint32_t kLevelMaskFloats = kLevels * LevelMasks::kBytes / sizeof(float);
    static constexpr uint32_t kSmallFloats = DecayVectors::kFloats + kScaledPowFloats + 64 * 8 +
                                             8 * 64 + 4 * kBlockFloats + Softplus::kConstantFloats +
                                             3 * kMaskFloats + kLevelMaskFloats;

    __aicore__ inline void CutSmall(const Tile& small) {
        // Lanes past the end of a tail are computed with and never stored, but they are rows of the
        // products' operands: unwritten memory may hold NaN, which Mmad must not see.
        AscendC::Duplicate(small, 0.0f, static_cast<int32_t>(kSmallFloats));
        AscendC::PipeBarrier<PIPE_V>();
        uint32_t at = 0;
        vectors_ = small[at];
        scaledPow_ = small[at += DecayVectors::kFloats];
        column_ = small[at += kScaledPowFloats];
        sums_ = small[at += 64 * 8];
        rstd_ = small[at += 2 * 64];
        betaRow_ = small[at += 2 * 64];
        negBeta_ = small[at += 64];
        diagonals_ = small[at += 64];
        one_ = small[at += 2 * 64];
        bound_ = small[at += kBlockFloats];
        negRate_ = small[at += kBlockFloats];
        betaTop_ = small[at += kBlockFloats];
        softplus_ = small[at += kBlockFloats];
        at += Softplus::kConstantFloats;
        below_ = small[at].ReinterpretCast<uint8_t>();
        belowOrDiagonal_ = small[at += kMaskFloats].ReinterpretCast<uint8_t>();
        diagonal_ = small[at += kMaskFloats].ReinterpretCast<uint8_t>();
        levelMasks_ = small[at += kMaskFloats].ReinterpretCast<uint8_t>();
    }

    __aicore__ inline GlobalIo WorkspaceIo(int64_t space, int64_t part) const {
        GlobalIo tensor;
        tensor.SetGlobalBuffer((__gm__ T*)(gm_.workspace + space + part));
        return tensor;
    }
    __aicore__ inline GlobalFloat WorkspaceFloat(int64_t space, int64_t part) const {
        GlobalFloat tensor;
        tensor.SetGlobalBuffer((__gm__ float*)(gm_.workspace + space + part));
        return tensor;
    }
    __aicore__ inline GlobalIo TensorIo(GM_ADDR base, int64_t offset) const {
        GlobalIo tensor;
        tensor.SetGlobalBuffer((__gm__ T*)base + offset);
        return tensor;
    }
    __aicore__ inline GlobalFloat TensorFloat(GM_ADDR base, int64_t offset) const {
        GlobalFloat tensor;
        tensor.SetGlobalBuffer((__gm__ float*)base + offset);
        return tensor;
    }

    // ---- copies in ------------------------------------------------------------------------------

    __aicore__ inline void LoadGate(const FwdPrepareUnit& unit) {
        const int64_t offset =
            ChunkIndex::RowOffset(tiling_.gateLayout, unit.place, unit.valueHead);
        if (tiling_.gateIsFloat != 0) {
            Tile raw = input_.AllocTensor<float>();
            LoadRows(raw, TensorFloat(gm_.g, offset), unit.place.rows, 128,
                     tiling_.gateLayout.tokenStride);
            input_.EnQue(raw);
        } else {
            Io raw = input_.template AllocTensor<T>();
            LoadRows(raw, TensorIo(gm_.g, offset), unit.place.rows, 128,
                     tiling_.gateLayout.tokenStride);
            input_.EnQue(raw);
        }
    }

    __aicore__ inline void LoadParameters(const FwdPrepareUnit& unit) {
        Tile parameters = parameters_.AllocTensor<float>();
        if (tiling_.hasDtBias != 0) {
            LoadRows(parameters, TensorFloat(gm_.dtBias, unit.valueHead * 128), 1, 128, 128);
        }
        if (tiling_.gateKind != kGateActivated) {
            LoadColumn(parameters[128], TensorFloat(gm_.aLog, unit.valueHead), 1, 1);
        }
        parameters_.EnQue(parameters);
    }

    __aicore__ inline void LoadQueryKey(const FwdPrepareUnit& unit) {
        const int64_t offset = ChunkIndex::RowOffset(tiling_.keyLayout, unit.place, unit.keyHead);
        Io rows = input_.template AllocTensor<T>();
        LoadRows(rows, TensorIo(gm_.k, offset), unit.place.rows, 128,
                 tiling_.keyLayout.tokenStride);
        LoadRows(rows[64 * 128], TensorIo(gm_.q, offset), unit.place.rows, 128,
                 tiling_.keyLayout.tokenStride);
        input_.EnQue(rows);
    }

    // ---- copies out -----------------------------------------------------------------------------

    // `castRows` rows of src, rounded to T, leave as `bursts` bursts of `burst` elements.
    template <int32_t kWidth = 128>
    __aicore__ inline void Emit(const GlobalIo& dst, const Tile& src, int32_t castRows,
                                int32_t bursts, int32_t burst, int64_t pitch) {
        Io out = output_.template AllocTensor<T>();
        ToIo<kWidth>(out, src, castRows);
        output_.EnQue(out);
        out = output_.template DeQue<T>();
        StoreRows(dst, out, bursts, burst, pitch);
        output_.FreeTensor(out);
    }

    // What rounding to T leaves of rows of src, to rows without gaps. scratch: a tile like src.
    template <int32_t kWidth = 128>
    __aicore__ inline void EmitLow(const GlobalIo& dst, const Tile& src, const Tile& scratch,
                                   int32_t rows) {
        Io out = output_.template AllocTensor<T>();
        ToIo<kWidth>(out, src, rows);
        ToFloat<kWidth>(scratch, out, rows);
        TileSub<kWidth>(scratch, src, scratch, rows);
        ToIo<kWidth>(out, scratch, rows);
        output_.EnQue(out);
        out = output_.template DeQue<T>();
        StoreRows(dst, out, rows, kWidth, kWidth);
        output_.FreeTensor(out);
    }

    // The same for a whole chunk, to a head-major output. product_ is scratch.
    __aicore__ inline void EmitLowOutput(GM_ADDR output, int64_t cacheOffset, const Tile& src,
                                         int32_t rows) {
        for (int32_t first = 0; first < rows; first += kHalf) {
            const int32_t count = rows - first < kHalf ? rows - first : kHalf;
            EmitLow(TensorIo(output, cacheOffset + first * 128), src[first * 128], product_, count);
        }
    }

    // Rows [first, first + count) of the chunk to a head-major output [B,heads,T,128].
    __aicore__ inline void EmitOutput(GM_ADDR output, int64_t cacheOffset, const Tile& src,
                                      int32_t first, int32_t count, int32_t rows) {
        const int32_t real = rows - first < count ? rows - first : count;
        if (real > 0) {
            Emit(TensorIo(output, cacheOffset + first * 128), src, real, real, 128, 128);
        }
    }

    // Row blocks [first / 16, ...) of q (second = 0) or k to their places in a row operand.
    __aicore__ inline void EmitRowOperand(int64_t operand, int64_t second, const Tile& src,
                                          int32_t first, int32_t count) {
        const int64_t row = 2 * first + second * kBlockRows;
        Emit(WorkspaceIo(operand, row * 128 * 2), src, count, count / kBlockRows, kBlockRows * 128,
             2 * kBlockRows * 128);
    }

    __aicore__ inline void LoadBeta(const FwdPrepareUnit& unit, const Tile& rawBeta) {
        const int64_t offset =
            ChunkIndex::RowOffset(tiling_.betaLayout, unit.place, unit.valueHead);
        const int64_t pitch = tiling_.betaLayout.tokenStride;
        if (tiling_.betaIsFloat != 0) {
            LoadColumn(rawBeta, TensorFloat(gm_.beta, offset), unit.place.rows, pitch);
        } else {
            LoadColumn(rawBeta.template ReinterpretCast<T>(), TensorIo(gm_.beta, offset),
                       unit.place.rows, pitch);
        }
    }

    __aicore__ inline int64_t BetaInverseLow() const {
        return tiling_.unitBytes - FwdPrepareSpace::kBetaInverseLowBytes;
    }

    __aicore__ inline int64_t ValueOffset(const FwdPrepareUnit& unit, int64_t width) const {
        return index_.CacheOffset(unit.place, unit.valueHead, tiling_.geometry.valueHeads, width);
    }
    __aicore__ inline int64_t KeyOffset(const FwdPrepareUnit& unit, int64_t width) const {
        return index_.CacheOffset(unit.place, unit.keyHead, tiling_.geometry.keyHeads, width);
    }

    const ChunkKdaFwdPrepareTilingData& tiling_;
    const FwdPrepareOperands& gm_;
    ChunkIndex index_;
    bool isBounded_;  // factors as in block_decay.h; else level_decay.h

    AscendC::TQue<AscendC::TPosition::VECIN, 1> input_;  // raw gate, then k and q
    AscendC::TQue<AscendC::TPosition::VECIN, 1> parameters_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> output_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> tiles_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> small_;
    AscendC::TEventID gateStored_;

    Tile first_;    // gk, then k_hat, then q_hat; scores on the second visit
    Tile factorP_;  // P, or the gate's sums in each block; on the second visit scores of the levels
                    // and spread values of the solve
    Tile keyN_;     // k N, decayed block by block, or one factor after the other; the inverse and
                    // its scratch
    Tile product_;  // 32 rows; scores of the levels
    Tile vectors_;
    Tile scaledPow_;
    Tile column_;
    Tile sums_;
    Tile rstd_;  // of k, then of q
    Tile betaRow_;
    Tile negBeta_;
    Tile diagonals_;  // of two units, see HasOwnDiagonal
    Tile one_;
    Tile bound_;
    Tile negRate_;
    Tile betaTop_;
    Tile softplus_;
    AscendC::LocalTensor<uint8_t> below_;
    AscendC::LocalTensor<uint8_t> belowOrDiagonal_;
    AscendC::LocalTensor<uint8_t> diagonal_;
    AscendC::LocalTensor<uint8_t> levelMasks_;  // LevelMasks
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_BUFFERS_H
