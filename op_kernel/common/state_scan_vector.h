// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Vector cores' half of a state scan: the fp32 state, y, and the decay; see state_scan.h.
#ifndef KDA_OP_KERNEL_COMMON_STATE_SCAN_VECTOR_H
#define KDA_OP_KERNEL_COMMON_STATE_SCAN_VECTOR_H

#include "state_scan_walk.h"
#include "transpose.h"

namespace kda {

template <typename T, bool kBackward, bool kSummary>
class StateScanVector {
public:
    __aicore__ inline StateScanVector() {}
    __aicore__ inline void Run(AscendC::TPipe& pipe, const StateScanTiling* tiling,
                               const StateScanOperands& operands) {
        tiling_ = tiling;
        memory_.Init(tiling, operands);
        columns_ = memory_.Columns();
        keyRow_ = AscendC::GetSubBlockIdx() * kStateRows;
        base_.SetGlobalBuffer((__gm__ T*)operands.base);
        baseFp32_.SetGlobalBuffer((__gm__ float*)operands.base);
        gk_.SetGlobalBuffer((__gm__ float*)operands.gk);
        initialFp32_.SetGlobalBuffer((__gm__ float*)operands.initial);
        initialIo_.SetGlobalBuffer((__gm__ T*)operands.initial);
        final_.SetGlobalBuffer((__gm__ float*)operands.final);

        const uint32_t tile = kTileRows * columns_;
        pipe.InitBuffer(products_, 2, tile * sizeof(float));
        pipe.InitBuffer(bases_, kScanLanes, tile * (BaseIsFloat() ? sizeof(float) : sizeof(T)));
        pipe.InitBuffer(gates_, kScanLanes, kStateRows * sizeof(float));
        pipe.InitBuffer(outputs_, 2, kStateRows * columns_ * sizeof(T));
        pipe.InitBuffer(y_, tile * sizeof(float));
        pipe.InitBuffer(decay_, kStateRows * kBlockFloats * sizeof(float));
        pipe.InitBuffer(states_, kScanLanes * kStateRows * columns_ * sizeof(float));

        for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
            walk_[lane].Init(tiling, memory_.Index(), lane);
        }
        while (walk_[0].Valid() || walk_[1].Valid()) {
            for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
                if (pending_[lane]) {
                    Complete(lane, walk_[lane].Item());
                    walk_[lane].Next();
                }
                pending_[lane] = walk_[lane].Valid();
                if (pending_[lane]) {
                    Begin(lane, walk_[lane].Item());
                }
            }
            for (uint32_t lane = 0; lane < kScanLanes; ++lane) {
                if (pending_[lane]) {
                    FinishRows(lane, walk_[lane].Item());
                }
            }
        }
    }

private:
    static constexpr uint32_t kStateRows = kKeyDim / kVectorCoresPerBlock;  // of an AIV
    static constexpr uint32_t kTileRows = kChunkRows / kVectorCoresPerBlock;
    static constexpr uint32_t kLanesPerRepeat = 64;  // fp32
    static constexpr uint32_t kBlockFloats = 8;

    __aicore__ inline AscendC::LocalTensor<float> State(uint32_t lane) {
        return states_.template Get<float>()[lane * kStateRows * columns_];
    }

    // ------------------------------------------------------------------ entering a chunk
    // State to T for the cube core (and, in the scans proper, as the output h or dh); the loads
    // that do not depend on the scan.
    __aicore__ inline void Begin(uint32_t lane, const ScanItem& item) {
        if (item.first) {
            InitState(lane, item);
        }
        if (item.rows == 0) {
            return;
        }
        if (!kSummary || item.projects) {
            StoreChunkState(lane, item);
        }
        if (memory_.Precise()) {
            StoreChunkStateLow(lane, item);
        }
        if (item.projects) {
            ScanStateReady::Set();
        }
        const uint32_t rows = TileRows(item);
        if (rows > 0 && !item.identity) {
            const int64_t first = memory_.ValueRows(item) + FirstTileRow() * kValueDim;
            if (BaseIsFloat()) {
                LoadBase(baseFp32_[first], rows);
            } else {
                LoadBase(base_[first], rows);
            }
        }
        if (item.updates) {
            AscendC::LocalTensor<float> gate = gates_.template AllocTensor<float>();
            const int64_t lastRow = memory_.KeyRows(item) + (item.rows - 1) * kKeyDim;
            AscendC::DataCopy(gate, gk_[lastRow + keyRow_], kStateRows);
            gates_.EnQue(gate);
        }
    }

    __aicore__ inline bool BaseIsFloat() const { return !kBackward && tiling_->baseIsFloat != 0; }
    template <typename E>
    __aicore__ inline void LoadBase(const AscendC::GlobalTensor<E>& source, uint32_t rows) {
        AscendC::LocalTensor<E> base = bases_.template AllocTensor<E>();
        AscendC::DataCopyPad(base, source, RowsIn<E>(rows, kValueDim),
                             AscendC::DataCopyPadExtParams<E>());
        bases_.EnQue(base);
    }

    __aicore__ inline void StoreChunkState(uint32_t lane, const ScanItem& item) {
        const uint32_t count = kStateRows * columns_;
        AscendC::LocalTensor<T> out = outputs_.template AllocTensor<T>();
        if (!memory_.ChunkVFirst()) {
            AscendC::Cast(out, State(lane), AscendC::RoundMode::CAST_RINT, count);
            StoreRows(memory_.State(item, lane)[keyRow_ * memory_.StatePitch()], out, kStateRows,
                      memory_.StatePitch());
            return;
        }
        AscendC::LocalTensor<T> rounded = y_.template Get<T>();
        AscendC::Cast(rounded, State(lane), AscendC::RoundMode::CAST_RINT, count);
        AscendC::PipeBarrier<PIPE_V>();
        TransposeTile(out, kStateRows, rounded, columns_, kStateRows, columns_);
        AscendC::PipeBarrier<PIPE_V>();  // y_ is written again by the next tile
        StoreKeys(memory_.State(item, lane)[keyRow_], out);
    }

    // What rounding left of the state, in the same order, half of this AIV's rows at a time.
    __aicore__ inline void StoreChunkStateLow(uint32_t lane, const ScanItem& item) {
        const bool vFirst = memory_.ChunkVFirst();
        const uint32_t count = kTileRows * columns_;
        AscendC::LocalTensor<T> out = outputs_.template AllocTensor<T>();
        AscendC::LocalTensor<T> rounded = products_.template AllocTensor<T>();
        AscendC::LocalTensor<float> rest = y_.template Get<float>();
        for (uint32_t row = 0; row < kStateRows; row += kTileRows) {
            const AscendC::LocalTensor<float> state = State(lane)[row * columns_];
            AscendC::Cast(rounded, state, AscendC::RoundMode::CAST_RINT, count);
            AscendC::PipeBarrier<PIPE_V>();
            Rest(rest, state, rounded, count);
            if (!vFirst) {
                AscendC::Cast(out[row * columns_], rest, AscendC::RoundMode::CAST_RINT, count);
                AscendC::PipeBarrier<PIPE_V>();
                continue;
            }
            AscendC::Cast(rounded, rest, AscendC::RoundMode::CAST_RINT, count);
            AscendC::PipeBarrier<PIPE_V>();
            TransposeTile(out[row], kStateRows, rounded, columns_, kTileRows, columns_);
            AscendC::PipeBarrier<PIPE_V>();
        }
        products_.FreeTensor(rounded);
        const AscendC::GlobalTensor<T> target = memory_.StateLow(item);
        if (!vFirst) {
            StoreRows(target[keyRow_ * memory_.StatePitch()], out, kStateRows,
                      memory_.StatePitch());
            return;
        }
        StoreKeys(target[keyRow_], out);
    }

    // rest = exact - rounded
    __aicore__ inline void Rest(const AscendC::LocalTensor<float>& rest,
                                const AscendC::LocalTensor<float>& exact,
                                const AscendC::LocalTensor<T>& rounded, uint32_t count) {
        AscendC::Cast(rest, rounded, AscendC::RoundMode::CAST_NONE, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(rest, exact, rest, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    // ------------------------------------------------------------------ y = base -+ P X
    __aicore__ inline void FinishRows(uint32_t lane, const ScanItem& item) {
        const uint32_t rows = TileRows(item);
        const uint32_t count = rows * columns_;
        AscendC::LocalTensor<float> y = y_.template Get<float>();
        if (rows > 0 && !item.identity) {
            if (BaseIsFloat()) {
                AscendC::LocalTensor<float> base = bases_.template DeQue<float>();
                AscendC::Adds(y, base, 0.0f, count);
                bases_.FreeTensor(base);
            } else {
                AscendC::LocalTensor<T> base = bases_.template DeQue<T>();
                AscendC::Cast(y, base, AscendC::RoundMode::CAST_NONE, count);
                bases_.FreeTensor(base);
            }
            AscendC::PipeBarrier<PIPE_V>();
        }
        if (item.projects) {
            ScanProjectedReady::Wait();
        }
        if (rows > 0) {
            AscendC::LocalTensor<T> out = outputs_.template AllocTensor<T>();
            if (item.projects) {
                AddProduct(y, LoadProduct(memory_.Projected(lane)[FirstTileRow() * columns_], rows),
                           count, item.identity);
                AscendC::PipeBarrier<PIPE_V>();
            }
            AscendC::Cast(out, y, AscendC::RoundMode::CAST_RINT, count);
            AscendC::PipeBarrier<PIPE_V>();  // y is written again by the next tile
            if (memory_.PreciseRows() && item.updates) {
                StoreRowsLow(lane, y, out, rows);
            }
            StoreRows(memory_.Rows(item, lane)[FirstTileRow() * memory_.StatePitch()], out, rows,
                      memory_.StatePitch());
        }
        if (item.updates) {
            ScanRowsReady::Set();
        }
    }

    // What rounding left of y, for the update alone.
    __aicore__ inline void StoreRowsLow(uint32_t lane, const AscendC::LocalTensor<float>& y,
                                        const AscendC::LocalTensor<T>& rounded, uint32_t rows) {
        const uint32_t count = rows * columns_;
        AscendC::LocalTensor<float> rest = products_.template AllocTensor<float>();
        Rest(rest, y, rounded, count);
        AscendC::LocalTensor<T> low = outputs_.template AllocTensor<T>();
        AscendC::Cast(low, rest, AscendC::RoundMode::CAST_RINT, count);
        products_.FreeTensor(rest);
        StoreRows(memory_.RowsLow(lane)[FirstTileRow() * columns_], low, rows, columns_);
    }

    // M has no base: y is the product alone, with the sign it has in E's part.
    __aicore__ inline void AddProduct(const AscendC::LocalTensor<float>& y,
                                      AscendC::LocalTensor<float> product, uint32_t count,
                                      bool alone) {
        if (alone) {
            AscendC::Muls(y, product, kBackward ? 1.0f : -1.0f, count);
        } else if constexpr (kBackward) {
            AscendC::Add(y, y, product, count);
        } else {
            AscendC::Sub(y, y, product, count);
        }
        products_.FreeTensor(product);
    }

    // ------------------------------------------------------------------ leaving a chunk
    // X <- D X [+ scale qg^T d_o] +- U^T y.
    __aicore__ inline void Complete(uint32_t lane, const ScanItem& item) {
        AscendC::LocalTensor<float> state = State(lane);
        if (item.updates) {
            ApplyDecay(state);
            if constexpr (kBackward) {
                if (!item.identity) {
                    ScanQueryReady::Wait();
                    const AscendC::GlobalTensor<float> query =
                        memory_.Query(lane, queries_[lane]++);
                    for (uint32_t row = 0; row < kStateRows; row += kTileRows) {
                        AscendC::LocalTensor<float> product =
                            LoadProduct(query[(keyRow_ + row) * columns_], kTileRows);
                        AscendC::Axpy(state[row * columns_], product, tiling_->scale,
                                      kTileRows * columns_);
                        products_.FreeTensor(product);
                    }
                    AscendC::PipeBarrier<PIPE_V>();
                }
            }
            ScanUpdatedReady::Wait();
            const AscendC::GlobalTensor<float> updated = memory_.Updated(lane);
            for (uint32_t row = 0; row < kStateRows; row += kTileRows) {
                AscendC::LocalTensor<float> tile = state[row * columns_];
                AscendC::LocalTensor<float> product =
                    LoadProduct(updated[(keyRow_ + row) * columns_], kTileRows);
                if constexpr (kBackward) {
                    AscendC::Sub(tile, tile, product, kTileRows * columns_);
                } else {
                    AscendC::Add(tile, tile, product, kTileRows * columns_);
                }
                products_.FreeTensor(product);
            }
            AscendC::PipeBarrier<PIPE_V>();
        }
        if (item.last && tiling_->storesFinal != 0) {
            StoreFinal(state, item);
        }
    }

    // State rows times exp(gk_last * gateFactor), one factor a row.
    __aicore__ inline void ApplyDecay(const AscendC::LocalTensor<float>& state) {
        AscendC::LocalTensor<float> gate = gates_.template DeQue<float>();
        AscendC::LocalTensor<float> decay = decay_.template Get<float>();
        AscendC::Muls(gate, gate, tiling_->gateFactor, kStateRows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(gate, gate, kStateRows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Brcb(decay, gate, kStateRows / kBlockFloats, AscendC::BrcbRepeatParams(1, 8));
        gates_.FreeTensor(gate);
        AscendC::PipeBarrier<PIPE_V>();
        const uint8_t rowBlocks = static_cast<uint8_t>(columns_ / kBlockFloats);
        const AscendC::BinaryRepeatParams params(1, 1, 0, rowBlocks, rowBlocks, 1);
        for (uint32_t column = 0; column < columns_; column += kLanesPerRepeat) {
            AscendC::Mul(state[column], state[column], decay, kLanesPerRepeat, kStateRows, params);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // ------------------------------------------------------------------ first and last state
    // The lane's state was last read or written by V, and stored by MTE3.
    __aicore__ inline void InitState(uint32_t lane, const ScanItem& item) {
        AscendC::LocalTensor<float> state = State(lane);
        SyncPipes<AscendC::HardEvent::MTE3_V>();
        if (item.identity) {
            SetIdentity(state, item);
        } else if (tiling_->initialKind == kStateZero) {
            AscendC::Duplicate(state, 0.0f, kStateRows * columns_);
        } else {
            LoadInitial(state, item);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // Rows keyRow_ .. of the identity, the slice's columns. Entry (i, i) is one block and one lane
    // further than entry (i - 1, i - 1) eight rows apart: eight instructions of eight repeats.
    __aicore__ inline void SetIdentity(const AscendC::LocalTensor<float>& state,
                                       const ScanItem& item) {
        AscendC::Duplicate(state, 0.0f, kStateRows * columns_);
        AscendC::PipeBarrier<PIPE_V>();
        const int32_t diagonal = static_cast<int32_t>(keyRow_) - static_cast<int32_t>(item.column);
        if (diagonal < 0 || diagonal >= static_cast<int32_t>(columns_)) {
            return;
        }
        const uint8_t stride = static_cast<uint8_t>(columns_ + 1);  // 8 rows and 8 columns further
        for (uint32_t row = 0; row < kBlockFloats; ++row) {
            uint64_t mask[2] = {1ULL << row, 0};
            AscendC::Duplicate(state[row * columns_ + diagonal], 1.0f, mask,
                               static_cast<uint8_t>(kStateRows / kBlockFloats), 1, stride);
        }
    }

    __aicore__ inline void LoadInitial(const AscendC::LocalTensor<float>& state,
                                       const ScanItem& item) {
        if (memory_.BoundaryVFirst()) {
            LoadInitialVFirst(state, item);
            return;
        }
        const int64_t first = memory_.SequenceState(item) + keyRow_ * kValueDim;
        if (tiling_->initialKind == kStateFp32) {
            // V has waited for MTE3 in InitState, so this stands behind both.
            SyncPipes<AscendC::HardEvent::V_MTE2>();
            AscendC::DataCopyPad(state, initialFp32_[first], RowsIn<float>(kStateRows, kValueDim),
                                 AscendC::DataCopyPadExtParams<float>());
            SyncPipes<AscendC::HardEvent::MTE2_V>();
            return;
        }
        for (uint32_t row = 0; row < kStateRows; row += kTileRows) {
            AscendC::LocalTensor<T> tile = products_.template AllocTensor<T>();
            AscendC::DataCopyPad(tile, initialIo_[first + row * kValueDim],
                                 RowsIn<T>(kTileRows, kValueDim),
                                 AscendC::DataCopyPadExtParams<T>());
            products_.EnQue(tile);
            tile = products_.template DeQue<T>();
            AscendC::Cast(state[row * columns_], tile, AscendC::RoundMode::CAST_NONE,
                          kTileRows * columns_);
            products_.FreeTensor(tile);
        }
    }

    // [V,K] in memory: half of the slice's V rows at a time, this AIV's keys of each.
    __aicore__ inline void LoadInitialVFirst(const AscendC::LocalTensor<float>& state,
                                             const ScanItem& item) {
        const int64_t first = memory_.SequenceState(item) + keyRow_;
        const uint32_t half = columns_ / 2;
        for (uint32_t row = 0; row < columns_; row += half) {
            if (tiling_->initialKind == kStateFp32) {
                AscendC::LocalTensor<float> tile = products_.template AllocTensor<float>();
                AscendC::DataCopyPad(tile, initialFp32_[first + row * kKeyDim], KeysIn<float>(half),
                                     AscendC::DataCopyPadExtParams<float>());
                products_.EnQue(tile);
                tile = products_.template DeQue<float>();
                TransposeTile(state[row], columns_, tile, kStateRows, half, kStateRows);
                products_.FreeTensor(tile);
                continue;
            }
            AscendC::LocalTensor<T> tile = products_.template AllocTensor<T>();
            AscendC::DataCopyPad(tile, initialIo_[first + row * kKeyDim], KeysIn<T>(half),
                                 AscendC::DataCopyPadExtParams<T>());
            products_.EnQue(tile);
            tile = products_.template DeQue<T>();
            AscendC::LocalTensor<float> wide = y_.template Get<float>();
            AscendC::Cast(wide, tile, AscendC::RoundMode::CAST_NONE, half * kStateRows);
            products_.FreeTensor(tile);
            AscendC::PipeBarrier<PIPE_V>();
            TransposeTile(state[row], columns_, wide, kStateRows, half, kStateRows);
            AscendC::PipeBarrier<PIPE_V>();  // y_ is written again by the next half
        }
    }

    __aicore__ inline void StoreFinal(const AscendC::LocalTensor<float>& state,
                                      const ScanItem& item) {
        if (memory_.BoundaryVFirst()) {
            StoreFinalVFirst(state, item);
            return;
        }
        const uint32_t pitch = kSummary ? kValueDim + kKeyDim : kValueDim;
        const int64_t first =
            (kSummary ? memory_.Summary(item) : memory_.SequenceState(item)) + keyRow_ * pitch;
        SyncPipes<AscendC::HardEvent::V_MTE3>();
        AscendC::DataCopyPad(final_[first], state, RowsOut<float>(kStateRows, pitch));
    }

    __aicore__ inline void StoreFinalVFirst(const AscendC::LocalTensor<float>& state,
                                            const ScanItem& item) {
        const int64_t first = memory_.SequenceState(item) + keyRow_;
        const uint32_t half = columns_ / 2;
        for (uint32_t row = 0; row < columns_; row += half) {
            AscendC::LocalTensor<float> out = outputs_.template AllocTensor<float>();
            TransposeTile(out, kStateRows, state[row], columns_, kStateRows, half);
            outputs_.EnQue(out);
            out = outputs_.template DeQue<float>();
            AscendC::DataCopyPad(final_[first + row * kKeyDim], out, KeysOut<float>(half));
            outputs_.FreeTensor(out);
        }
    }

    // ------------------------------------------------------------------ tiles
    // This AIV's rows of the chunk.
    __aicore__ inline uint32_t FirstTileRow() const {
        return AscendC::GetSubBlockIdx() * kTileRows;
    }
    __aicore__ inline uint32_t TileRows(const ScanItem& item) const {
        const uint32_t first = FirstTileRow();
        if (item.rows <= first) {
            return 0;
        }
        return item.rows - first < kTileRows ? item.rows - first : kTileRows;
    }

    template <typename E>
    __aicore__ inline AscendC::DataCopyExtParams RowsIn(uint32_t rows, uint32_t pitch) const {
        return AscendC::DataCopyExtParams(static_cast<uint16_t>(rows), columns_ * sizeof(E),
                                          (pitch - columns_) * sizeof(E), 0, 0);
    }
    template <typename E>
    __aicore__ inline AscendC::DataCopyExtParams RowsOut(uint32_t rows, uint32_t pitch) const {
        return AscendC::DataCopyExtParams(static_cast<uint16_t>(rows), columns_ * sizeof(E), 0,
                                          (pitch - columns_) * sizeof(E), 0);
    }

    // This AIV's keys of some V rows of a state [V,K].
    template <typename E>
    __aicore__ inline AscendC::DataCopyExtParams KeysIn(uint32_t rows) const {
        return AscendC::DataCopyExtParams(static_cast<uint16_t>(rows), kStateRows * sizeof(E),
                                          (kKeyDim - kStateRows) * sizeof(E), 0, 0);
    }
    template <typename E>
    __aicore__ inline AscendC::DataCopyExtParams KeysOut(uint32_t rows) const {
        return AscendC::DataCopyExtParams(static_cast<uint16_t>(rows), kStateRows * sizeof(E), 0,
                                          (kKeyDim - kStateRows) * sizeof(E), 0);
    }

    // Contiguous fp32 rows from workspace; the caller frees the tile.
    __aicore__ inline AscendC::LocalTensor<float> LoadProduct(
        const AscendC::GlobalTensor<float>& source, uint32_t rows) {
        AscendC::LocalTensor<float> product = products_.template AllocTensor<float>();
        AscendC::DataCopy(product, source, rows * columns_);
        products_.EnQue(product);
        return products_.template DeQue<float>();
    }

    __aicore__ inline void StoreRows(const AscendC::GlobalTensor<T>& target,
                                     AscendC::LocalTensor<T>& rowsTile, uint32_t rows,
                                     uint32_t pitch) {
        outputs_.EnQue(rowsTile);
        rowsTile = outputs_.template DeQue<T>();
        AscendC::DataCopyPad(target, rowsTile, RowsOut<T>(rows, pitch));
        outputs_.FreeTensor(rowsTile);
    }

    // A rounded state's V rows of this AIV's keys.
    __aicore__ inline void StoreKeys(const AscendC::GlobalTensor<T>& target,
                                     AscendC::LocalTensor<T>& keys) {
        outputs_.EnQue(keys);
        keys = outputs_.template DeQue<T>();
        AscendC::DataCopyPad(target, keys, KeysOut<T>(columns_));
        outputs_.FreeTensor(keys);
    }

    const StateScanTiling* tiling_ = nullptr;
    ScanMemory<T, kBackward, kSummary> memory_;
    ScanWalker<kBackward, kSummary> walk_[kScanLanes];
    bool pending_[kScanLanes] = {false, false};
    uint32_t queries_[kScanLanes] = {0, 0};
    uint32_t columns_ = 0;
    uint32_t keyRow_ = 0;  // first of this AIV's rows of the state
    AscendC::GlobalTensor<T> base_;
    AscendC::GlobalTensor<float> baseFp32_;
    AscendC::GlobalTensor<float> gk_;
    AscendC::GlobalTensor<float> initialFp32_;
    AscendC::GlobalTensor<T> initialIo_;
    AscendC::GlobalTensor<float> final_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> products_;
    AscendC::TQue<AscendC::TPosition::VECIN, kScanLanes> bases_;
    AscendC::TQue<AscendC::TPosition::VECIN, kScanLanes> gates_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> outputs_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> y_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> decay_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> states_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_STATE_SCAN_VECTOR_H
