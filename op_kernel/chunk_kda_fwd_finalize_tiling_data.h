// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Shared by op_host/chunk_kda_fwd_finalize.cpp and the kernel.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_FINALIZE_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_FINALIZE_TILING_DATA_H

#include "common/chunk_geometry.h"

struct ChunkKdaFwdFinalizeTilingData {
    kda::ChunkGeometry geometry;
    kda::TokenLayout output;
    int32_t stateVFirst;  // h is [.., V, K] in memory
    int32_t reserved;
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_FINALIZE_TILING_DATA_H
