// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KDA_OP_KERNEL_CHUNK_KDA_MERGE_FWD_BWD_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_MERGE_FWD_BWD_TILING_DATA_H

#include <cstdint>

struct ChunkKdaMergeFwdBwdTilingData {
    int64_t heads;
    int64_t firstRank;  // the ranks firstRank, firstRank + rankStep, ... are applied in this order
    int64_t rankStep;
    int64_t rankCount;
    int64_t slices;        // column slices of one state: a task is (head, slice)
    int64_t sliceColumns;  // valueDim / slices
    int64_t keyDim;
    int64_t valueDim;
    int32_t stateVFirst;  // state is [Hv,V,K] in memory
    int32_t reserved;
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_MERGE_FWD_BWD_TILING_DATA_H
