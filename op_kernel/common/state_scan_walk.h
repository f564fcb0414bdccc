// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The order in which a state scan visits chunks, common to cube and vector cores; see state_scan.h.
#ifndef KDA_OP_KERNEL_COMMON_STATE_SCAN_WALK_H
#define KDA_OP_KERNEL_COMMON_STATE_SCAN_WALK_H

#include "kernel_operator.h"

#include "chunk_index.h"
#include "cross_core.h"
#include "state_scan_tiling.h"

namespace kda {

// One flag id an edge. An edge needs no credits back: its slot is free again by the time the
// producer has received the other side's next flag of the same lane (state_scan.h, "Slots").
using ScanStateReady = VectorToCubeFlag<0>;
using ScanProjectedReady = CubeToVectorFlag<1>;
using ScanRowsReady = VectorToCubeFlag<2>;
using ScanUpdatedReady = CubeToVectorFlag<3>;
using ScanQueryReady = CubeToVectorFlag<4>;

// All global operands of a scan; io is the type of q, k and v. `project` and `update` are w and kg,
// or kg and w.
struct StateScanOperands {
    GM_ADDR project;  // P  io [B,Hv,T,K]
    GM_ADDR update;   // U  io [B,Hv,T,K]
    GM_ADDR keyLow;   // what rounding left of kg  io [B,Hv,T,K], precise
    GM_ADDR base;     // u or dv  io [B,Hv,T,V]; u also fp32
    GM_ADDR gk;       // fp32 [B,Hv,T,K]
    GM_ADDR query;    // qg io [B,Hv,T,K], backward
    GM_ADDR grad;     // d_o io, gradLayout, backward
    GM_ADDR initial;  // [N,Hv,K,V] fp32 or io; [N,Hv,V,K] with stateVFirst
    GM_ADDR cuSeqlens;
    GM_ADDR chunkIndices;  // not for the summaries, which have no chunk slots
    GM_ADDR states;        // h or dh  io [B,Nc,Hv,K,V]; h [B,Nc,Hv,V,K] with stateVFirst
    GM_ADDR statesLow;     // what rounding left of them, as states, precise
    GM_ADDR rows;          // v_new or dv_scan  io [B,Hv,T,V]
    GM_ADDR final;         // as initial, fp32; or a summary [N,Hv,K,V+K]
    GM_ADDR workspace;
};

// One step of one lane: a chunk of a task, or (rows = 0) the only step of a sequence without
// chunks.
struct ScanItem {
    ChunkPlace place;
    uint32_t rows;
    uint32_t column;  // first column of the slice, within E or within M
    bool identity;    // a slice of M: starts from the identity, has no base and no query term
    bool first;
    bool last;
    bool projects;  // P X is not known to be zero
    bool updates;   // the state after this chunk is wanted
};

template <bool kBackward, bool kSummary>
class ScanWalker {
public:
    __aicore__ inline ScanWalker() {}
    __aicore__ inline void Init(const StateScanTiling* tiling, const ChunkIndex& index,
                                int64_t lane) {
        tiling_ = tiling;
        index_ = index;
        task_ = BlockOfCore() + lane * AscendC::GetBlockNum();
        LoadTask();
    }
    __aicore__ inline bool Valid() const { return task_ < taskCount_; }
    __aicore__ inline const ScanItem& Item() const { return item_; }
    __aicore__ inline void Next() {
        if (++step_ < sequence_.chunks) {
            LoadStep();
            return;
        }
        task_ += kScanLanes * AscendC::GetBlockNum();
        LoadTask();
    }

private:
    __aicore__ inline void LoadTask() {
        const ChunkGeometry& geometry = tiling_->geometry;
        taskCount_ = geometry.sequences * geometry.valueHeads * tiling_->slices;
        if (!Valid()) {
            return;
        }
        const int64_t slice = task_ % tiling_->slices;
        const int64_t headTask = task_ / tiling_->slices;
        head_ = headTask % geometry.valueHeads;
        // Tasks of one sequence follow each other: its place is looked up once.
        const int64_t sequence = headTask / geometry.valueHeads;
        if (sequence != sequence_.sequence) {
            sequence_ = index_.LocateSequence<!kSummary>(sequence);
        }
        const int64_t column = slice * tiling_->sliceColumns;
        item_.identity = kSummary && column >= kValueDim;
        item_.column = static_cast<uint32_t>(item_.identity ? column - kValueDim : column);
        step_ = 0;
        LoadStep();
    }
    __aicore__ inline void LoadStep() {
        const int64_t chunks = sequence_.chunks;
        const int64_t chunk = kBackward ? chunks - 1 - step_ : step_;
        item_.place = index_.Locate(sequence_, head_, chunk);
        item_.rows = chunks == 0 ? 0 : item_.place.rows;
        item_.first = step_ == 0;
        item_.last = step_ + 1 >= chunks;
        const bool zero = tiling_->initialKind == kStateZero && !item_.identity;
        item_.projects = item_.rows > 0 && !(item_.first && zero);
        item_.updates = item_.rows > 0 && !(item_.last && tiling_->storesFinal == 0);
    }

    const StateScanTiling* tiling_ = nullptr;
    int64_t task_ = 0;
    int64_t taskCount_ = 0;
    int64_t head_ = 0;
    int64_t step_ = 0;
    ChunkIndex index_;
    SequencePlace sequence_ = {-1, 0, 0, 0, 0, 0};
    ScanItem item_;
};

// Offsets that both sides compute.
template <typename T, bool kBackward, bool kSummary>
class ScanMemory {
public:
    __aicore__ inline ScanMemory() {}
    __aicore__ inline void Init(const StateScanTiling* tiling, const StateScanOperands& operands) {
        tiling_ = tiling;
        columns_ = static_cast<uint32_t>(tiling->sliceColumns);
        const int64_t lanes = BlockOfCore() * kScanLanes;
        index_ = ChunkIndex(tiling->geometry, operands.cuSeqlens, operands.chunkIndices);
        workspace_ = operands.workspace + lanes * tiling->laneBytes;
        states_.SetGlobalBuffer((__gm__ T*)operands.states);
        statesLow_.SetGlobalBuffer((__gm__ T*)operands.statesLow);
        rows_.SetGlobalBuffer((__gm__ T*)operands.rows);
    }

    __aicore__ inline uint32_t Columns() const { return columns_; }
    __aicore__ inline const ChunkIndex& Index() const { return index_; }
    // Whether states, y and kg are sums of two numbers wherever a product takes them. Only
    // v_new of the two y: dv_scan does not need it.
    __aicore__ inline bool Precise() const { return !kSummary && tiling_->precise != 0; }
    __aicore__ inline bool PreciseRows() const { return !kBackward && Precise(); }

    // Row 0 of an operand [B,Hv,T,K] of the item's chunk.
    __aicore__ inline int64_t KeyRows(const ScanItem& item) const {
        return index_.ValueCacheOffset(item.place, kKeyDim);
    }
    // Row 0 of an operand [B,Hv,T,V], at the slice's first column.
    __aicore__ inline int64_t ValueRows(const ScanItem& item) const {
        return index_.ValueCacheOffset(item.place, kValueDim) + item.column;
    }
    // Whether a boundary state, or a chunk state of this scan, is [V,K] in memory.
    __aicore__ inline bool BoundaryVFirst() const { return !kSummary && tiling_->stateVFirst != 0; }
    __aicore__ inline bool ChunkVFirst() const { return !kBackward && BoundaryVFirst(); }

    // [N,Hv,K,V] at the slice's first column; [N,Hv,V,K] at the row that it is there.
    __aicore__ inline int64_t SequenceState(const ScanItem& item) const {
        return index_.SequenceStateOffset(item.place, kKeyDim, kValueDim) +
               (BoundaryVFirst() ? item.column * kKeyDim : item.column);
    }
    // [N,Hv,K,V+K] at the slice's first column.
    __aicore__ inline int64_t Summary(const ScanItem& item) const {
        return index_.SequenceStateOffset(item.place, kKeyDim, kValueDim + kKeyDim) +
               (item.identity ? kValueDim : 0) + item.column;
    }

    // Rounded state before (backward: after) the chunk, rows at StatePitch(); ChunkVFirst: rows of
    // V at kKeyDim.
    __aicore__ inline AscendC::GlobalTensor<T> State(const ScanItem& item, uint32_t lane) const {
        if constexpr (kSummary) {
            return Part<T>(lane, 4 * (kChunkRows + kKeyDim) + QueryBytes());
        }
        return states_[ChunkState(item)];
    }
    // What rounding left of it, in the same order.
    __aicore__ inline AscendC::GlobalTensor<T> StateLow(const ScanItem& item) const {
        return statesLow_[ChunkState(item)];
    }
    // Rounded y of the chunk, rows at StatePitch().
    __aicore__ inline AscendC::GlobalTensor<T> Rows(const ScanItem& item, uint32_t lane) const {
        if constexpr (kSummary) {
            return Part<T>(lane, 4 * (kChunkRows + kKeyDim) + QueryBytes() + 2 * kKeyDim);
        }
        return rows_[ValueRows(item)];
    }
    // What rounding left of it, rows at Columns(). Not beside a summary, whose states are here.
    __aicore__ inline AscendC::GlobalTensor<T> RowsLow(uint32_t lane) const {
        return Part<T>(lane, 4 * (kChunkRows + kKeyDim) + QueryBytes());
    }
    __aicore__ inline uint32_t StatePitch() const { return kSummary ? columns_ : kValueDim; }

    __aicore__ inline AscendC::GlobalTensor<float> Projected(uint32_t lane) const {
        return Part<float>(lane, 0);
    }
    __aicore__ inline AscendC::GlobalTensor<float> Updated(uint32_t lane) const {
        return Part<float>(lane, 4 * kChunkRows);
    }
    // Counted by the lane's query products: one may be written while the one before is still read.
    __aicore__ inline AscendC::GlobalTensor<float> Query(uint32_t lane, uint32_t number) const {
        return Part<float>(lane, 4 * (kChunkRows + kKeyDim) + number % 2 * 4 * kKeyDim);
    }

private:
    __aicore__ static inline constexpr int64_t QueryBytes() {
        return kBackward ? 4 * 2 * kKeyDim : 0;
    }
    __aicore__ inline int64_t ChunkState(const ScanItem& item) const {
        return index_.ChunkStateOffset(item.place, kKeyDim, kValueDim) +
               (ChunkVFirst() ? item.column * kKeyDim : item.column);
    }
    template <typename E>
    __aicore__ inline AscendC::GlobalTensor<E> Part(uint32_t lane, int64_t bytesPerColumn) const {
        AscendC::GlobalTensor<E> part;
        part.SetGlobalBuffer(
            (__gm__ E*)(workspace_ + lane * tiling_->laneBytes + bytesPerColumn * columns_));
        return part;
    }

    const StateScanTiling* tiling_ = nullptr;
    ChunkIndex index_;
    uint32_t columns_ = 0;
    GM_ADDR workspace_ = nullptr;
    AscendC::GlobalTensor<T> states_;
    AscendC::GlobalTensor<T> statesLow_;
    AscendC::GlobalTensor<T> rows_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_STATE_SCAN_WALK_H
