// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// V4 of bwd_finalize: everything element-wise. In this file t' stands for -2^gk dkb (the AIC
// delivers -dkb), Tq, Tk and Tc for the pair products before their decay factor:
//   sum_j dAqk_ij k_j E = P_i Tq_i,  sum_j dL_ij k_j E = P_i Tk_i,
//   sum_i (dAqk_ij q_i + dL_ij beta_i k_i) E = N_j Tc_j.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GRADIENTS_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GRADIENTS_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_buffers.h"
#include "chunk_kda_bwd_finalize_decay.h"
#include "chunk_kda_bwd_finalize_gate.h"
#include "chunk_kda_bwd_finalize_levels.h"
#include "chunk_kda_bwd_finalize_shared.h"
#include "common/gate.h"

namespace kda {
namespace bwd_finalize {

// dst rows += src rows * vec
__aicore__ inline void RowMulAdd64(const Tile& dst, const Tile& src, const Tile& vec,
                                   int32_t rows) {
    AscendC::MulAddDst(dst, src, vec, kFullMask, static_cast<uint8_t>(rows),
                       RowBroadcast<kChannels>());
    AscendC::PipeBarrier<PIPE_V>();
}

// tile[r] = sum of tile[r..63], 64 channels: eight blocks of eight rows side by side, then joined.
__aicore__ inline void ReverseCumulativeSum64(const Tile& tile) {
    const uint8_t blockStride = static_cast<uint8_t>(kScanRows * RowBlocks<kChannels>());
    const AscendC::BinaryRepeatParams sideBySide(1, 1, 1, blockStride, blockStride, blockStride);
    for (int32_t row = kScanRows - 2; row >= 0; --row) {
        AscendC::Add(tile[row * kChannels], tile[row * kChannels], tile[(row + 1) * kChannels],
                     kFullMask, kChunkRows / kScanRows, sideBySide);
        AscendC::PipeBarrier<PIPE_V>();
    }
    for (int32_t row = kChunkRows - 2 * kScanRows; row >= 0; row -= kScanRows) {
        RowAdd<kChannels>(tile[row * kChannels], tile[row * kChannels],
                          tile[(row + kScanRows) * kChannels], kScanRows);
    }
}

// tile[r] = sum of tile[0..r], likewise.
__aicore__ inline void CumulativeSum64(const Tile& tile) {
    const uint8_t blockStride = static_cast<uint8_t>(kScanRows * RowBlocks<kChannels>());
    const AscendC::BinaryRepeatParams sideBySide(1, 1, 1, blockStride, blockStride, blockStride);
    for (int32_t row = 1; row < kScanRows; ++row) {
        AscendC::Add(tile[row * kChannels], tile[row * kChannels], tile[(row - 1) * kChannels],
                     kFullMask, kChunkRows / kScanRows, sideBySide);
        AscendC::PipeBarrier<PIPE_V>();
    }
    for (int32_t row = kScanRows; row < kChunkRows; row += kScanRows) {
        RowAdd<kChannels>(tile[row * kChannels], tile[row * kChannels], tile[(row - 1) * kChannels],
                          kScanRows);
    }
}

// T: as in Vector.
template <typename T>
class Gradients {
public:
    __aicore__ inline Gradients(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm,
                                const SlotRing& slots, VectorBuffers& buffers, Levels<T>& levels)
        : tiling_(tiling),
          gm_(gm),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          byLevels_(tiling.pairsByLevels != 0),
          slots_(slots),
          b_(buffers),
          levels_(levels),
          gate_(tiling, gm, buffers) {}

    __aicore__ inline void Run(const ChunkPlace& place, int64_t step) {
        step_ = step;
        place_ = place;
        rows_ = place.rows;
        column_ = b_.FirstChannel();
        keyHead_ = place.head / tiling_.geometry.headGroup;
        keyRow_ = index_.CacheOffset(place, keyHead_, tiling_.geometry.keyHeads, kKeyDim) + column_;

        b_.LoadFull(Cache<float>(gm_.gk), rows_, kKeyDim);
        LoadKey();
        b_.LoadQuery(Bind<T>(gm_.q)[keyRow_], rows_, kKeyDim);
        b_.LoadFull(Area<float>(Slot::kDvb), rows_, kValueDim);
        if (!HasKeyLow()) {
            LoadValue();
        }
        LoadVectors();
        Tile gk = b_.TakeFull();
        b_.Decay().ToLog2(gk, rows_);
        b_.Decay().Make(gk, rows_);
        b_.Decay().MakeFactorP(Factor(), gk, rows_);
        b_.FreeFull(gk);
        LoadPairRows(Slot::kKeyRows);
        b_.TakeKey<T>(Key(), Work(), HasKeyLow(), rows_);
        if (HasKeyLow()) {
            LoadValue();
        }
        b_.LoadHalf(Area<T>(Slot::kKeyP), rows_, kKeyDim);
        query_ = b_.TakeQuery<T>();

        ValueGrad();
        KeyRowTerms();
        QueryTerms();
        DiagonalPairs();
        if (byLevels_) {
            LevelTerms();
        }
        KeyColumnTerms();
        StateKeyTerms();
        const int64_t group = tiling_.geometry.headGroup;
        const int64_t member = place.head % group;
        const bool last = member == group - 1;
        if (group > 1) {
            SumOverGroup(DQuery(), GroupSum::kDQuery, member > 0, last);
            SumOverGroup(DKey(), GroupSum::kDKey, member > 0, last);
        }
        ExchangeSums(last);
        SumOverRows();
        FinishSums(last);
        b_.FreeQuery(query_);
        gate_.Run(place, DGate(), {Key(), DQuery(), DKey(), Work(), Factor()});
    }

private:
    // Work tiles.
    __aicore__ inline Tile Factor() { return b_.Work(0); }  // P, later N, then k dk1
    __aicore__ inline Tile Key() { return b_.Work(1); }
    __aicore__ inline Tile DGate() { return b_.Work(2); }  // dgk
    __aicore__ inline Tile DQuery() { return b_.Work(3); }
    __aicore__ inline Tile DKey() { return b_.Work(4); }
    __aicore__ inline Tile Work() { return b_.Work(5); }
    // Row vectors.
    __aicore__ inline Tile DtBias() { return b_.Values(); }
    __aicore__ inline Tile QueryRstd() { return b_.Values()[kChunkRows]; }
    __aicore__ inline Tile KeyRstd() { return b_.Values()[2 * kChunkRows]; }
    __aicore__ inline Tile HrDiagonal() { return b_.Values()[3 * kChunkRows]; }

    template <typename E>
    __aicore__ inline AscendC::GlobalTensor<E> Bind(GM_ADDR address) const {
        AscendC::GlobalTensor<E> tensor;
        tensor.SetGlobalBuffer(reinterpret_cast<__gm__ E*>(address));
        return tensor;
    }
    // This AIV's channels of a head-major cache of 128 columns, and of a workspace tile.
    template <typename E>
    __aicore__ inline AscendC::GlobalTensor<E> Cache(GM_ADDR address) const {
        return Bind<E>(address)[index_.ValueCacheOffset(place_, kKeyDim) + column_];
    }
    template <typename E>
    __aicore__ inline AscendC::GlobalTensor<E> Area(int64_t area) const {
        return slots_.Area<E>(step_, area)[column_];
    }

    // The queue has room for two tiles: what follows k waits for its low half.
    __aicore__ inline bool HasKeyLow() const { return tiling_.hasKeyLow != 0; }
    __aicore__ inline void LoadKey() {
        b_.LoadKey(Bind<T>(gm_.k)[keyRow_], Bind<T>(gm_.kLow)[keyRow_], HasKeyLow(), rows_);
    }
    __aicore__ inline void LoadValue() {
        b_.LoadHalf(Bind<T>(gm_.v)[ChunkIndex::RowOffset(tiling_.value, place_) + column_], rows_,
                    tiling_.value.tokenStride);
    }

    // dt_bias, exp(a_log), both rstd and the diagonals of H R^T and dAqk.
    __aicore__ inline void LoadVectors() {
        const int32_t channels = kChannels;
        Tile in = b_.AllocSmall();
        if (tiling_.hasDtBias) {
            LoadRows(in, Bind<float>(gm_.dtBias)[place_.head * kKeyDim + column_], 1, channels,
                     channels);
        }
        if (tiling_.hasNorm) {
            const int64_t row = index_.CacheOffset(place_, keyHead_, tiling_.geometry.keyHeads, 1);
            LoadRows(in[kChunkRows], Bind<float>(gm_.qRstd)[row], 1, rows_, rows_);
            LoadRows(in[2 * kChunkRows], Bind<float>(gm_.kRstd)[row], 1, rows_, rows_);
        }
        if (tiling_.gateKind != kGateActivated) {
            LoadRows(in[3 * kChunkRows], Bind<float>(gm_.aLog)[place_.head], 1, 1, 1);
        }
        b_.EnQueSmall(in);
        in = b_.TakeSmall();
        if (tiling_.hasDtBias) {
            AscendC::Adds(DtBias(), in, 0.0f, kFullMask, 1, ContiguousUnary());
        }
        if (tiling_.hasNorm) {
            AscendC::Adds(QueryRstd(), in[kChunkRows], 0.0f, static_cast<uint64_t>(rows_), 2,
                          ContiguousUnary());
        }
        if (tiling_.gateKind != kGateActivated) {
            MakeNegativeRate(b_.NegativeRate(), in[3 * kChunkRows], b_.Scratch());
            // slope = lower_bound * exp(a_log)
            AscendC::Muls(b_.Slope(), b_.NegativeRate(), -tiling_.lowerBound,
                          static_cast<uint64_t>(kBlockFloats), 1, ContiguousUnary());
        }
        b_.FreeSmall(in);

        in = b_.AllocSmall();
        const auto hr = slots_.Area<float>(step_, Slot::kHrDiagonal)[column_ * kBlockRows];
        for (int32_t block = 0; block < kChannels / kBlockRows; ++block) {
            LoadColumn(in[block * kBlockRows * kBlockFloats], hr[block * kBlockRows * kBlockRows],
                       kBlockRows, kBlockRows + 1);
        }
        b_.EnQueSmall(in);
        in = b_.TakeSmall();
        CompactColumn(HrDiagonal(), in, channels, kBlockFloats);
        b_.FreeSmall(in);

        in = b_.AllocSmall();
        LoadColumn(in, Bind<float>(gm_.dAqk)[index_.ValueCacheOffset(place_, kChunkRows)], rows_,
                   kChunkRows + 1);
        b_.EnQueSmall(in);
        in = b_.TakeSmall();
        CompactColumn(b_.Scratch(), in, rows_, kBlockFloats);
        b_.FreeSmall(in);
        SpreadColumn(b_.Column(), b_.Scratch(), rows_);
        SpreadColumn(b_.BetaColumn(), b_.Beta(step_), rows_);
    }

    // dv = beta dvb; the products dvb v begin the sum of dbeta in the tile that later holds dq.
    __aicore__ inline void ValueGrad() {
        auto value = b_.TakeHalf<T>();
        ToFloat<kChannels>(DQuery(), value, rows_);
        b_.FreeHalf(value);
        b_.LoadHalf(Area<T>(Slot::kQueryP), rows_, kKeyDim);
        Tile dvb = b_.TakeFull();
        TileMul<kChannels>(DQuery(), DQuery(), dvb, rows_);
        ColumnMul<kChannels>(dvb, dvb, b_.BetaColumn(), rows_);
        auto out = b_.AllocOut<T>();
        ToIo<kChannels>(out, dvb, rows_);
        b_.FreeFull(dvb);
        b_.LoadFull(Area<float>(Slot::kDkb), rows_, kKeyDim);
        b_.StoreOut(Bind<T>(gm_.dv)[ChunkIndex::RowOffset(tiling_.valueGrad, place_) + column_],
                    out, rows_, kChannels, tiling_.valueGrad.tokenStride);
    }

    // y = P Tk + 2^gk dkb:  dk = beta y, dbeta += <k, y>,
    // dgk = (beta k P rounded) Tk + beta k 2^gk dkb.
    __aicore__ inline void KeyRowTerms() {
        Tile keyRows = TakePairRows();
        auto keyP = b_.TakeHalf<T>();
        ToFloat<kChannels>(Work(), keyP, rows_);
        b_.FreeHalf(keyP);
        TileMul<kChannels>(DGate(), Work(), keyRows, rows_);
        TileMul<kChannels>(DKey(), Factor(), keyRows, rows_);
        b_.FreeFull(keyRows);
        LoadPairRows(Slot::kQueryRows);

        Tile dkb = b_.TakeFull();
        TileMul<kChannels>(dkb, dkb, Factor(), rows_);
        BlockRowMul64(dkb, dkb, b_.Decay().ReferencePow(), rows_);
        TileSub<kChannels>(DKey(), DKey(), dkb, rows_);
        ColumnMul<kChannels>(Work(), Key(), b_.BetaColumn(), rows_);
        TileMul<kChannels>(Work(), Work(), dkb, rows_);
        b_.FreeFull(dkb);
        b_.LoadFull(Cache<float>(gm_.dqRaw), rows_, kKeyDim);
        TileSub<kChannels>(DGate(), DGate(), Work(), rows_);
        TileMulAdd<kChannels>(DQuery(), Key(), DKey(), rows_);
        RowSums64(b_.Sums(), DQuery(), rows_);
        ColumnMul<kChannels>(DKey(), DKey(), b_.BetaColumn(), rows_);
    }

    // dq = P Tq + dq1, dq1 = scale 2^gk dq_raw;  dgk += (q P rounded) Tq + q dq1.
    __aicore__ inline void QueryTerms() {
        Tile queryRows = TakePairRows();
        TileMul<kChannels>(DQuery(), Factor(), queryRows, rows_);
        auto queryP = b_.TakeHalf<T>();
        ToFloat<kChannels>(Work(), queryP, rows_);
        b_.FreeHalf(queryP);
        TileMulAdd<kChannels>(DGate(), Work(), queryRows, rows_);
        b_.FreeFull(queryRows);
        if (byLevels_) {
            b_.LoadFull(Cache<float>(gm_.gk), rows_, kKeyDim);
        } else {
            LoadColumnsOwn();
            LoadKeyN();
        }

        const Tile pow = b_.Decay().ReferencePow();
        TileMuls<kChannels>(pow, pow, tiling_.scale, kRowBlocks);
        Tile raw = b_.TakeFull();
        TileMul<kChannels>(raw, raw, Factor(), rows_);
        BlockRowMul64(raw, raw, pow, rows_);
        TileAdd<kChannels>(DQuery(), DQuery(), raw, rows_);
        ToFloat<kChannels>(Work(), query_, rows_);
        TileMulAdd<kChannels>(DGate(), Work(), raw, rows_);
        b_.FreeFull(raw);
    }

    // Pairs i = j: to dq and dk, never to dgk. q is in the work tile.
    __aicore__ inline void DiagonalPairs() {
        ColumnMulAdd<kChannels>(DKey(), Work(), b_.Column(), rows_);
        ColumnMulAdd<kChannels>(DQuery(), Key(), b_.Column(), rows_);
        if (!byLevels_) {
            TileDivide<kChannels>(Factor(), b_.One(), Factor(), rows_);
        }
    }

    // Products by rows with the columns of blocks further left, and, unless by levels, of the row's
    // own block: by levels the first block has none.
    __aicore__ inline void LoadPairRows(int64_t area) {
        const int32_t first = byLevels_ ? kBlockRows : 0;
        Tile tile = b_.AllocFull();
        if (rows_ > first) {
            LoadRows(tile[first * kChannels], Area<float>(area)[first * kKeyDim], rows_ - first,
                     kChannels, kKeyDim);
        }
        b_.EnQueFull(tile);
    }
    __aicore__ inline Tile TakePairRows() {
        Tile tile = b_.TakeFull();
        if (byLevels_) {
            ClearRows<kChannels>(tile, 0, kBlockRows);
        }
        return tile;
    }

    // The part of Tc that a row block sends to its own rows.
    __aicore__ inline void LoadColumnsOwn() {
        const auto area = Area<float>(Slot::kColumns);
        Tile own = b_.AllocFull();
        for (int32_t block = 0; block * kBlockRows < rows_; ++block) {
            LoadRows(own[block * kBlockRows * kChannels],
                     area[(PairRow(block) + block) * kBlockRows * kKeyDim],
                     RowsOfBlock(block, rows_), kChannels, kKeyDim);
        }
        b_.EnQueFull(own);
    }
    // k N rounded, the rows of their own blocks.
    __aicore__ inline void LoadKeyN() {
        const auto area = Area<T>(Slot::kKeyN);
        auto keyN = b_.AllocHalf<T>();
        for (int32_t block = 0; block * kBlockRows < rows_; ++block) {
            LoadRows(keyN[block * kBlockRows * kChannels],
                     area[(PairRow(block) + block) * kBlockRows * kKeyDim],
                     RowsOfBlock(block, rows_), kChannels, kKeyDim);
        }
        b_.EnQueHalf(keyN);
    }
    // What row blocks firstBlock .. lastBlock send to the rows above them.
    __aicore__ inline void LoadColumnsBelow(int32_t firstBlock, int32_t lastBlock) {
        const auto area = Area<float>(Slot::kColumns);
        Tile tile = b_.AllocFull();
        int32_t at = 0;
        for (int32_t block = firstBlock; block <= lastBlock; ++block) {
            LoadRows(tile[at], area[PairRow(block) * kBlockRows * kKeyDim], block * kBlockRows,
                     kChannels, kKeyDim);
            at += block * kBlockRows * kChannels;
        }
        b_.EnQueFull(tile);
    }
    __aicore__ inline void AddColumnsBelow(const Tile& sum, int32_t firstBlock, int32_t lastBlock) {
        Tile tile = b_.TakeFull();
        int32_t at = 0;
        for (int32_t block = firstBlock; block <= lastBlock; ++block) {
            for (int32_t above = 0; above < block; ++above) {
                RowMulAdd64(sum[above * kBlockRows * kChannels], tile[at],
                            b_.Decay().StepPow(block, above), kBlockRows);
                at += kBlockRows * kChannels;
            }
        }
        b_.FreeFull(tile);
    }

    // dk += N Tc,  dgk -= (k N rounded) Tc.
    __aicore__ inline void KeyColumnTerms() {
        const int32_t lastBlock = (rows_ - 1) / kBlockRows;
        const int32_t middle = lastBlock < 2 ? lastBlock : 2;
        if (lastBlock > 0) {
            LoadColumnsBelow(1, middle);
        }
        Tile columns = b_.TakeFull();
        if (byLevels_) {  // it holds gk, and own columns come by levels
            b_.Decay().ToLog2(columns, rows_);
            b_.Decay().MakeFactorN(Factor(), columns, rows_);
            ClearRows<kChannels>(columns, 0, kChunkRows);
        }
        if (lastBlock > 0) {
            AddColumnsBelow(columns, 1, middle);
        }
        if (lastBlock > 2) {
            LoadColumnsBelow(3, 3);
            AddColumnsBelow(columns, 3, 3);
        }
        b_.LoadFull(Area<float>(Slot::kDkg), rows_, kKeyDim);
        TileMulAdd<kChannels>(DKey(), Factor(), columns, rows_);
        auto keyN = b_.TakeHalf<T>();
        ToFloat<kChannels>(Work(), keyN, rows_);
        b_.FreeHalf(keyN);
        TileMul<kChannels>(Work(), Work(), columns, rows_);
        b_.FreeFull(columns);
        TileSub<kChannels>(DGate(), DGate(), Work(), rows_);
    }

    // dk1 = 2^(gk_last - gk) (v_new R^T):  dk += dk1,  dgk[last] += 2^gk_last diag(H R^T). The row
    // that wrote into the state decays with it from the next row on: see SumOverRows for k dk1.
    // No barrier at the end: ExchangeSums has some, in front of dgk's next use.
    __aicore__ inline void StateKeyTerms() {
        BlockRowMul64(Factor(), Factor(), b_.Decay().LastPow(), rows_);
        Tile dk1 = b_.TakeFull();
        TileMul<kChannels>(dk1, dk1, Factor(), rows_);
        TileAdd<kChannels>(DKey(), DKey(), dk1, rows_);
        TileMul<kChannels>(Factor(), Key(), dk1, rows_);
        b_.FreeFull(dk1);
        AscendC::MulAddDst(DGate()[(rows_ - 1) * kChannels], HrDiagonal(), b_.Decay().Last(),
                           kFullMask, 1, Contiguous());
    }

    // da_t = sum of dgk_i, i >= t, and of k_i dk1_i, i < t. As a part of dgk the latter would be
    // -k dk1 with the sum of all rows in the last one: their difference leaves nothing of the
    // first rows under strong decay, where the last row's term is the only large number of all.
    __aicore__ inline void SumOverRows() {
        ClearRows<kChannels>(DGate(), rows_, kChunkRows);
        ReverseCumulativeSum64(DGate());
        CumulativeSum64(Factor());
        if (rows_ > 1) {
            const Tile next = DGate()[kChannels];
            TileAdd<kChannels>(next, next, Factor(), rows_ - 1);
        }
    }

    // Pairs inside diagonal blocks by levels. P and the tile of k are free for it: gk and k come
    // anew for what follows. No barrier at the end: KeyColumnTerms has some, in front of dk's next
    // use.
    __aicore__ inline void LevelTerms() {
        const Tile rowSum = Work();
        Tile gk = b_.TakeFull();
        levels_.AddTerms(step_, gk, tiling_.gateToLog2 * kLn2,
                         {DQuery(), DKey(), DGate(), Factor(), Key(), rowSum}, rows_);
        b_.FreeFull(gk);
        b_.LoadFull(Cache<float>(gm_.gk), rows_, kKeyDim);
        LoadKey();
        if (!HasKeyLow()) {
            LoadKeyN();
        }
        b_.TakeKey<T>(Key(), Factor(), HasKeyLow(), rows_);
        if (HasKeyLow()) {
            LoadKeyN();
        }
        TileMul<kChannels>(Factor(), Key(), rowSum, rows_);
        RowSums64(b_.Scratch(), Factor(), rows_);
        TileAdd<kChannels>(b_.Sums(), b_.Sums(), b_.Scratch(), 1);
        ColumnMulAdd<kChannels>(DKey(), rowSum, b_.BetaColumn(), rows_);
    }

    // dq or dk of the value heads of one key head, in order: each head but the last leaves the sum
    // so far in workspace, the last one ends up with all of it in its tile. The load needs no flag
    // of its own: between the two steps the output buffers of the store go round again, and every
    // use of one waits for the store before it.
    __aicore__ inline void SumOverGroup(const Tile& grad, int64_t area, bool hasSum, bool isLast) {
        const auto sum = slots_.GroupSum(area)[column_];
        if (hasSum) {
            b_.LoadFull(sum, rows_, kKeyDim);
            Tile before = b_.TakeFull();
            TileAdd<kChannels>(grad, before, grad, rows_);
            b_.FreeFull(before);
        }
        if (!isLast) {
            b_.StoreFloat(sum, grad, rows_, kKeyDim);
        }
    }

    // <q, dq> and <k, dk> for the norms join dbeta's sum; the other AIV has the other channels.
    __aicore__ inline void ExchangeSums(bool isLast) {
        if (tiling_.hasNorm && isLast) {
            ToFloat<kChannels>(Work(), query_, rows_);
            TileMul<kChannels>(Work(), Work(), DQuery(), rows_);
            RowSums64(b_.Sums()[kChunkRows], Work(), rows_);
            TileMul<kChannels>(Work(), Key(), DKey(), rows_);
            RowSums64(b_.Sums()[2 * kChunkRows], Work(), rows_);
        }
        auto out = b_.AllocOut<float>();
        TileAdds<kChannels>(out, b_.Sums(), 0.0f, 3);
        b_.StoreOut(Exchange(b_.SubBlock()), out, 3, kChunkRows, kChunkRows);
        AscendC::CrossCoreSetFlag<kPairScope, PIPE_MTE3>(kSumsReady);
    }

    __aicore__ inline void FinishSums(bool isLast) {
        AscendC::CrossCoreWaitFlag(kSumsReady);
        Tile other = b_.AllocSmall();
        LoadRows(other, Exchange(1 - b_.SubBlock()), 3, kChunkRows, kChunkRows);
        b_.EnQueSmall(other);
        other = b_.TakeSmall();
        TileAdd<kChannels>(b_.Sums(), b_.Sums(), other, 3);
        b_.FreeSmall(other);
        if (b_.SubBlock() == 0) {
            BetaGrad();
        }
        if (!isLast) {
            return;
        }
        NormGrad(DQuery(), gm_.dq, b_.Sums()[kChunkRows], QueryRstd(), true);
        NormGrad(DKey(), gm_.dk, b_.Sums()[2 * kChunkRows], KeyRstd(), false);
    }

    // Through beta_eff = s sigmoid(beta): dbeta * beta_eff (1 - beta_eff / s).
    __aicore__ inline void BetaGrad() {
        const Tile sum = b_.Scratch();
        TileAdds<kChannels>(sum, b_.Sums(), 0.0f, 1);
        if (tiling_.hasBetaSigmoid) {
            const Tile beta = b_.Beta(step_);
            const Tile rest = b_.Scratch()[kChunkRows];
            TileMuls<kChannels>(rest, beta, -1.0f / tiling_.betaScale, 1);
            TileAdds<kChannels>(rest, rest, 1.0f, 1);
            TileMul<kChannels>(rest, rest, beta, 1);
            TileMul<kChannels>(sum, sum, rest, 1);
        }
        const auto dst = Bind<float>(gm_.dbeta)[ChunkIndex::RowOffset(tiling_.betaGrad, place_)];
        auto out = b_.AllocOut<float>();
        if (tiling_.betaGrad.tokenStride == 1) {
            TileAdds<kChannels>(out, sum, 0.0f, 1);
            b_.StoreOut(dst, out, 1, rows_, rows_);
            return;
        }
        SpreadColumn(out, sum, rows_);  // one value a 32 B block: one a row of GM
        b_.EnQueOut(out);
        out = b_.DeQueOut<float>();
        StoreRows(dst, out, rows_, 1, tiling_.betaGrad.tokenStride);
        b_.FreeOut(out);
    }

    // dx = rstd (dx_hat - x_hat <x_hat, dx_hat>), then out in the caller's layout.
    __aicore__ inline void NormGrad(const Tile& grad, GM_ADDR address, const Tile& sums,
                                    const Tile& rstd, bool isQuery) {
        if (tiling_.hasNorm) {
            SpreadColumn(b_.Column(), sums, rows_);
            if (isQuery) {
                ToFloat<kChannels>(Work(), query_, rows_);
                ColumnMul<kChannels>(Work(), Work(), b_.Column(), rows_);
            } else {
                ColumnMul<kChannels>(Work(), Key(), b_.Column(), rows_);
            }
            TileSub<kChannels>(grad, grad, Work(), rows_);
            SpreadColumn(b_.Column(), rstd, rows_);
            ColumnMul<kChannels>(grad, grad, b_.Column(), rows_);
        }
        auto out = b_.AllocOut<T>();
        ToIo<kChannels>(out, grad, rows_);
        b_.StoreOut(
            Bind<T>(address)[ChunkIndex::RowOffset(tiling_.keyGrad, place_, keyHead_) + column_],
            out, rows_, kChannels, tiling_.keyGrad.tokenStride);
    }

    __aicore__ inline AscendC::GlobalTensor<float> Exchange(int32_t subBlock) const {
        return slots_.Area<float>(step_, Slot::kExchange)[subBlock * Slot::kExchangeFloats];
    }

    static constexpr uint8_t kPairScope = 1;  // CrossCoreSetFlag mode: the two AIVs of a block

    const ChunkKdaBwdFinalizeTilingData& tiling_;
    const Pointers& gm_;
    const ChunkIndex index_;
    const bool byLevels_;
    const SlotRing& slots_;
    VectorBuffers& b_;
    Levels<T>& levels_;
    GateGradients<T> gate_;
    ChunkPlace place_;
    int64_t step_ = 0;
    int64_t column_ = 0;
    int64_t keyHead_ = 0;
    int64_t keyRow_ = 0;
    int32_t rows_ = 0;
    AscendC::LocalTensor<T> query_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GRADIENTS_H
