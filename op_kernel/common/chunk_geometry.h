// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What a stage knows about batches, sequences, chunks and heads. The structs travel inside the
// tiling data, so host (C++11) and kernel both include this file: plain fixed-width members only.
// The device helpers that turn a task number into offsets are in chunk_index.h.
#ifndef KDA_OP_KERNEL_COMMON_CHUNK_GEOMETRY_H
#define KDA_OP_KERNEL_COMMON_CHUNK_GEOMETRY_H

#include <cstdint>

namespace kda {

// Rows of a chunk, and the widths of a key and a value row. They fix the buffers of every kernel;
// the host refuses anything else.
constexpr int32_t kChunkRows = 64;
constexpr int32_t kKeyDim = 128;
constexpr int32_t kValueDim = 128;

// Where a token's row starts, for any operand with one row a (batch, head, token):
//   element offset = batch * batchStride + head * headStride + token * tokenStride.
// Token-major [B,T,H,D] and head-major [B,H,T,D] differ in these three numbers only. The rank 3
// layouts [T,H,D] and [H,T,D] are those with B = 1.
struct TokenLayout {
    int64_t batchStride;
    int64_t headStride;
    int64_t tokenStride;
};

// Dense: `sequences` sequences of `tokens` tokens, one a batch row, cut into `chunksPerSequence`
// chunks of `chunkSize` rows; the last chunk of a sequence may be short.
// Packed: one batch row holds `sequences` sequences, one behind the other. Their bounds and their
// chunks stand in cu_seqlens and chunk_indices, in GM. Kernels never compute a chunk's place
// themselves, they ask ChunkIndex (chunk_index.h).
struct ChunkGeometry {
    int64_t batch;
    int64_t tokens;  // of a batch row
    int64_t sequences;
    int64_t chunksPerSequence;  // dense only
    int64_t chunksPerBatchRow;  // Nc: chunk state slots of one batch row
    int64_t totalChunks;        // batch * chunksPerBatchRow
    int64_t valueHeads;
    int64_t keyHeads;
    int32_t headGroup;  // value heads that share one query/key head
    int32_t chunkSize;
    int32_t packed;
    int32_t ioIsHalf;  // q, k, v and the caches are float16, else bfloat16
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_CHUNK_GEOMETRY_H
