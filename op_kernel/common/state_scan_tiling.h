// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Tiling data of the four state scans; see state_scan.h.
#ifndef KDA_OP_KERNEL_COMMON_STATE_SCAN_TILING_H
#define KDA_OP_KERNEL_COMMON_STATE_SCAN_TILING_H

#include "chunk_geometry.h"

namespace kda {

// Where the state comes from before the first chunk.
constexpr int32_t kStateZero = 0;
constexpr int32_t kStateFp32 = 1;
constexpr int32_t kStateIo = 2;  // as q, k and v

// Tasks (sequence, head, column slice) that alternate on one core.
constexpr int64_t kScanLanes = 2;

struct StateScanTiling {
    ChunkGeometry geometry;
    TokenLayout gradLayout;  // d_o; unused by the forward scans
    int64_t slices;          // column slices of one state
    int64_t sliceColumns;    // 64 or 128
    int64_t laneBytes;       // workspace of one lane, see StateScanLaneBytes
    float scale;             // of qg^T d_o
    float gateFactor;        // decay = exp(gk_last * gateFactor): ln 2 when gk is in units of log2
    int32_t initialKind;
    int32_t storesFinal;
    int32_t stateVFirst;  // memory holds initial, final and (forward) chunk states as [V,K]
    int32_t baseIsFloat;  // u comes in fp32
    int32_t precise;      // kg comes as a pair of numbers, states and y are pairs as operands
    int32_t reserved;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_STATE_SCAN_TILING_H
