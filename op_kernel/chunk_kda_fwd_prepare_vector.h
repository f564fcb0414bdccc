// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Vector half of fwd_prepare. See chunk_kda_fwd_prepare.cpp for the order of work.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H

#include "chunk_kda_fwd_prepare_buffers.h"
#include "common/cross_core.h"
#include "common/gate.h"
#include "common/unit_lower_inverse.h"

namespace kda {

template <typename T>
class FwdPrepareVector : private FwdPrepareBuffers<T> {
public:
    __aicore__ inline FwdPrepareVector(const ChunkKdaFwdPrepareTilingData& tiling,
                                       const FwdPrepareOperands& gm)
        : Buffers(tiling, gm), units_(tiling.geometry, index_, tiling.unitBytes) {}

    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        InitBuffers(pipe);
        gateStored_ = pipe.AllocEventID<AscendC::HardEvent::MTE3_V>();
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
                    WriteOperands(unit, Space(round, sub), diagonals_[round % 2 * 64]);
                    Prefetch(round + 1, sub);
                }
                operands_.Publish();
            }
            if (round > 0) {
                ScoreFlag::Wait();
                if (units_.Find(round - 1, sub, unit)) {
                    SolveScores(unit, Space(round - 1, sub), diagonals_[(round - 1) % 2 * 64]);
                }
                InverseFlag::Set();
            }
        }
        operands_.Drain();
        pipe.ReleaseEventID<AscendC::HardEvent::MTE3_V>(gateStored_);
    }

private:
    using Buffers = FwdPrepareBuffers<T>;
    using Buffers::belowOrDiagonal_;
    using Buffers::BetaInverseLow;
    using Buffers::betaRow_;
    using Buffers::betaTop_;
    using Buffers::bound_;
    using Buffers::column_;
    using Buffers::diagonal_;
    using Buffers::diagonals_;
    using Buffers::Emit;
    using Buffers::EmitLowOutput;
    using Buffers::EmitOutput;
    using Buffers::EmitRowOperand;
    using Buffers::factorP_;
    using Buffers::first_;
    using Buffers::gateStored_;
    using Buffers::gm_;
    using Buffers::index_;
    using Buffers::InitBuffers;
    using Buffers::input_;
    using Buffers::isBounded_;
    using Buffers::keyN_;
    using Buffers::KeyOffset;
    using Buffers::kHalf;
    using Buffers::levelMasks_;
    using Buffers::LoadBeta;
    using Buffers::LoadGate;
    using Buffers::LoadParameters;
    using Buffers::LoadQueryKey;
    using Buffers::negBeta_;
    using Buffers::negRate_;
    using Buffers::one_;
    using Buffers::output_;
    using Buffers::parameters_;
    using Buffers::product_;
    using Buffers::rstd_;
    using Buffers::scaledPow_;
    using Buffers::softplus_;
    using Buffers::sums_;
    using Buffers::TensorFloat;
    using Buffers::TensorIo;
    using Buffers::tiling_;
    using Buffers::ValueOffset;
    using Buffers::vectors_;
    using Buffers::WorkspaceFloat;
    using Buffers::WorkspaceIo;
    using typename Buffers::GlobalFloat;
    using typename Buffers::Io;

    __aicore__ inline int64_t Space(int64_t round, int64_t sub) const {
        return units_.Space(round, sub);
    }

    // Starts the copies that unit needs first, if this core has a unit in that round.
    __aicore__ inline void Prefetch(int64_t round, int64_t sub) {
        FwdPrepareUnit unit;
        if (round >= units_.Rounds() || !units_.Find(round, sub, unit)) {
            return;
        }
        LoadGate(unit);
        LoadParameters(unit);
    }

    // ---- first visit: gate, norms, operands ----------------------------------------------------

    __aicore__ inline void WriteOperands(const FwdPrepareUnit& unit, int64_t space,
                                         const Tile& diagonal) {
        const int32_t rows = unit.place.rows;
        const int32_t padded = (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
        MakeDecay(unit);
        Io raw = input_.template DeQue<T>();
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(gateStored_);
        // Rows from `rows` to `padded` are what gk left there, then what the keys did. They become
        // rows and masked columns of scores, and rows beyond k of a product: never an output.
        const Tile& hat = first_;
        ToFloat(hat, raw, rows);
        WriteHat(unit, gm_.kHat, hat, rstd_, padded);
        if (tiling_.preciseRelay != 0 && tiling_.saveHatted != 0 && tiling_.normalize != 0 &&
            unit.group == 0) {
            EmitLowOutput(gm_.kHatLow, KeyOffset(unit, 128), hat, rows);
        }
        WriteKeyOperands(unit, space, hat, padded);

        ToFloat(hat, raw[64 * 128], rows);
        WriteHat(unit, gm_.qHat, hat, rstd_[64], padded);
        if (HasOwnDiagonal(rows)) {
            MakeDiagonal(diagonal, hat, raw, rows);
        }
        input_.FreeTensor(raw);
        WriteQueryOperands(unit, space, hat, padded);
        if (tiling_.saveHatted != 0 && tiling_.normalize != 0 && unit.group == 0) {
            WriteRstd(unit);
        }
    }

    // gk, its block vectors and factors; leaves the copy of q and k under way.
    __aicore__ inline void MakeDecay(const FwdPrepareUnit& unit) {
        const int32_t rows = unit.place.rows;
        const Tile& gk = first_;
        MakeGate(gk, rows);
        LoadQueryKey(unit);
        const Tile& blockSums = factorP_;
        if (isBounded_) {
            CumulativeSum(gk);
        } else {
            ScanBlocks(gk);
            JoinBlocks(gk, kScanRows, kBlockRows);
            TileMuls(blockSums, gk, tiling_.gateFactor, 64);
            JoinBlocks(gk, kBlockRows, 64);
        }
        SyncPipes<AscendC::HardEvent::V_MTE3>();
        StoreRows(TensorFloat(gm_.gk, ValueOffset(unit, 128)), gk, rows, 128, 128);
        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(gateStored_);

        if (isBounded_) {
            MakeDecayVectors(vectors_, gk, tiling_.referenceShift, tiling_.gateFactor);
            MakeBlockFactorP(factorP_, gk, vectors_, tiling_.gateFactor);
        } else {
            MakeLevelVectors(vectors_, blockSums);
        }
        TileMuls(scaledPow_, DecayVectors::At(vectors_, DecayVectors::kReferencePow), tiling_.scale,
                 kRowBlocks);
    }

    // The log decay of each row in the unit of gk; pad rows become zero.
    __aicore__ inline void MakeGate(const Tile& gate, int32_t rows) {
        Tile parameters = parameters_.template DeQue<float>();
        if (tiling_.gateKind != kGateActivated) {
            const float unit = tiling_.gateKind == kGateSafe ? 1.0f : tiling_.gateUnit;
            MakeNegativeRate(negRate_, parameters[128], sums_, unit);
        }
        if (tiling_.gateIsFloat != 0) {
            Tile raw = input_.template DeQue<float>();
            Activate(gate, raw, parameters, rows);
            input_.FreeTensor(raw);
        } else {
            Io raw = input_.template DeQue<T>();
            ToFloat(gate, raw, rows);
            input_.FreeTensor(raw);
            Activate(gate, gate, parameters, rows);
        }
        parameters_.FreeTensor(parameters);
    }

    // gate = bound_ where it is less. By Compare, for which NaN is not less, and not by Maxs: what
    // that makes of NaN the manual does not say.
    __aicore__ inline void StopAtBound(const Tile& gate, int32_t rows) {
        const auto mask = product_.template ReinterpretCast<uint8_t>();
        const uint8_t repeats = TileRepeats<128>(rows);
        const AscendC::BinaryRepeatParams params(1, 1, 0, kRepeatBlocks, kRepeatBlocks, 0);
        AscendC::Compare(mask, gate, bound_, AscendC::CMPMODE::LT, kFullMask, repeats, params);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Select(gate, mask, bound_, gate, AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE,
                        kFullMask, repeats,
                        AscendC::BinaryRepeatParams(1, 0, 1, kRepeatBlocks, 0, kRepeatBlocks));
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void Activate(const Tile& gate, const Tile& raw, const Tile& dtBias,
                                    int32_t rows) {
        if (tiling_.gateKind == kGateSafe) {
            ActivateSafeGate(gate, raw, dtBias, tiling_.hasDtBias != 0, negRate_, bound_, rows);
            return;
        }
        if (tiling_.gateKind == kGateActivated) {
            TileMuls(gate, raw, tiling_.gateUnit, rows);
        } else {
            if (tiling_.hasDtBias != 0) {
                RowAdd(gate, raw, dtBias, rows);
            } else {
                TileAdds(gate, raw, 0.0f, rows);
            }
            for (int32_t first = 0; first < rows; first += kHalf) {
                const int32_t count = rows - first < kHalf ? rows - first : kHalf;
                Softplus::Run(gate[first * 128], factorP_, keyN_, product_, softplus_, count);
            }
            TileScale(gate, gate, negRate_, rows);
        }
        StopAtBound(gate, rows);
        ClearRows(gate, rows, 64);
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

    // Whether <q_i, k_i> is taken in fp32. The levels of a gate without a bound leave the diagonal
    // out. And a short chunk has so few scores that one small inner product can be much of what is
    // left of its output, with the rounding of all its operands.
    __aicore__ inline bool HasOwnDiagonal(int32_t rows) const {
        return !isBounded_ || rows <= kBlockRows;
    }

    // diagonal[i] = scale <q_i, k_i>
    __aicore__ inline void MakeDiagonal(const Tile& diagonal, const Tile& query, const Io& rawKey,
                                        int32_t rows) {
        for (int32_t first = 0; first < rows; first += kHalf) {
            const int32_t count = rows - first < kHalf ? rows - first : kHalf;
            ToFloat(product_, rawKey[first * 128], count);
            TileMul(product_, product_, query[first * 128], count);
            SumHalfRows(sums_[first], product_, count);
        }
        TileAdd<64>(diagonal, sums_, sums_[64], 1);
        TileMuls<64>(diagonal, diagonal, tiling_.scale, 1);
        if (tiling_.normalize != 0) {
            TileMul<64>(diagonal, diagonal, rstd_, 1);
        }
    }

    // sums[r] = the sum of src[r][0..63], sums[64 + r] of the rest of the row.
    __aicore__ inline void SumHalfRows(const Tile& sums, const Tile& src, int32_t rows) {
        for (int32_t half = 0; half < 2; ++half) {
            AscendC::WholeReduceSum<float>(sums[half * 64], src[half * kLanes], kLanes, rows, 1, 1,
                                           RowBlocks<128>());
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // rstd = 1 / sqrt(sum of squares + epsilon)
    __aicore__ inline void MakeRstd(const Tile& rstd, const Tile& tile, int32_t padded) {
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            TileMul(product_, tile[first * 128], tile[first * 128], count);
            SumHalfRows(sums_[first], product_, count);
        }
        TileAdd<64>(rstd, sums_, sums_[64], 1);
        TileAdds<64>(rstd, rstd, tiling_.epsilon, 1);
        AscendC::Sqrt(rstd, rstd, kFullMask, 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileDivide<64>(rstd, one_, rstd, 1);
    }

    __aicore__ inline void WriteKeyOperands(const FwdPrepareUnit& unit, int64_t space,
                                            const Tile& key, int32_t padded) {
        const Tile& factor = MakeRowFactor(padded);
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            const int32_t block = first / kBlockRows;
            TileMul(product_, key[first * 128], factor[first * 128], count);
            EmitRowOperand(space + FwdPrepareSpace::kRowOperands, 1, product_, first, count);
            BlockRowMul(product_, product_,
                        DecayVectors::At(vectors_, DecayVectors::kReferencePow + block),
                        count / kBlockRows);
            Emit(WorkspaceIo(space, FwdPrepareSpace::kDecayedKey + first * 128 * 2), product_,
                 count, count, 128, 128);
        }
        WriteColumnOperands(space, key, padded);
        const int64_t offset = ValueOffset(unit, 128);
        for (int32_t first = 0; first < padded; first += kHalf) {
            EmitOutput(gm_.kg, offset, keyN_[first * 128], first, kHalf, unit.place.rows);
        }
        if (tiling_.preciseRelay != 0) {
            EmitLowOutput(gm_.kgLow, offset, keyN_, unit.place.rows);
        }
        if (!isBounded_) {
            WriteLevelOperands(space, 1, key, padded);
        }
    }

    // P, for which a gate without a bound has no tile of its own: it is made again for q.
    __aicore__ inline const Tile& MakeRowFactor(int32_t padded) {
        if (isBounded_) {
            return factorP_;
        }
        TileExp(keyN_, factorP_, padded);
        return keyN_;
    }

    // Column operands: going down one row block, everything left of it decays by one more step of
    // the reference. Factors are at most one, so the order of the products loses nothing. Leaves
    // kg in keyN_. Without a bound k N is k 2^(ref_(J+1) - gk): there is no step to the next block,
    // and none from the last one to the chunk's end.
    __aicore__ inline void WriteColumnOperands(int64_t space, const Tile& key, int32_t padded) {
        if (isBounded_) {
            TileDiv(keyN_, key, factorP_, padded);  // k N = k / P
            AscendC::PipeBarrier<PIPE_V>();
        } else {
            BlockEndExponents<128>(keyN_, factorP_, padded);
            TileExp(keyN_, keyN_, padded);
            TileMul(keyN_, key, keyN_, padded);
        }
        const int32_t blocks = padded / kBlockRows;
        const int32_t next = isBounded_ ? 0 : 1;
        int64_t place = FwdPrepareSpace::kColumnOperands;
        for (int32_t block = next; block < blocks + next; ++block) {
            if (block > next) {
                RowMul(keyN_, keyN_, DecayVectors::At(vectors_, DecayVectors::kStepPow + block - 1),
                       (block - next) * kBlockRows);
            }
            const int32_t columns = block < blocks ? (block + 1 - next) * kBlockRows : 0;
            for (int32_t first = 0; first < columns; first += kHalf) {
                const int32_t count = columns - first < kHalf ? columns - first : kHalf;
                Emit(WorkspaceIo(space, place + first * 128 * 2), keyN_[first * 128], count, count,
                     128, 128);
            }
            place += columns * 128 * 2;
        }
        if (isBounded_) {
            RowMul(keyN_, keyN_, DecayVectors::At(vectors_, DecayVectors::kLastPow + blocks - 1),
                   padded);
        }
    }

    // x F for every level, x being k (second = 1) or q.
    __aicore__ inline void WriteLevelOperands(int64_t space, int64_t second, const Tile& x,
                                              int32_t padded) {
        for (int32_t level = 0; level < kLevels; ++level) {
            const int64_t operand =
                space + FwdPrepareSpace::kLevelOperands + level * FwdPrepareSpace::kRowOperandBytes;
            LevelExponents<128>(keyN_, factorP_, level, padded);
            TileExp(keyN_, keyN_, padded);
            for (int32_t first = 0; first < padded; first += kHalf) {
                const int32_t count = padded - first < kHalf ? padded - first : kHalf;
                TileMul(product_, x[first * 128], keyN_[first * 128], count);
                EmitRowOperand(operand, second, product_, first, count);
            }
        }
    }

    __aicore__ inline void WriteQueryOperands(const FwdPrepareUnit& unit, int64_t space,
                                              const Tile& query, int32_t padded) {
        if (!isBounded_) {
            WriteLevelOperands(space, 0, query, padded);
        }
        const Tile& factor = MakeRowFactor(padded);
        const int64_t offset = ValueOffset(unit, 128);
        for (int32_t first = 0; first < padded; first += kHalf) {
            const int32_t count = padded - first < kHalf ? padded - first : kHalf;
            const int32_t block = first / kBlockRows;
            const Tile rows = query[first * 128];
            TileMul(product_, rows, factor[first * 128], count);
            EmitRowOperand(space + FwdPrepareSpace::kRowOperands, 0, product_, first, count);
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
        Tile out = output_.template AllocTensor<float>();
        TileAdds<64>(out, rstd_, 0.0f, 2);
        output_.EnQue(out);
        out = output_.template DeQue<float>();
        const int64_t offset = KeyOffset(unit, 1);
        StoreValues(TensorFloat(gm_.kRstd, offset), out, unit.place.rows);
        StoreValues(TensorFloat(gm_.qRstd, offset), out[64], unit.place.rows);
        output_.FreeTensor(out);
    }

    // ---- second visit: masks, beta, solve -------------------------------------------------------

    __aicore__ inline void SolveScores(const FwdPrepareUnit& unit, int64_t space,
                                       const Tile& diagonal) {
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
        if (!isBounded_) {
            LoadLevelScores(factorP_, space, 0, rows);
            LoadLevelScores(product_, space, 1, rows);
        }
        LoadBeta(unit, rawBeta);
        SyncPipes<AscendC::HardEvent::MTE2_V>();
        MakeBeta(unit, rawBeta, wideBeta);
        if (!isBounded_) {
            TakeDiagonalBlocks(queryScores, factorP_, rows);
            TakeDiagonalBlocks(keyScores, product_, rows);
        }

        KeepMasked(queryScores, belowOrDiagonal_, queryScores, rows);
        TileMuls<64>(queryScores, queryScores, tiling_.scale, rows);
        if (HasOwnDiagonal(rows)) {
            PutDiagonal(queryScores, diagonal, rows);
        }
        const int64_t offset = ValueOffset(unit, 64);
        this->template Emit<64>(TensorIo(gm_.aqk, offset), queryScores, rows, rows, 64, 64);

        FillIdentity(inverse, diagonal_, one_);
        UnitLowerInverse::Run(inverse, keyScores, column_, panel, spread, rows);
        if (tiling_.saveAkk != 0) {
            this->template Emit<64>(TensorIo(gm_.akk, offset), inverse, rows, rows, 64, 64);
        }
        // beta folds into the left operand, before it is rounded: v then enters the cube untouched.
        RowMul<64>(product_, inverse, betaRow_, rows);
        this->template Emit<64>(WorkspaceIo(space, FwdPrepareSpace::kBetaInverse), product_, rows,
                                rows, 64, 64);
        if (tiling_.splitInverse != 0) {
            this->template EmitLow<64>(WorkspaceIo(space, BetaInverseLow()), product_, keyScores,
                                       rows);
        }
    }

    // betaRow_ = beta_eff as a row of 64, column_ = -beta_eff as a column.
    __aicore__ inline void MakeBeta(const FwdPrepareUnit& unit, const Tile& rawBeta,
                                    const Tile& wideBeta) {
        const int32_t rows = unit.place.rows;
        if (tiling_.betaIsFloat != 0) {
            CompactColumn(betaRow_, rawBeta, rows, ColumnPitch<float>());
        } else {
            ToFloat<ColumnPitch<T>()>(wideBeta, rawBeta.template ReinterpretCast<T>(), 64);
            CompactColumn(betaRow_, wideBeta, rows, ColumnPitch<T>());
        }
        if (tiling_.betaSigmoid != 0) {
            TileMuls<64>(betaRow_, betaRow_, -1.0f, 1);
            ScaledSigmoidOfNegative<64>(betaRow_, betaTop_, 1);
        }
        TileMuls<64>(negBeta_, betaRow_, -1.0f, 1);
        SpreadColumn(column_, negBeta_, 64);
        if (tiling_.saveHatted != 0) {
            Tile out = output_.template AllocTensor<float>();
            TileAdds<64>(out, betaRow_, 0.0f, 1);
            output_.EnQue(out);
            out = output_.template DeQue<float>();
            StoreValues(TensorFloat(gm_.betaEff, ValueOffset(unit, 1)), out, rows);
            output_.FreeTensor(out);
        }
    }

    // The cube writes blocks on and below the diagonal only, or only below it. What the tile holds
    // above it is whatever the last use left: a mask removes it from the query's scores, and the
    // solve does not look there.
    __aicore__ inline void LoadScores(const Tile& scores, const GlobalFloat& src, int32_t rows) {
        for (int32_t first = 0; first < rows; first += kBlockRows) {
            const int32_t columns = isBounded_ ? first + kBlockRows : first;
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

    // The diagonal blocks of every level, of q (second = 0) or k: [64,16] each.
    __aicore__ inline void LoadLevelScores(const Tile& scores, int64_t space, int64_t second,
                                           int32_t rows) {
        const uint32_t blockBytes = kBlockRows * kBlockRows * sizeof(float);
        for (int32_t level = 0; level < kLevels; ++level) {
            AscendC::DataCopyExtParams params;
            params.blockCount = static_cast<uint16_t>((rows + kBlockRows - 1) / kBlockRows);
            params.blockLen = blockBytes;
            params.srcStride = blockBytes;
            params.dstStride = 0;
            AscendC::DataCopyPadExtParams<float> pad;
            pad.isPad = false;
            AscendC::DataCopyPad(
                scores[level * 64 * kBlockRows],
                WorkspaceFloat(space, FwdPrepareSpace::kLevelScores +
                                          level * FwdPrepareSpace::kLevelScoreBytes +
                                          second * blockBytes),
                params, pad);
        }
    }

    __aicore__ inline void PutDiagonal(const Tile& scores, const Tile& diagonal, int32_t rows) {
        const Tile& column = factorP_;
        SpreadColumn(column, diagonal, rows);
        AscendC::Select(scores, diagonal_, column, scores,
                        AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE, kFullMask,
                        static_cast<uint8_t>(rows),
                        AscendC::BinaryRepeatParams(1, 0, 1, kRepeatBlocks, 1, kRepeatBlocks));
        AscendC::PipeBarrier<PIPE_V>();
    }

    // From each level the pairs that are its own, all together to their places in the chunk's
    // scores; on and above the diagonal anything. `levels` is overwritten. No barrier at the end.
    __aicore__ inline void TakeDiagonalBlocks(const Tile& scores, const Tile& levels,
                                              int32_t rows) {
        const int32_t blocks = (rows + kBlockRows - 1) / kBlockRows;
        const uint8_t repeats = static_cast<uint8_t>(blocks * kBlockRows * kBlockRows / kLanes);
        for (int32_t level = 1; level < kLevels; ++level) {
            AscendC::Select(levels, levelMasks_[level * LevelMasks::kBytes],
                            levels[level * 64 * kBlockRows], levels,
                            AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE, kFullMask, repeats,
                            Contiguous());
            AscendC::PipeBarrier<PIPE_V>();
        }
        // A repeat takes one 32 B block from each of eight rows; repeats walk down the diagonal.
        for (int32_t row = 0; row < kBlockRows; row += kRepeatBlocks) {
            for (int32_t column = 0; column < kBlockRows; column += kBlockFloats) {
                AscendC::Adds(scores[row * 64 + column], levels[row * kBlockRows + column], 0.0f,
                              kFullMask, static_cast<uint8_t>(blocks),
                              AscendC::UnaryRepeatParams(
                                  RowBlocks<64>(), RowBlocks<kBlockRows>(),
                                  kBlockRows * RowBlocks<64>() + RowBlocks<kBlockRows>(),
                                  kBlockRows * RowBlocks<kBlockRows>()));
            }
        }
    }

    FwdPrepareUnits units_;
    OperandRing operands_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_VECTOR_H
