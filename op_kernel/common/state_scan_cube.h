// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Cube core's half of a state scan: the three products of a chunk; see state_scan.h.
#ifndef KDA_OP_KERNEL_COMMON_STATE_SCAN_CUBE_H
#define KDA_OP_KERNEL_COMMON_STATE_SCAN_CUBE_H

#include "cube.h"
#include "state_scan_walk.h"

namespace kda {

template <typename T, bool kBackward, bool kSummary>
class StateScanCube {
public:
    __aicore__ inline StateScanCube() {}
    __aicore__ inline void Run(AscendC::TPipe& pipe, const StateScanTiling* tiling,
                               const StateScanOperands& operands) {
        tiling_ = tiling;
        memory_.Init(tiling, operands);
        project_.SetGlobalBuffer((__gm__ T*)operands.project);
        update_.SetGlobalBuffer((__gm__ T*)operands.update);
        keyLow_.SetGlobalBuffer((__gm__ T*)operands.keyLow);
        query_.SetGlobalBuffer((__gm__ T*)operands.query);
        grad_.SetGlobalBuffer((__gm__ T*)operands.grad);
        l0_.Init(pipe);
        const uint32_t operandCount = kOperands + (memory_.Precise() ? 1 : 0);
        pipe.InitBuffer(operandTiles_, 2 * kScanLanes, operandCount * kTile * sizeof(T));
        pipe.InitBuffer(stateTiles_, 2, 2 * kTile * sizeof(T));

        for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
            now_[lane].Init(tiling, memory_.Index(), lane);
            ahead_[lane].Init(tiling, memory_.Index(), lane);
            Prefetch(lane);
        }
        while (now_[0].Valid() || now_[1].Valid()) {
            for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
                if (now_[lane].Valid()) {
                    Prefetch(lane);
                    Project(lane, now_[lane].Item());
                }
            }
            for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
                if (now_[lane].Valid()) {
                    Update(lane, now_[lane].Item());
                    now_[lane].Next();
                }
            }
        }
    }

private:
    // One queue element holds a chunk's operands side by side: P, U and, backward, qg, d_o; last,
    // in a precise scan, what rounding left of kg, which is U, or P backward.
    static constexpr uint32_t kOperands = kBackward ? 4 : 2;
    static constexpr uint32_t kTile = kChunkRows * kKeyDim;
    static constexpr uint32_t kProjectTile = 0;
    static constexpr uint32_t kUpdateTile = kTile;
    static constexpr uint32_t kQueryTile = 2 * kTile;
    static constexpr uint32_t kGradTile = 3 * kTile;
    static constexpr uint32_t kKeyLowTile = kOperands * kTile;

    __aicore__ static inline bool Loads(const ScanItem& item) {
        return item.projects || item.updates;
    }
    __aicore__ static inline bool Queries(const ScanItem& item) {
        return kBackward && item.updates && !item.identity;
    }

    // The operands do not depend on the scan: they come one step before they are needed.
    __aicore__ inline void Prefetch(uint32_t lane) {
        if (!ahead_[lane].Valid()) {
            return;
        }
        const ScanItem& item = ahead_[lane].Item();
        if (Loads(item)) {
            AscendC::LocalTensor<T> tile = operandTiles_.template AllocTensor<T>();
            const int64_t keyRows = memory_.KeyRows(item);
            if (item.projects) {
                LoadNdToL1(tile[kProjectTile], project_[keyRows], item.rows, kKeyDim, kKeyDim);
            }
            if (item.updates) {
                LoadNdToL1(tile[kUpdateTile], update_[keyRows], item.rows, kKeyDim, kKeyDim);
            }
            if (memory_.Precise() && (kBackward ? item.projects : item.updates)) {
                LoadNdToL1(tile[kKeyLowTile], keyLow_[keyRows], item.rows, kKeyDim, kKeyDim);
            }
            if constexpr (kBackward) {
                if (Queries(item)) {
                    const TokenLayout& layout = tiling_->gradLayout;
                    LoadNdToL1(tile[kQueryTile], query_[keyRows], item.rows, kKeyDim, kKeyDim);
                    LoadNdToL1(tile[kGradTile],
                               grad_[ChunkIndex::RowOffset(layout, item.place) + item.column],
                               item.rows, memory_.Columns(), layout.tokenStride);
                }
            }
            operandTiles_.EnQue(tile);
        }
        ahead_[lane].Next();
    }

    // P X, and the part of the update that does not need y.
    __aicore__ inline void Project(uint32_t lane, const ScanItem& item) {
        if (!Loads(item)) {
            return;
        }
        held_[lane] = operandTiles_.template DeQue<T>();
        const uint32_t l1Rows = AlignUp(item.rows, kFractalRows);
        const uint32_t columns = memory_.Columns();
        if (item.projects) {
            // Issued before the wait, which holds back everything behind it.
            AscendC::LocalTensor<T> a = l0_.template AllocA<T>();
            LoadA(a, held_[lane][kProjectTile], item.rows, kKeyDim, l1Rows);
            ScanStateReady::Wait();
            AscendC::LocalTensor<T> b = LoadState(memory_.State(item, lane));
            AscendC::LocalTensor<float> c = l0_.AllocC();
            if (memory_.Precise()) {
                AscendC::LocalTensor<T> bLow = LoadState(memory_.StateLow(item));
                if constexpr (kBackward) {
                    AscendC::LocalTensor<T> aLow = l0_.template AllocA<T>();
                    LoadA(aLow, held_[lane][kKeyLowTile], item.rows, kKeyDim, l1Rows);
                    l0_.MultiplyPairs(c, a, aLow, b, bLow, item.rows, columns, kKeyDim);
                } else {
                    l0_.MultiplyRightSum(c, a, b, bLow, item.rows, columns, kKeyDim);
                }
            } else {
                l0_.Multiply(c, a, b, item.rows, columns, kKeyDim);
            }
            l0_.FinishC(c);
            StoreC(memory_.Projected(lane), c, item.rows, columns, columns);
            ScanProjectedReady::Set();
            l0_.FreeC(c);
        }
        if constexpr (kBackward) {
            if (Queries(item)) {
                AscendC::LocalTensor<T> a = LoadLeft(held_[lane][kQueryTile], item.rows);
                AscendC::LocalTensor<T> b = l0_.template AllocB<T>();
                LoadB(b, held_[lane][kGradTile], item.rows, columns, l1Rows);
                AscendC::LocalTensor<float> c = l0_.AllocC();
                l0_.Multiply(c, a, b, kKeyDim, columns, item.rows);
                StoreToState(c, memory_.Query(lane, queries_[lane]++));
                ScanQueryReady::Set();
            }
        }
    }

    // U^T y.
    __aicore__ inline void Update(uint32_t lane, const ScanItem& item) {
        if (!Loads(item)) {
            return;
        }
        if (item.updates) {
            const uint32_t columns = memory_.Columns();
            AscendC::LocalTensor<T> a = LoadLeft(held_[lane][kUpdateTile], item.rows);
            ScanRowsReady::Wait();
            AscendC::LocalTensor<T> b =
                LoadRight(memory_.Rows(item, lane), item.rows, memory_.StatePitch());
            AscendC::LocalTensor<float> c = l0_.AllocC();
            if (memory_.PreciseRows()) {
                AscendC::LocalTensor<T> aLow = LoadLeft(held_[lane][kKeyLowTile], item.rows);
                AscendC::LocalTensor<T> bLow = LoadRight(memory_.RowsLow(lane), item.rows, columns);
                l0_.MultiplyPairs(c, a, aLow, b, bLow, kKeyDim, columns, item.rows);
            } else {
                l0_.Multiply(c, a, b, kKeyDim, columns, item.rows);
            }
            StoreToState(c, memory_.Updated(lane));
            ScanUpdatedReady::Set();
        }
        operandTiles_.FreeTensor(held_[lane]);
    }

    // B = X, the rounded state before the chunk, from either order in memory.
    __aicore__ inline AscendC::LocalTensor<T> LoadState(const AscendC::GlobalTensor<T>& source) {
        const uint32_t columns = memory_.Columns();
        const bool vFirst = memory_.ChunkVFirst();
        AscendC::LocalTensor<T> state =
            vFirst ? LoadTile(source, columns, kKeyDim, kKeyDim)
                   : LoadTile(source, kKeyDim, columns, memory_.StatePitch());
        AscendC::LocalTensor<T> b = l0_.template AllocB<T>();
        if (vFirst) {
            LoadBTransposed(b, state, kKeyDim, columns, columns);
        } else {
            LoadB(b, state, kKeyDim, columns, kKeyDim);
        }
        stateTiles_.FreeTensor(state);
        return b;
    }

    // B = y, from rows at that pitch.
    __aicore__ inline AscendC::LocalTensor<T> LoadRight(const AscendC::GlobalTensor<T>& source,
                                                        uint32_t rows, uint32_t pitch) {
        const uint32_t columns = memory_.Columns();
        AscendC::LocalTensor<T> y = LoadTile(source, rows, columns, pitch);
        AscendC::LocalTensor<T> b = l0_.template AllocB<T>();
        LoadB(b, y, rows, columns, AlignUp(rows, kFractalRows));
        stateTiles_.FreeTensor(y);
        return b;
    }

    // State or y, written by the vector cores, to L1.
    __aicore__ inline AscendC::LocalTensor<T> LoadTile(const AscendC::GlobalTensor<T>& source,
                                                       uint32_t rows, uint32_t columns,
                                                       uint32_t pitch) {
        AscendC::LocalTensor<T> tile = stateTiles_.template AllocTensor<T>();
        LoadNdToL1(tile, source, rows, columns, pitch);
        stateTiles_.EnQue(tile);
        return stateTiles_.template DeQue<T>();
    }

    // A = X^T, X[rows,K] in L1.
    __aicore__ inline AscendC::LocalTensor<T> LoadLeft(const AscendC::LocalTensor<T>& x,
                                                       uint32_t rows) {
        AscendC::LocalTensor<T> a = l0_.template AllocA<T>();
        LoadATransposed(a, x, kKeyDim, rows, AlignUp(rows, kFractalRows));
        return a;
    }

    // K rows of W columns.
    __aicore__ inline void StoreToState(AscendC::LocalTensor<float>& c,
                                        const AscendC::GlobalTensor<float>& out) {
        const uint32_t columns = memory_.Columns();
        l0_.FinishC(c);
        StoreC(out, c, kKeyDim, columns, columns);
        l0_.FreeC(c);
    }

    const StateScanTiling* tiling_ = nullptr;
    ScanMemory<T, kBackward, kSummary> memory_;
    ScanWalker<kBackward, kSummary> now_[kScanLanes];
    ScanWalker<kBackward, kSummary> ahead_[kScanLanes];
    AscendC::LocalTensor<T> held_[kScanLanes];
    uint32_t queries_[kScanLanes] = {0, 0};
    CubeBuffers l0_;
    AscendC::TQue<AscendC::TPosition::A1, 2 * kScanLanes> operandTiles_;
    AscendC::TQue<AscendC::TPosition::B1, 2> stateTiles_;
    AscendC::GlobalTensor<T> project_;
    AscendC::GlobalTensor<T> update_;
    AscendC::GlobalTensor<T> keyLow_;
    AscendC::GlobalTensor<T> query_;
    AscendC::GlobalTensor<T> grad_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_STATE_SCAN_CUBE_H
