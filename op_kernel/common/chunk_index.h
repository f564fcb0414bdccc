// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// From a task number to the rows it works on. Two kinds of tasks exist:
//   chunk tasks     (sequence, chunk, head): all independent, used by the prepare/finalize stages;
//   sequence tasks  (sequence, head): chunks in order, used by the state scans.
// A dense batch needs arithmetic only. A packed one takes the rest from two lists of int64 in GM:
//   cu_seqlens     sequence n has the tokens cu_seqlens[n] .. cu_seqlens[n + 1] - 1;
//   chunk_indices  pairs (sequence, chunk in the sequence), sequence after sequence, without pairs
//                  for an empty one. A pair's position is the chunk's slot in h and dh.
// The scalar unit reads them: two pairs of neighbours a chunk task, which its cache keeps while a
// kernel asks for one task several times.
#ifndef KDA_OP_KERNEL_COMMON_CHUNK_INDEX_H
#define KDA_OP_KERNEL_COMMON_CHUNK_INDEX_H

#include "kernel_operator.h"
#include "chunk_geometry.h"

namespace kda {

// One sequence.
struct SequencePlace {
    int64_t sequence;
    int64_t batch;       // batch row that holds it
    int64_t firstToken;  // within the batch row
    int64_t tokens;
    int64_t chunks;
    int64_t firstSlot;  // within the batch row's chunk slots
};

// One chunk of one sequence, and one head of it.
struct ChunkPlace {
    int64_t sequence;
    int64_t batch;       // batch row that holds the sequence
    int64_t head;        // value head, or key head: whatever the task counts
    int64_t chunk;       // within the sequence
    int64_t slot;        // within the batch row's chunk slots
    int64_t firstToken;  // within the batch row
    int32_t rows;        // real rows, 1 .. chunkSize; meaningless for an empty sequence
};

class ChunkIndex {
public:
    __aicore__ inline ChunkIndex() {}
    // Dense: neither list is read, so both may be missing.
    __aicore__ inline ChunkIndex(const ChunkGeometry& geometry, GM_ADDR cuSeqlens,
                                 GM_ADDR chunkIndices)
        : geometry_(&geometry) {
        cuSeqlens_.SetGlobalBuffer((__gm__ int64_t*)cuSeqlens);
        chunkIndices_.SetGlobalBuffer((__gm__ int64_t*)chunkIndices);
    }

    // ---- sequence tasks. Without kSlots chunk_indices are not needed, and firstSlot is unknown.
    template <bool kSlots>
    __aicore__ inline SequencePlace LocateSequence(int64_t sequence) const {
        SequencePlace place;
        place.sequence = sequence;
        if (geometry_->packed == 0) {
            place.batch = sequence;
            place.firstToken = 0;
            place.tokens = geometry_->tokens;
            place.chunks = geometry_->chunksPerSequence;
            place.firstSlot = 0;
            return place;
        }
        place.batch = 0;
        place.firstToken = cuSeqlens_.GetValue(sequence);
        place.tokens = cuSeqlens_.GetValue(sequence + 1) - place.firstToken;
        place.chunks = (place.tokens + geometry_->chunkSize - 1) / geometry_->chunkSize;
        place.firstSlot = kSlots && place.chunks > 0 ? FirstSlot(sequence) : 0;
        return place;
    }

    __aicore__ inline ChunkPlace Locate(const SequencePlace& sequence, int64_t head,
                                        int64_t chunk) const {
        ChunkPlace place;
        place.sequence = sequence.sequence;
        place.batch = sequence.batch;
        place.head = head;
        place.chunk = chunk;
        place.slot = sequence.firstSlot + chunk;
        place.firstToken = sequence.firstToken + chunk * geometry_->chunkSize;
        place.rows = RowsOf(sequence.tokens - chunk * geometry_->chunkSize);
        return place;
    }

    // ---- chunk tasks: heads run fastest, then chunks, then sequences, so that neighbouring tasks
    // read neighbouring memory in token-major layouts. `heads` = valueHeads or keyHeads.
    __aicore__ inline int64_t ChunkTaskCount(int64_t heads) const {
        return geometry_->totalChunks * heads;
    }

    __aicore__ inline ChunkPlace LocateTask(int64_t task, int64_t heads) const {
        const int64_t slot = task / heads;
        const int64_t head = task % heads;
        if (geometry_->packed == 0) {
            return Locate(LocateSequence<false>(slot / geometry_->chunksPerSequence), head,
                          slot % geometry_->chunksPerSequence);
        }
        SequencePlace sequence = LocateSequence<false>(chunkIndices_.GetValue(2 * slot));
        const int64_t chunk = chunkIndices_.GetValue(2 * slot + 1);
        sequence.firstSlot = slot - chunk;
        return Locate(sequence, head, chunk);
    }

    // Offset of the chunk's first row in an operand of that layout.
    __aicore__ static inline int64_t RowOffset(const TokenLayout& layout, const ChunkPlace& place,
                                               int64_t head) {
        return place.batch * layout.batchStride + head * layout.headStride +
               place.firstToken * layout.tokenStride;
    }
    __aicore__ static inline int64_t RowOffset(const TokenLayout& layout, const ChunkPlace& place) {
        return RowOffset(layout, place, place.head);
    }

    // First row of the chunk in a head-major cache [B,heads,T,width]; width 1 for [B,heads,T].
    __aicore__ inline int64_t CacheOffset(const ChunkPlace& place, int64_t head, int64_t heads,
                                          int64_t width) const {
        return ((place.batch * heads + head) * geometry_->tokens + place.firstToken) * width;
    }
    __aicore__ inline int64_t ValueCacheOffset(const ChunkPlace& place, int64_t width) const {
        return CacheOffset(place, place.head, geometry_->valueHeads, width);
    }

    // The chunk's state in [B,Nc,Hv,K,V].
    __aicore__ inline int64_t ChunkStateOffset(const ChunkPlace& place, int64_t keyDim,
                                               int64_t valueDim) const {
        return ((place.batch * geometry_->chunksPerBatchRow + place.slot) * geometry_->valueHeads +
                place.head) *
               keyDim * valueDim;
    }

    // The sequence's state in [N,Hv,K,V] (initial_state, final_state, dht, dh0).
    __aicore__ inline int64_t SequenceStateOffset(const ChunkPlace& place, int64_t keyDim,
                                                  int64_t valueDim) const {
        return (place.sequence * geometry_->valueHeads + place.head) * keyDim * valueDim;
    }

private:
    __aicore__ inline int32_t RowsOf(int64_t left) const {
        return left < geometry_->chunkSize ? static_cast<int32_t>(left) : geometry_->chunkSize;
    }

    // Position of the sequence's first pair, by bisection: a read for each doubling of the chunks,
    // once a sequence, where counting from the front would take one a chunk.
    __aicore__ inline int64_t FirstSlot(int64_t sequence) const {
        int64_t first = 0;
        int64_t count = geometry_->totalChunks;
        while (count > 0) {
            const int64_t half = count / 2;
            // scalar: log2 of the number of chunks, once a sequence
            if (chunkIndices_.GetValue(2 * (first + half)) < sequence) {
                first += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        return first;
    }

    const ChunkGeometry* geometry_ = nullptr;
    AscendC::GlobalTensor<int64_t> cuSeqlens_;
    AscendC::GlobalTensor<int64_t> chunkIndices_;
};

// A block is one cube core and two vector cores (KERNEL_TYPE_MIX_AIC_1_2).
constexpr int64_t kVectorCoresPerBlock = 2;

// The tasks of one core: block, block + blocks, block + 2 blocks ... Cube core and vector cores of
// a block walk the same list, which is what keeps their hand-overs in step.
__aicore__ inline int64_t BlockOfCore() {
    if ASCEND_IS_AIV {
        return AscendC::GetBlockIdx() / kVectorCoresPerBlock;
    }
    return AscendC::GetBlockIdx();
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_CHUNK_INDEX_H
