// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The cube core's part of bwd_finalize: C1..C4 of the table in chunk_kda_bwd_finalize.cpp.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_CUBE_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_CUBE_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_shared.h"
#include "common/cube.h"
#include "common/level_decay.h"

namespace kda {
namespace bwd_finalize {

// T: bfloat16_t or half, the type of every operand of a product.
template <typename T>
class Cube {
public:
    __aicore__ inline Cube(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm)
        : tiling_(tiling),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          slots_(tiling, gm.workspace),
          byLevels_(tiling.pairsByLevels != 0) {
        v_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.v));
        akk_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.akk));
        h_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.h));
        dh_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.dh));
        hLow_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.hLow));
        dhLow_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.dhLow));
        dvScan_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm.dvScan));
    }

    __aicore__ inline void Run(AscendC::TPipe& pipe) {
        pipe.InitBuffer(inputs_, 2, Input::kElements * sizeof(T));
        pipe.InitBuffer(state_, 1,
                        (IsPrecise() ? State::kPreciseElements : State::kElements) * sizeof(T));
        pipe.InitBuffer(residual_, 1, kChunkRows * kKeyDim * sizeof(T));
        pipe.InitBuffer(scores_, 2, kChunkRows * kChunkRows * sizeof(T));
        pipe.InitBuffer(pairs_, 1, Pair::kElements * sizeof(T));
        if (byLevels_) {
            pipe.InitBuffer(levels_, 1, Level::kElements * sizeof(T));
        }
        l0_.Init(pipe);

        const int64_t count = StepCount(index_, tiling_.geometry);
        if (count == 0) {
            return;
        }
        auto current = LoadInputs(Locate(0));
        current = inputs_.DeQue<T>();
        StateProducts(current, Locate(0), 0);
        VectorToCubeFlag<kOperandsReady>::Wait();
        OperandProducts(current, Locate(0), 0);
        for (int64_t step = 0; step < count; ++step) {
            const ChunkPlace place = Locate(step);
            const bool more = step + 1 < count;
            if (more) {
                LoadInputs(Locate(step + 1));
            }
            VectorToCubeFlag<kInverseGradReady>::Wait();
            InverseProducts(current, place, step);
            inputs_.FreeTensor(current);
            if (more) {
                const ChunkPlace next = Locate(step + 1);
                current = inputs_.DeQue<T>();
                StateProducts(current, next, step + 1);
                VectorToCubeFlag<kOperandsReady>::Wait();
                OperandProducts(current, next, step + 1);
            }
            VectorToCubeFlag<kScoreGradReady>::Wait();
            PairProducts(place, step);
        }
    }

private:
    using Matrix = AscendC::LocalTensor<T>;

    // Element offsets in the L1 buffers.
    struct Input {
        static constexpr uint32_t kH = 0;
        static constexpr uint32_t kDh = kH + kKeyDim * kValueDim;
        static constexpr uint32_t kV = kDh + kKeyDim * kValueDim;
        static constexpr uint32_t kX = kV + kChunkRows * kValueDim;  // dv_scan
        static constexpr uint32_t kAkk = kX + kChunkRows * kValueDim;
        static constexpr uint32_t kElements = kAkk + kChunkRows * kChunkRows;
    };
    struct State {
        static constexpr uint32_t kHr = 0;
        static constexpr uint32_t kDw = kHr + kKeyDim * kKeyDim;
        static constexpr uint32_t kKeyDecayed = kDw + kChunkRows * kKeyDim;
        static constexpr uint32_t kAkkBeta = kKeyDecayed + kChunkRows * kKeyDim;
        static constexpr uint32_t kElements = kAkkBeta + kChunkRows * kChunkRows;
        // With preciseStates.
        static constexpr uint32_t kAkkBetaLow = kElements;
        static constexpr uint32_t kDhLow = kAkkBetaLow + kChunkRows * kChunkRows;
        static constexpr uint32_t kPreciseElements = kDhLow + kKeyDim * kValueDim;
        static constexpr uint32_t kHLow = kHr;  // before there is a H R^T
    };
    struct Pair {
        static constexpr uint32_t kDAqk = 0;
        static constexpr uint32_t kDAqkLow = kDAqk + kChunkRows * kChunkRows;
        static constexpr uint32_t kDL = kDAqkLow + kChunkRows * kChunkRows;
        static constexpr uint32_t kDLLow = kDL + kChunkRows * kChunkRows;
        static constexpr uint32_t kQueryP = kDLLow + kChunkRows * kChunkRows;
        static constexpr uint32_t kKeyP = kQueryP + kChunkRows * kKeyDim;
        static constexpr uint32_t kKeyN = kKeyP + kChunkRows * kKeyDim;
        static constexpr uint32_t kElements = kKeyN + kBlockPairs * kBlockRows * kKeyDim;
    };

    struct Level {
        static constexpr uint32_t kQuery = 0;
        static constexpr uint32_t kKey = kQuery + kChunkRows * kKeyDim;
        static constexpr uint32_t kDAqk = kKey + kChunkRows * kKeyDim;
        static constexpr uint32_t kDL = kDAqk + 2 * kChunkRows * kBlockRows;
        static constexpr uint32_t kElements = kDL + 2 * kChunkRows * kBlockRows;
    };

    __aicore__ inline bool IsPrecise() const { return tiling_.preciseStates != 0; }

    __aicore__ inline ChunkPlace Locate(int64_t step) const {
        return LocateStep(index_, tiling_.geometry, step);
    }

    // A workspace tile of `rows` rows to L1.
    __aicore__ inline void LoadSlot(const Matrix& l1, int64_t step, int64_t area, uint32_t rows,
                                    uint32_t columns) {
        LoadNdToL1(l1, slots_.Area<T>(step, area), rows, columns, columns);
    }

    __aicore__ inline Matrix LoadInputs(const ChunkPlace& place) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        Matrix tiles = inputs_.AllocTensor<T>();
        const int64_t state = index_.ChunkStateOffset(place, kKeyDim, kValueDim);
        LoadNdToL1(tiles[Input::kH], h_[state], kKeyDim, kValueDim, kValueDim);
        LoadNdToL1(tiles[Input::kDh], dh_[state], kKeyDim, kValueDim, kValueDim);
        LoadNdToL1(tiles[Input::kX], dvScan_[index_.ValueCacheOffset(place, kValueDim)], rows,
                   kValueDim, kValueDim);
        LoadNdToL1(tiles[Input::kAkk], akk_[index_.ValueCacheOffset(place, kChunkRows)], rows,
                   kChunkRows, kChunkRows);
        LoadNdToL1(tiles[Input::kV], v_[ChunkIndex::RowOffset(tiling_.value, place)], rows,
                   kValueDim, static_cast<uint64_t>(tiling_.value.tokenStride));
        inputs_.EnQue(tiles);
        return tiles;
    }

    // C1: what needs inputs only. H R^T keeps its diagonal in fp32: sum_v (H R) of the state's
    // own decay.
    __aicore__ inline void StateProducts(const Matrix& in, const ChunkPlace& place, int64_t step) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        const uint32_t l1Rows = AlignUp(rows, kFractalRows);
        Matrix low;
        if (IsPrecise()) {
            low = LoadStatesLow(place);
        }
        {
            auto a = l0_.AllocA<T>();
            LoadStateA(a, in[Input::kH]);
            auto b = l0_.AllocB<T>();
            LoadBTransposed(b, in[Input::kDh], kValueDim, kKeyDim, kKeyDim);
            auto c = l0_.AllocC();
            if (IsPrecise()) {
                auto aLow = l0_.AllocA<T>();
                LoadStateA(aLow, low[State::kHLow]);
                auto bLow = l0_.AllocB<T>();
                LoadBTransposed(bLow, low[State::kDhLow], kValueDim, kKeyDim, kKeyDim);
                l0_.MultiplyPairs(c, a, aLow, b, bLow, kKeyDim, kKeyDim, kValueDim);
            } else {
                l0_.Multiply(c, a, b, kKeyDim, kKeyDim, kValueDim);
            }
            l0_.FinishC(c);
            StoreC(slots_.Area<T>(step, Slot::kHr), c, kKeyDim, kKeyDim, kKeyDim);
            const auto diagonal = slots_.Area<float>(step, Slot::kHrDiagonal);
            for (uint32_t block = 0; block < kKeyDim / kFractalRows; ++block) {
                const uint32_t first = block * kFractalRows;
                StoreC(diagonal[first * kFractalRows], c[(block * kKeyDim + first) * kFractalRows],
                       kFractalRows, kFractalRows, kFractalRows, kKeyDim);
            }
            l0_.FreeC(c);
        }
        {
            auto a = l0_.AllocA<T>();
            LoadA(a, in[Input::kX], rows, kValueDim, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadStateB(b, in[Input::kH]);
            auto c = l0_.AllocC();
            if (IsPrecise()) {
                auto bLow = l0_.AllocB<T>();
                LoadStateB(bLow, low[State::kHLow]);
                l0_.MultiplyRightSum(c, a, b, bLow, rows, kKeyDim, kValueDim);
                state_.FreeTensor(low);
            } else {
                l0_.Multiply(c, a, b, rows, kKeyDim, kValueDim);
            }
            Store<T>(c, step, Slot::kDw, rows, kKeyDim);
        }
        {
            auto a = l0_.AllocA<T>();
            LoadATransposed(a, in[Input::kAkk], rows, rows, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadB(b, in[Input::kX], rows, kValueDim, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, kValueDim, rows);
            Store<float>(c, step, Slot::kDvb, rows, kValueDim);
        }
    }

    // H, which memory holds in either order, as a left operand, and H^T as a right one.
    __aicore__ inline void LoadStateA(const Matrix& a, const Matrix& state) {
        if (tiling_.stateVFirst) {
            LoadATransposed(a, state, kKeyDim, kValueDim, kValueDim);
        } else {
            LoadA(a, state, kKeyDim, kValueDim, kKeyDim);
        }
    }
    __aicore__ inline void LoadStateB(const Matrix& b, const Matrix& state) {
        if (tiling_.stateVFirst) {
            LoadB(b, state, kValueDim, kKeyDim, kValueDim);
        } else {
            LoadBTransposed(b, state, kValueDim, kKeyDim, kKeyDim);
        }
    }

    // What T left of H and R. Both come only now, and that of R again for C2: L1 has no room for
    // them to wait with the other inputs.
    __aicore__ inline Matrix LoadStatesLow(const ChunkPlace& place) {
        Matrix low = state_.AllocTensor<T>();
        const int64_t state = index_.ChunkStateOffset(place, kKeyDim, kValueDim);
        LoadNdToL1(low[State::kHLow], hLow_[state], kKeyDim, kValueDim, kValueDim);
        LoadNdToL1(low[State::kDhLow], dhLow_[state], kKeyDim, kValueDim, kValueDim);
        state_.EnQue(low);
        return state_.DeQue<T>();
    }

    // C2: what needs -kt and Ab of the AIVs.
    __aicore__ inline void OperandProducts(const Matrix& in, const ChunkPlace& place,
                                           int64_t step) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        const uint32_t l1Rows = AlignUp(rows, kFractalRows);
        SyncPipes<AscendC::HardEvent::FIX_MTE2>();  // H R^T and X H^T come back from GM
        Matrix state = state_.AllocTensor<T>();
        LoadSlot(state[State::kDw], step, Slot::kDw, rows, kKeyDim);
        LoadSlot(state[State::kKeyDecayed], step, Slot::kKeyDecayed, rows, kKeyDim);
        LoadSlot(state[State::kHr], step, Slot::kHr, kKeyDim, kKeyDim);
        LoadSlot(state[State::kAkkBeta], step, Slot::kAkkBeta, rows, kChunkRows);
        if (IsPrecise()) {
            LoadSlot(state[State::kAkkBetaLow], step, Slot::kAkkBetaLow, rows, kChunkRows);
            LoadNdToL1(state[State::kDhLow],
                       dhLow_[index_.ChunkStateOffset(place, kKeyDim, kValueDim)], kKeyDim,
                       kValueDim, kValueDim);
        }
        state_.EnQue(state);
        state = state_.DeQue<T>();
        {  // G = v R^T - kt (H R^T), one accumulator: v is not rounded on the way
            auto a = l0_.AllocA<T>();
            LoadA(a, in[Input::kV], rows, kValueDim, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadBTransposed(b, in[Input::kDh], kValueDim, kKeyDim, kKeyDim);
            auto c = l0_.AllocC();
            if (IsPrecise()) {
                auto bLow = l0_.AllocB<T>();
                LoadBTransposed(bLow, state[State::kDhLow], kValueDim, kKeyDim, kKeyDim);
                l0_.MultiplyRightSum(c, a, b, bLow, rows, kKeyDim, kValueDim);
            } else {
                l0_.Multiply(c, a, b, rows, kKeyDim, kValueDim);
            }
            a = l0_.AllocA<T>();
            LoadA(a, state[State::kKeyDecayed], rows, kKeyDim, l1Rows);
            b = l0_.AllocB<T>();
            LoadB(b, state[State::kHr], kKeyDim, kKeyDim, kKeyDim);
            l0_.Multiply(c, a, b, rows, kKeyDim, kKeyDim, true);
            Store<T>(c, step, Slot::kResidual, rows, kKeyDim);
        }
        {  // X v^T + dw kt^T
            auto a = l0_.AllocA<T>();
            LoadA(a, in[Input::kX], rows, kValueDim, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadBTransposed(b, in[Input::kV], kValueDim, rows, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, rows, kValueDim);
            a = l0_.AllocA<T>();
            LoadA(a, state[State::kDw], rows, kKeyDim, l1Rows);
            b = l0_.AllocB<T>();
            LoadBTransposed(b, state[State::kKeyDecayed], kKeyDim, rows, l1Rows);
            l0_.Multiply(c, a, b, rows, rows, kKeyDim, true);
            Store<float>(c, step, Slot::kDARaw, rows, l1Rows, kChunkRows);
        }
        CubeToVectorFlag<kInverseRawReady>::Set();
        {  // -Akk^T dw
            auto a = l0_.AllocA<T>();
            LoadATransposed(a, in[Input::kAkk], rows, rows, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadB(b, state[State::kDw], rows, kKeyDim, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, kKeyDim, rows);
            Store<float>(c, step, Slot::kDkb, rows, kKeyDim);
        }
        {  // v_new R^T = Ab G
            SyncPipes<AscendC::HardEvent::FIX_MTE2>();
            Matrix residual = residual_.AllocTensor<T>();
            LoadSlot(residual, step, Slot::kResidual, rows, kKeyDim);
            residual_.EnQue(residual);
            residual = residual_.DeQue<T>();
            auto a = l0_.AllocA<T>();
            LoadA(a, state[State::kAkkBeta], rows, rows, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadB(b, residual, rows, kKeyDim, l1Rows);
            auto c = l0_.AllocC();
            if (IsPrecise()) {
                auto aLow = l0_.AllocA<T>();
                LoadA(aLow, state[State::kAkkBetaLow], rows, rows, l1Rows);
                l0_.MultiplySum(c, a, aLow, b, rows, kKeyDim, rows);
            } else {
                l0_.Multiply(c, a, b, rows, kKeyDim, rows);
            }
            Store<float>(c, step, Slot::kDkg, rows, kKeyDim);
            residual_.FreeTensor(residual);
        }
        state_.FreeTensor(state);
    }

    // C3: -Akk^T dA Akk^T, from the left: dbeta sums dL along its rows, where the Akk^T on the
    // right damps the rounding of what stands left of it. From the right, dbeta had twice the error
    // under nearly parallel keys.
    __aicore__ inline void InverseProducts(const Matrix& in, const ChunkPlace& place,
                                           int64_t step) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        const uint32_t l1Rows = AlignUp(rows, kFractalRows);
        {
            Matrix dA = scores_.AllocTensor<T>();
            LoadSlot(dA, step, Slot::kDA, rows, kChunkRows);
            scores_.EnQue(dA);
            dA = scores_.DeQue<T>();
            auto a = l0_.AllocA<T>();
            LoadATransposed(a, in[Input::kAkk], rows, rows, l1Rows);
            auto b = l0_.AllocB<T>();
            LoadB(b, dA, rows, rows, l1Rows);
            auto c = l0_.AllocC();
            l0_.Multiply(c, a, b, rows, rows, rows);
            Store<T>(c, step, Slot::kAkkDA, rows, l1Rows, kChunkRows);
            scores_.FreeTensor(dA);
        }
        SyncPipes<AscendC::HardEvent::FIX_MTE2>();
        Matrix product = scores_.AllocTensor<T>();
        LoadSlot(product, step, Slot::kAkkDA, rows, kChunkRows);
        scores_.EnQue(product);
        product = scores_.DeQue<T>();
        auto a = l0_.AllocA<T>();
        LoadA(a, product, rows, rows, l1Rows);
        auto b = l0_.AllocB<T>();
        LoadBTransposed(b, in[Input::kAkk], rows, rows, l1Rows);
        auto c = l0_.AllocC();
        l0_.Multiply(c, a, b, rows, rows, rows);
        Store<float>(c, step, Slot::kDLRaw, rows, l1Rows, kChunkRows);
        scores_.FreeTensor(product);
        CubeToVectorFlag<kScoreRawReady>::Set();
    }

    // C4: pairs i > j inside the chunk, one row block I at a time against columns 0 .. end of I, or
    // by levels up to its beginning; then its own come by levels.
    __aicore__ inline void PairProducts(const ChunkPlace& place, int64_t step) {
        const uint32_t rows = static_cast<uint32_t>(place.rows);
        const uint32_t l1Rows = AlignUp(rows, kFractalRows);
        const uint32_t blocks = CeilDiv(rows, kBlockRows);
        const uint32_t keyRows = PairRow(blocks - 1) * kBlockRows + rows;
        const uint32_t keyL1Rows = AlignUp(keyRows, kFractalRows);
        Matrix pairs = pairs_.AllocTensor<T>();
        LoadSlot(pairs[Pair::kDAqk], step, Slot::kDAqk, rows, kChunkRows);
        LoadSlot(pairs[Pair::kDAqkLow], step, Slot::kDAqkLow, rows, kChunkRows);
        LoadSlot(pairs[Pair::kDL], step, Slot::kDL, rows, kChunkRows);
        LoadSlot(pairs[Pair::kDLLow], step, Slot::kDLLow, rows, kChunkRows);
        LoadSlot(pairs[Pair::kQueryP], step, Slot::kQueryP, rows, kKeyDim);
        LoadSlot(pairs[Pair::kKeyP], step, Slot::kKeyP, rows, kKeyDim);
        LoadSlot(pairs[Pair::kKeyN], step, Slot::kKeyN, keyRows, kKeyDim);
        pairs_.EnQue(pairs);
        pairs = pairs_.DeQue<T>();
        const auto queryRows = slots_.Area<float>(step, Slot::kQueryRows);
        const auto keyRowsOut = slots_.Area<float>(step, Slot::kKeyRows);
        const auto columns = slots_.Area<float>(step, Slot::kColumns);
        for (uint32_t block = byLevels_ ? 1 : 0; block < blocks; ++block) {
            const uint32_t first = block * kBlockRows;
            const uint32_t left = rows - first;
            const uint32_t blockRows = left < kBlockRows ? left : kBlockRows;
            const uint32_t end = byLevels_ ? first : first + blockRows;
            const uint32_t at = first * Nz<T>::kC0;  // row `first` of an L1 matrix
            const uint32_t keyAt = PairRow(block) * kBlockRows * Nz<T>::kC0;
            // Rows of the block: both left operands against one (k N) of this block.
            const Matrix keyN = pairs[Pair::kKeyN + keyAt];
            RowProduct(pairs[Pair::kDAqk + at], pairs[Pair::kDAqkLow + at], keyN,
                       queryRows[first * kKeyDim], blockRows, end, l1Rows, keyL1Rows);
            RowProduct(pairs[Pair::kDL + at], pairs[Pair::kDLLow + at], keyN,
                       keyRowsOut[first * kKeyDim], blockRows, end, l1Rows, keyL1Rows);
            // Columns 0 .. end: what the block's rows send back.
            auto c = l0_.AllocC();
            ColumnProduct(c, pairs[Pair::kDAqk + at], pairs[Pair::kDAqkLow + at],
                          pairs[Pair::kQueryP + at], blockRows, end, l1Rows, false);
            ColumnProduct(c, pairs[Pair::kDL + at], pairs[Pair::kDLLow + at],
                          pairs[Pair::kKeyP + at], blockRows, end, l1Rows, true);
            l0_.FinishC(c);
            StoreC(columns[PairRow(block) * kBlockRows * kKeyDim], c, end, kKeyDim, kKeyDim);
            l0_.FreeC(c);
        }
        pairs_.FreeTensor(pairs);
        for (uint32_t level = 0; level < kLevels && byLevels_; ++level) {
            LevelProducts(step, level, rows);
        }
        CubeToVectorFlag<kPairsReady>::Set();
    }

    // Pairs of one level inside the diagonal blocks (chunk_kda_bwd_finalize_levels.h). Both
    // products of a block are sums along K of parts of its operands, so one load and one Mmad each
    // do: [dAqk, dAqkLow] on [kF, kF], and [dL, dLLow, dL^T, dLLow^T, dAqk^T, dAqkLow^T] on
    // [kF, kF, kF, kF, qF, qF]. Operands are whole blocks, scores zero where the chunk has ended.
    __aicore__ inline void LevelProducts(int64_t step, uint32_t level, uint32_t rows) {
        const uint32_t blocks = CeilDiv(rows, kBlockRows);
        const uint32_t l1Rows = blocks * kBlockRows;
        const uint32_t scoreRows = 2 * kChunkRows;
        Matrix in = levels_.AllocTensor<T>();
        LoadSlot(in[Level::kQuery], step, Slot::kLevelQuery + level * Slot::kLevelBytes, l1Rows,
                 kKeyDim);
        LoadSlot(in[Level::kKey], step, Slot::kLevelKey + level * Slot::kLevelBytes, l1Rows,
                 kKeyDim);
        LoadSlot(in[Level::kDAqk], step, Slot::kLevelDAqk + level * Slot::kLevelScoreBytes,
                 scoreRows, kBlockRows);
        LoadSlot(in[Level::kDL], step, Slot::kLevelDL + level * Slot::kLevelScoreBytes, scoreRows,
                 kBlockRows);
        levels_.EnQue(in);
        in = levels_.DeQue<T>();
        const auto queryRows =
            slots_.Area<float>(step, Slot::kLevelQueryRows + level * Slot::kLevelResultBytes);
        const auto keyRows =
            slots_.Area<float>(step, Slot::kLevelKeyRows + level * Slot::kLevelResultBytes);
        const uint32_t fractal = Nz<T>::kFractal;
        const uint32_t columns = kKeyDim / kFractalRows;
        for (uint32_t block = 0; block < blocks; ++block) {
            auto a = l0_.AllocA<T>();
            LoadFractals(a, in[Level::kDAqk], block, 2, kRowBlocks, false);
            LoadFractals(a[2 * fractal], in[Level::kDL], block, 2, kRowBlocks, false);
            LoadFractals(a[4 * fractal], in[Level::kDL], block, 2, kRowBlocks, true);
            LoadFractals(a[6 * fractal], in[Level::kDAqk], block, 2, kRowBlocks, true);
            auto b = l0_.AllocB<T>();
            for (uint32_t depth = 0; depth < 6; ++depth) {
                LoadFractals(b[depth * columns * fractal],
                             in[depth < 4 ? Level::kKey : Level::kQuery], block, columns, blocks,
                             true);
            }
            l0_.TakeOperands(a, b);
            const uint32_t left = rows - block * kBlockRows;
            const uint32_t blockRows = left < kBlockRows ? left : kBlockRows;
            const uint32_t at = block * kBlockRows * kKeyDim;
            auto c = l0_.AllocC();
            Multiply(c, a, b, kBlockRows, kKeyDim, 2 * kBlockRows);
            l0_.FinishC(c);
            StoreC(queryRows[at], c, blockRows, kKeyDim, kKeyDim);
            l0_.FreeC(c);
            c = l0_.AllocC();
            Multiply(c, a[2 * fractal], b, kBlockRows, kKeyDim, 6 * kBlockRows);
            l0_.FreeOperands(a, b);
            l0_.FinishC(c);
            StoreC(keyRows[at], c, blockRows, kKeyDim, kKeyDim);
            l0_.FreeC(c);
        }
        levels_.FreeTensor(in);
    }

    // (left + low) right
    __aicore__ inline void RowProduct(const Matrix& left, const Matrix& low, const Matrix& right,
                                      const AscendC::GlobalTensor<float>& out, uint32_t blockRows,
                                      uint32_t end, uint32_t l1Rows, uint32_t keyL1Rows) {
        auto a = l0_.AllocA<T>();
        LoadA(a, left, blockRows, end, l1Rows);
        auto aLow = l0_.AllocA<T>();
        LoadA(aLow, low, blockRows, end, l1Rows);
        auto b = l0_.AllocB<T>();
        LoadB(b, right, end, kKeyDim, keyL1Rows);
        auto c = l0_.AllocC();
        l0_.MultiplySum(c, a, aLow, b, blockRows, kKeyDim, end);
        l0_.FinishC(c);
        StoreC(out, c, blockRows, kKeyDim, kKeyDim);
        l0_.FreeC(c);
    }

    // C[end,128] (+)= (left + low)^T right; both are one row of fractals, so a transposed operand
    // takes a single load.
    __aicore__ inline void ColumnProduct(const AscendC::LocalTensor<float>& c, const Matrix& left,
                                         const Matrix& low, const Matrix& right, uint32_t blockRows,
                                         uint32_t end, uint32_t l1Rows, bool accumulate) {
        const uint32_t fractals = CeilDiv(end, kFractalRows);
        auto a = l0_.AllocA<T>();
        LoadFractals(a, left, 0, fractals, l1Rows / kFractalRows, true);
        auto aLow = l0_.AllocA<T>();
        LoadFractals(aLow, low, 0, fractals, l1Rows / kFractalRows, true);
        auto b = l0_.AllocB<T>();
        LoadB(b, right, blockRows, kKeyDim, l1Rows);
        l0_.MultiplySum(c, a, aLow, b, end, kKeyDim, blockRows, accumulate);
    }

    template <typename C>
    __aicore__ inline void Store(AscendC::LocalTensor<float>& c, int64_t step, int64_t area,
                                 uint32_t rows, uint32_t columns, uint32_t pitch) {
        l0_.FinishC(c);
        StoreC(slots_.Area<C>(step, area), c, rows, columns, pitch);
        l0_.FreeC(c);
    }
    template <typename C>
    __aicore__ inline void Store(AscendC::LocalTensor<float>& c, int64_t step, int64_t area,
                                 uint32_t rows, uint32_t columns) {
        Store<C>(c, step, area, rows, columns, columns);
    }

    const ChunkKdaBwdFinalizeTilingData& tiling_;
    const ChunkIndex index_;
    const SlotRing slots_;
    const bool byLevels_;
    AscendC::GlobalTensor<T> v_;
    AscendC::GlobalTensor<T> akk_;
    AscendC::GlobalTensor<T> h_;
    AscendC::GlobalTensor<T> dh_;
    AscendC::GlobalTensor<T> hLow_;
    AscendC::GlobalTensor<T> dhLow_;
    AscendC::GlobalTensor<T> dvScan_;
    AscendC::TQue<AscendC::TPosition::A1, 2> inputs_;
    AscendC::TQue<AscendC::TPosition::A1, 1> state_;
    AscendC::TQue<AscendC::TPosition::A1, 1> residual_;
    AscendC::TQue<AscendC::TPosition::A1, 2> scores_;
    AscendC::TQue<AscendC::TPosition::A1, 1> pairs_;
    AscendC::TQue<AscendC::TPosition::A1, 1> levels_;  // with this one all eight event ids are out
    CubeBuffers l0_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_CUBE_H
