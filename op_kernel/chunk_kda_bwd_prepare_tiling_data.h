// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_PREPARE_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_PREPARE_TILING_DATA_H

#include <cstdint>

#include "common/chunk_geometry.h"

struct ChunkKdaBwdPrepareTilingData {
    kda::ChunkGeometry geometry;
    kda::TokenLayout outputGrad;  // d_o
    float scale;
    int32_t stateVFirst;  // h is [.., V, K] in memory
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_PREPARE_TILING_DATA_H
