// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// From a task number to the rows it works on. Two kinds of tasks exist:
//   chunk tasks     (sequence, chunk, head): all independent, used by the prepare/finalize stages;
//   sequence tasks  (sequence, head): chunks in order, used by the state scans.
#ifndef KDA_OP_KERNEL_COMMON_CHUNK_INDEX_H
#define KDA_OP_KERNEL_COMMON_CHUNK_INDEX_H

#include "kernel_operator.h"
#include "chunk_geometry.h"

namespace kda {

// One chunk of one sequence, and one head of it.
struct ChunkPlace {
    int64_t sequence;
    int64_t batch;       // batch row that holds the sequence
    int64_t head;        // value head, or key head: whatever the task counts
    int64_t chunk;       // within the sequence
    int64_t slot;        // within the batch row's chunk slots
    int64_t firstToken;  // within the batch row
    int32_t rows;        // real rows, 1 .. chunkSize
};

class ChunkIndex {
public:
    __aicore__ inline explicit ChunkIndex(const ChunkGeometry& geometry) : geometry_(geometry) {}

    __aicore__ inline int64_t ChunkCount(int64_t sequence) const {
        (void)sequence;  // dense: all sequences are equally long
        return geometry_.chunksPerSequence;
    }

    __aicore__ inline ChunkPlace Locate(int64_t sequence, int64_t head, int64_t chunk) const {
        ChunkPlace place;
        place.sequence = sequence;
        place.batch = sequence;
        place.head = head;
        place.chunk = chunk;
        place.slot = chunk;
        place.firstToken = chunk * geometry_.chunkSize;
        const int64_t left = geometry_.tokens - place.firstToken;
        place.rows = left < geometry_.chunkSize ? static_cast<int32_t>(left) : geometry_.chunkSize;
        return place;
    }

    // Chunk tasks: heads run fastest, then chunks, then sequences, so that neighbouring tasks read
    // neighbouring memory in token-major layouts. `heads` = valueHeads or keyHeads.
    __aicore__ inline int64_t ChunkTaskCount(int64_t heads) const {
        return geometry_.totalChunks * heads;
    }

    __aicore__ inline ChunkPlace LocateTask(int64_t task, int64_t heads) const {
        const int64_t chunkTask = task / heads;
        return Locate(chunkTask / geometry_.chunksPerSequence, task % heads,
                      chunkTask % geometry_.chunksPerSequence);
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
        return ((place.batch * heads + head) * geometry_.tokens + place.firstToken) * width;
    }
    __aicore__ inline int64_t ValueCacheOffset(const ChunkPlace& place, int64_t width) const {
        return CacheOffset(place, place.head, geometry_.valueHeads, width);
    }

    // The chunk's state in [B,Nc,Hv,K,V].
    __aicore__ inline int64_t ChunkStateOffset(const ChunkPlace& place, int64_t keyDim,
                                               int64_t valueDim) const {
        return ((place.batch * geometry_.chunksPerBatchRow + place.slot) * geometry_.valueHeads +
                place.head) *
               keyDim * valueDim;
    }

    // The sequence's state in [N,Hv,K,V] (initial_state, final_state, dht, dh0).
    __aicore__ inline int64_t SequenceStateOffset(const ChunkPlace& place, int64_t keyDim,
                                                  int64_t valueDim) const {
        return (place.sequence * geometry_.valueHeads + place.head) * keyDim * valueDim;
    }

private:
    const ChunkGeometry& geometry_;
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
