// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_H_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_H_TILING_DATA_H

#include "common/state_scan_tiling.h"

struct ChunkKdaFwdHTilingData {
    kda::StateScanTiling scan;
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_H_TILING_DATA_H
