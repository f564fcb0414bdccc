// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Vector half of fwd_prepare. See chunk_kda_fwd_prepare.cpp for the order of work.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H

#include "chunk_kda_fwd_prepare_units.h"
#include "common/block_decay.h"
#include "common/cross_core.h"
#include "common/gate.h"
#include "common/unit_lower_inverse.h"
#include "common/vector_tile.h"

namespace kda {

class FwdPrepareVector {
public:
    __aicore__ inline FwdPrepareVector(const ChunkKdaFwdPrepareTilingData& tiling,
                                       const FwdPrepareOperands& gm)
        : tiling_(tiling),
          gm_(gm),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          units_(tiling.geometry, index_) {}

    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        pipe.InitBuffer(input_, 1, kInputBytes);
        pipe.InitBuffer(parameters_, 1, (128 + kBlockFloats) * sizeof(float));
        pipe.InitBuffer(output_, 2, kOutputBytes);
        pipe.InitBuffer(tiles_, kTileFloats * sizeof(float));
        pipe.InitBuffer(small_, kSmallFloats * sizeof(float));
        gateStored_ = pipe.AllocEventID<AscendC::HardEvent::MTE3_V>();
        const Tile tiles = tiles_.Get<float>();
        first_ = tiles;
        factorP_ = tiles[64 * 128];
        keyN_ = tiles[2 * 64 * 128];
        product_ = tiles[3 * 64 * 128];
        CutSmall(small_.Get<float>());
        MakeTriangleMasks(below_, belowOrDiagonal_, diagonal_, product_);
        FillBlock(one_, 1.0f);
        FillBlock(bound_, tiling_.lowerBound * kLog2e);
    }

    __aicore__ inline void Process(AscendC::TPipe& pipe) {
        const int64_t sub = AscendC::GetSubBlockIdx();
        const int64_t rounds = units_.Rounds();
        if (rounds > 0) {
            Prefetch(0, sub);
        }
        for (int64_t round = 0; round <= rounds; ++round) {
            FwdPrepareUnit unit;
            if (round < rounds) {
                operands_.Acquire();
                if (units_.Find(round, sub, unit)) {
                    WriteOperands(unit, Space(round, sub));
                    Prefetch(round + 1, sub);
                }
                operands_.Publish();
            }
            if (round > 0) {
                ScoreFlag::Wait();
                if (units_.Find(round - 1, sub, unit)) {
                    SolveScores(unit, Space(round - 1, sub));
                }
                InverseFlag::Set();
            }
        }
        operands_.Drain();
        pipe.ReleaseEventID<AscendC::HardEvent::MTE3_V>(gateStored_);
    }

private:
    using Bf16 = AscendC::LocalTensor<bfloat16_t>;
    using GlobalBf16 = AscendC::GlobalTensor<bfloat16_t>;
    using GlobalFloat = AscendC::GlobalTensor<float>;

    static constexpr int32_t kHalf = 32;  // rows that leave together
    static constexpr uint32_t kInputBytes = 64 * 128 * sizeof(float);
    static constexpr uint32_t kOutputBytes = kHalf * 128 * sizeof(bfloat16_t);
    static constexpr uint32_t kTileFloats = 3 * 64 * 128 + kHalf * 128;
    static constexpr uint32_t kScaledPowFloats = kRowBlocks * 128;
    static constexpr uint32_t kMaskFloats = kMaskBytes / sizeof(float);
    static constexpr uint32_t kSmallFloats = DecayVectors::kFloats + kScaledPowFloats + 64 * 8 +
                                             6 * 64 + 4 * kBlockFloats + 3 * kMaskFloats;

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
        one_ = small[at += 64];
        bound_ = small[at += kBlockFloats];
        negRate_ = small[at += kBlockFloats];
        at += 2 * kBlockFloats;
        below_ = small[at].ReinterpretCast<uint8_t>();
        belowOrDiagonal_ = small[at += kMaskFloats].ReinterpretCast<uint8_t>();
        diagonal_ = small[at += kMaskFloats].ReinterpretCast<uint8_t>();
    }

    __aicore__ inline int64_t Space(int64_t round, int64_t sub) const {
        return units_.Space(round, sub);
    }

    __aicore__ inline GlobalBf16 WorkspaceBf16(int64_t space, int64_t part) const {
        GlobalBf16 tensor;
        tensor.SetGlobalBuffer((__gm__ bfloat16_t*)(gm_.workspace + space + part));
        return tensor;
    }
    __aicore__ inline GlobalFloat WorkspaceFloat(int64_t space, int64_t part) const {
        GlobalFloat tensor;
        tensor.SetGlobalBuffer((__gm__ float*)(gm_.workspace + space + part));
        return tensor;
    }
    __aicore__ inline GlobalBf16 TensorBf16(GM_ADDR base, int64_t offset) const {
        GlobalBf16 tensor;
        tensor.SetGlobalBuffer((__gm__ bfloat16_t*)base + offset);
        return tensor;
    }
    __aicore__ inline GlobalFloat TensorFloat(GM_ADDR base, int64_t offset) const {
        GlobalFloat tensor;
        tensor.SetGlobalBuffer((__gm__ float*)base + offset);
        return tensor;
    }

    // ---- copies in ------------------------------------------------------------------------------

    // Starts the copies that unit needs first, if this core has a unit in that round.
    __aicore__ inline void Prefetch(int64_t round, int64_t sub) {
        FwdPrepareUnit unit;
        if (round >= units_.Rounds() || !units_.Find(round, sub, unit)) {
            return;
        }
        LoadGate(unit);
        LoadParameters(unit);
    }

    __aicore__ inline void LoadGate(const FwdPrepareUnit& unit) {
        const int64_t offset =
            ChunkIndex::RowOffset(tiling_.gateLayout, unit.place, unit.valueHead);
        if (tiling_.gateIsFloat != 0) {
            Tile raw = input_.AllocTensor<float>();
            LoadRows(raw, TensorFloat(gm_.g, offset), unit.place.rows, 128,
                     tiling_.gateLayout.tokenStride);
            input_.EnQue(raw);
        } else {
            Bf16 raw = input_.AllocTensor<bfloat16_t>();
            LoadRows(raw, TensorBf16(gm_.g, offset), unit.place.rows, 128,
                     tiling_.gateLayout.tokenStride);
            input_.EnQue(raw);
        }
    }

    __aicore__ inline void LoadParameters(const FwdPrepareUnit& unit) {
        Tile parameters = parameters_.AllocTensor<float>();
        if (tiling_.hasDtBias != 0) {
            LoadRows(parameters, TensorFloat(gm_.dtBias, unit.valueHead * 128), 1, 128, 128);
        }
        LoadColumn(parameters[128], TensorFloat(gm_.aLog, unit.valueHead), 1, 1);
        parameters_.EnQue(parameters);
    }

    __aicore__ inline void LoadQueryKey(const FwdPrepareUnit& unit) {
        const int64_t offset = ChunkIndex::RowOffset(tiling_.keyLayout, unit.place, unit.keyHead);
        Bf16 rows = input_.AllocTensor<bfloat16_t>();
        LoadRows(rows, TensorBf16(gm_.k, offset), unit.place.rows, 128,
                 tiling_.keyLayout.tokenStride);
        LoadRows(rows[64 * 128], TensorBf16(gm_.q, offset), unit.place.rows, 128,
                 tiling_.keyLayout.tokenStride);
        input_.EnQue(rows);
    }

    // ---- copies out -----------------------------------------------------------------------------

    // `castRows` rows of src, rounded to bf16, leave as `bursts` bursts of `burst` elements.
    template <int32_t kWidth = 128>
    __aicore__ inline void Emit(const GlobalBf16& dst, const Tile& src, int32_t castRows,
                                int32_t bursts, int32_t burst, int64_t pitch) {
        Bf16 out = output_.AllocTensor<bfloat16_t>();
        ToBf16<kWidth>(out, src, castRows);
        output_.EnQue(out);
        out = output_.DeQue<bfloat16_t>();
        StoreRows(dst, out, bursts, burst, pitch);
        output_.FreeTensor(out);
    }

    // Rows [first, first + count) of the chunk to a head-major output [B,heads,T,128].
    __aicore__ inline void EmitOutput(GM_ADDR output, int64_t cacheOffset, const Tile& src,
                                      int32_t first, int32_t count, int32_t rows) {
        const int32_t real = rows - first < count ? rows - first : count;
        if (real > 0) {
            Emit(TensorBf16(output, cacheOffset + first * 128), src, real, real, 128, 128);
        }
    }

    // Row blocks [first / 16, ...) to their places among the row operands.
    __aicore__ inline void EmitRowOperand(int64_t space, int64_t second, const Tile& src,
                                          int32_t first, int32_t count) {
        const int64_t row = 2 * first + second * kBlockRows;
        Emit(WorkspaceBf16(space, FwdPrepareSpace::kRowOperands + row * 128 * 2), src, count,
             count / kBlockRows, kBlockRows * 128, 2 * kBlockRows * 128);
    }

    // ---- first visit: gate, norms, operands ----------------------------------------------------

    __aicore__ inline void WriteOperands(const FwdPrepareUnit& unit, int64_t space) {
        const int32_t rows = unit.place.rows;
        const int32_t padded = (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
        MakeDecay(unit);
        Bf16 raw = input_.DeQue<bfloat16_t>();
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(gateStored_);
        // Rows from `rows` to `padded` are what gk left there, then what the keys did. They become
        // rows and masked columns of scores, and rows beyond k of a product: never an output.
        const Tile& hat = first_;
        ToFloat(hat, raw, rows);
        WriteHat(unit, gm_.kHat, hat, rstd_, padded);
        WriteKeyOperands(unit, space, hat, padded);

        ToFloat(hat, raw[64 * 128], rows);
        input_.FreeTensor(raw);
        WriteHat(unit, gm_.qHat, hat, rstd_[64], padded);
        WriteQueryOperands(unit, space, hat, padded);
        if (tiling_.saveHatted != 0 && tiling_.normalize != 0 && unit.group == 0) {
            WriteRstd(unit);
        }
    }

    // gk, its block vectors and factors; leaves the copy of q and k under way.
    __aicore__ inline void MakeDecay(const FwdPrepareUnit& unit) {
        const int32_t rows = unit.place.rows;
        Tile parameters = parameters_.DeQue<float>();
        MakeNegativeRate(negRate_, parameters[128], sums_);
        const Tile& gk = first_;
        if (tiling_.gateIsFloat != 0) {
            Tile raw = input_.DeQue<float>();
            ActivateSafeGate(gk, raw, parameters, tiling_.hasDtBias != 0, negRate_, bound_, rows);
            input_.FreeTensor(raw);
        } else {
            Bf16 raw = input_.DeQue<bfloat16_t>();
            ToFloat(gk, raw, rows);
            input_.FreeTensor(raw);
            ActivateSafeGate(gk, gk, parameters, tiling_.hasDtBias != 0, negRate_, bound_, rows);
        }
        parameters_.FreeTensor(parameters);
        LoadQueryKey(unit);
        CumulativeSum(gk);
        SyncPipes<AscendC::HardEvent::V_MTE3>();
        StoreRows(TensorFloat(gm_.gk, ValueOffset(unit, 128)), gk, rows, 128, 128);
        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(gateStored_);

        MakeDecayVectors(vectors_, gk);
        TileMuls(scaledPow_, DecayVectors::At(vectors_, DecayVectors::kReferencePow), tiling_.scale,
                 kRowBlocks);
        MakeBlockFactorP(factorP_, gk, vectors_);
    }

    // Normalises the rows of q or k in place and writes q_hat / k_hat. The value heads of one group
    // share them: the first of the group makes rstd and writes, the others come right after it and
    // use its rstd again.
    __aicore__ inline void WriteHat(const FwdPrepareUnit& unit, GM_ADDR output, const Tile& hat,
                                    const Tile& rstd, int32_t padded) {
        if (tiling_.normalize != 0) {
            if (unit.group == 0) {
                MakeRstd(rstd, hat, padded);
            }
            SpreadColumn(column_, rstd, 64);
            ColumnMul(hat, hat, column_, padded);
        }
        if (tiling_.saveHatted == 0 || unit.group != 0) {
            return;
        }
        const int64_t offset = KeyOffset(unit, 128);
        for (int32_t first = 0; first < padded; first += kHalf) {
            EmitOutput(output, offset, hat[first * 128], first, kHalf, unit.place.rows);
        }
    }

    // rstd = 1 / sqrt(sum of squares + epsilon)
    __aicore__ inline void MakeRstd(const Tile& rstd, const Tile& tile, int32_t padded) {
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            TileMul(product_, tile[first * 128], tile[first * 128], count);
            for (int32_t half = 0; half < 2; ++half) {
                AscendC::WholeReduceSum<float>(sums_[half * 64 + first], product_[half * kLanes],
                                               kLanes, count, 1, 1, RowBlocks<128>());
            }
            AscendC::PipeBarrier<PIPE_V>();
        }
        TileAdd<64>(rstd, sums_, sums_[64], 1);
        TileAdds<64>(rstd, rstd, tiling_.epsilon, 1);
        AscendC::Sqrt(rstd, rstd, kFullMask, 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileDivide<64>(rstd, one_, rstd, 1);
    }

    __aicore__ inline void WriteKeyOperands(const FwdPrepareUnit& unit, int64_t space,
                                            const Tile& key, int32_t padded) {
        TileDiv(keyN_, key, factorP_, padded);  // k N = k / P
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            const int32_t block = first / kBlockRows;
            TileMul(product_, key[first * 128], factorP_[first * 128], count);
            EmitRowOperand(space, 1, product_, first, count);
            BlockRowMul(product_, product_,
                        DecayVectors::At(vectors_, DecayVectors::kReferencePow + block),
                        count / kBlockRows);
            Emit(WorkspaceBf16(space, FwdPrepareSpace::kDecayedKey + first * 128 * 2), product_,
                 count, count, 128, 128);
        }
        // Column operands: going down one row block, everything left of it decays by one more step
        // of the reference. Factors are at most one, so the order of the products loses nothing.
        const int32_t blocks = padded / kBlockRows;
        int64_t place = FwdPrepareSpace::kColumnOperands;
        for (int32_t block = 0; block < blocks; ++block) {
            if (block > 0) {
                RowMul(keyN_, keyN_, DecayVectors::At(vectors_, DecayVectors::kStepPow + block - 1),
                       block * kBlockRows);
            }
            const int32_t columns = (block + 1) * kBlockRows;
            for (int32_t first = 0; first < columns; first += kHalf) {
                const int32_t count = columns - first < kHalf ? columns - first : kHalf;
                Emit(WorkspaceBf16(space, place + first * 128 * 2), keyN_[first * 128], count,
                     count, 128, 128);
            }
            place += columns * 128 * 2;
        }
        RowMul(keyN_, keyN_, DecayVectors::At(vectors_, DecayVectors::kLastPow + blocks - 1),
               padded);
        const int64_t offset = ValueOffset(unit, 128);
        for (int32_t first = 0; first < padded; first += kHalf) {
            EmitOutput(gm_.kg, offset, keyN_[first * 128], first, kHalf, unit.place.rows);
        }
    }

    __aicore__ inline void WriteQueryOperands(const FwdPrepareUnit& unit, int64_t space,
                                              const Tile& query, int32_t padded) {
        const int64_t offset = ValueOffset(unit, 128);
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            const int32_t block = first / kBlockRows;
            const Tile rows = query[first * 128];
            TileMul(product_, rows, factorP_[first * 128], count);
            EmitRowOperand(space, 0, product_, first, count);
            if (tiling_.saveQg != 0) {
                BlockRowMul(rows, product_,
                            DecayVectors::At(vectors_, DecayVectors::kReferencePow + block),
                            count / kBlockRows);
                EmitOutput(gm_.qg, offset, rows, first, count, unit.place.rows);
            }
            BlockRowMul(product_, product_, scaledPow_[block * 128], count / kBlockRows);
            EmitOutput(gm_.qgScaled, offset, product_, first, count, unit.place.rows);
        }
    }

    __aicore__ inline void WriteRstd(const FwdPrepareUnit& unit) {
        Tile out = output_.AllocTensor<float>();
        TileAdds<64>(out, rstd_, 0.0f, 2);
        output_.EnQue(out);
        out = output_.DeQue<float>();
        const int64_t offset = KeyOffset(unit, 1);
        StoreValues(TensorFloat(gm_.kRstd, offset), out, unit.place.rows);
        StoreValues(TensorFloat(gm_.qRstd, offset), out[64], unit.place.rows);
        output_.FreeTensor(out);
    }

    // ---- second visit: masks, beta, solve -------------------------------------------------------

    __aicore__ inline void SolveScores(const FwdPrepareUnit& unit, int64_t space) {
        const int32_t rows = unit.place.rows;
        const Tile queryScores = first_;
        const Tile keyScores = first_[64 * 64];
        const Tile& spread = factorP_;
        const Tile inverse = keyN_;
        const Tile panel = keyN_[64 * 64];
        const Tile rawBeta = panel[UnitLowerInverse::kPanelFloats];
        const Tile wideBeta = rawBeta[64 * kBlockFloats];

        SyncPipes<AscendC::HardEvent::V_MTE2>();
        LoadScores(queryScores, WorkspaceFloat(space, FwdPrepareSpace::kQueryScores), rows);
        LoadScores(keyScores, WorkspaceFloat(space, FwdPrepareSpace::kKeyScores), rows);
        LoadBeta(unit, rawBeta);
        SyncPipes<AscendC::HardEvent::MTE2_V>();
        MakeBeta(unit, rawBeta, wideBeta);

        KeepMasked(queryScores, belowOrDiagonal_, queryScores, rows);
        TileMuls<64>(queryScores, queryScores, tiling_.scale, rows);
        const int64_t offset = ValueOffset(unit, 64);
        Emit<64>(TensorBf16(gm_.aqk, offset), queryScores, rows, rows, 64, 64);

        FillIdentity(inverse, diagonal_, one_);
        UnitLowerInverse::Run(inverse, keyScores, column_, panel, spread, rows);
        if (tiling_.saveAkk != 0) {
            Emit<64>(TensorBf16(gm_.akk, offset), inverse, rows, rows, 64, 64);
        }
        // beta folds into the left operand, before it is rounded: v then enters the cube untouched.
        RowMul<64>(product_, inverse, betaRow_, rows);
        Emit<64>(WorkspaceBf16(space, FwdPrepareSpace::kBetaInverse), product_, rows, rows, 64, 64);
    }

    // The cube writes blocks on and below the diagonal only. What the tile holds above it is
    // whatever the last use left: a mask removes it from the query's scores, and the solve does not
    // look there.
    __aicore__ inline void LoadScores(const Tile& scores, const GlobalFloat& src, int32_t rows) {
        for (int32_t first = 0; first < rows; first += kBlockRows) {
            const int32_t columns = first + kBlockRows;
            AscendC::DataCopyExtParams params;
            params.blockCount = kBlockRows;
            params.blockLen = static_cast<uint32_t>(columns * sizeof(float));
            params.srcStride = static_cast<uint32_t>((64 - columns) * sizeof(float));
            params.dstStride = static_cast<uint32_t>((64 - columns) / kBlockFloats);
            AscendC::DataCopyPadExtParams<float> pad;
            pad.isPad = false;
            AscendC::DataCopyPad(scores[first * 64], src[first * 64], params, pad);
        }
    }

    __aicore__ inline void LoadBeta(const FwdPrepareUnit& unit, const Tile& rawBeta) {
        const int64_t offset =
            ChunkIndex::RowOffset(tiling_.betaLayout, unit.place, unit.valueHead);
        const int64_t pitch = tiling_.betaLayout.tokenStride;
        if (tiling_.betaIsFloat != 0) {
            LoadColumn(rawBeta, TensorFloat(gm_.beta, offset), unit.place.rows, pitch);
        } else {
            LoadColumn(rawBeta.ReinterpretCast<bfloat16_t>(), TensorBf16(gm_.beta, offset),
                       unit.place.rows, pitch);
        }
    }

    // betaRow_ = beta_eff as a row of 64, column_ = -beta_eff as a column.
    __aicore__ inline void MakeBeta(const FwdPrepareUnit& unit, const Tile& rawBeta,
                                    const Tile& wideBeta) {
        const int32_t rows = unit.place.rows;
        if (tiling_.betaIsFloat != 0) {
            CompactColumn(betaRow_, rawBeta, rows, ColumnPitch<float>());
        } else {
            ToFloat<ColumnPitch<bfloat16_t>()>(wideBeta, rawBeta.ReinterpretCast<bfloat16_t>(), 64);
            CompactColumn(betaRow_, wideBeta, rows, ColumnPitch<bfloat16_t>());
        }
        if (tiling_.betaSigmoid != 0) {
            TileMuls<64>(betaRow_, betaRow_, -1.0f, 1);
            ScaledSigmoidOfNegative<64>(betaRow_, one_, 1);
        }
        TileMuls<64>(negBeta_, betaRow_, -1.0f, 1);
        SpreadColumn(column_, negBeta_, 64);
        if (tiling_.saveHatted != 0) {
            Tile out = output_.AllocTensor<float>();
            TileAdds<64>(out, betaRow_, 0.0f, 1);
            output_.EnQue(out);
            out = output_.DeQue<float>();
            StoreValues(TensorFloat(gm_.betaEff, ValueOffset(unit, 1)), out, rows);
            output_.FreeTensor(out);
        }
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
    FwdPrepareUnits units_;
    OperandRing operands_;

    AscendC::TQue<AscendC::TPosition::VECIN, 1> input_;  // raw gate, then k and q
    AscendC::TQue<AscendC::TPosition::VECIN, 1> parameters_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> output_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> tiles_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> small_;
    AscendC::TEventID gateStored_;

    Tile first_;    // gk, then k_hat, then q_hat; scores on the second visit
    Tile factorP_;  // P; spread values of the solve
    Tile keyN_;     // k N, then decayed block by block; the inverse and its scratch
    Tile product_;  // 32 rows
    Tile vectors_;
    Tile scaledPow_;
    Tile column_;
    Tile sums_;
    Tile rstd_;  // of k, then of q
    Tile betaRow_;
    Tile negBeta_;
    Tile one_;
    Tile bound_;
    Tile negRate_;
    AscendC::LocalTensor<uint8_t> below_;
    AscendC::LocalTensor<uint8_t> belowOrDiagonal_;
    AscendC::LocalTensor<uint8_t> diagonal_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H
