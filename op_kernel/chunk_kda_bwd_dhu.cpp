// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 7: dh, the gradient of the state after every chunk, dv_scan = dv + kg dh, and dh0.
// The scan, its MACs and its hand-overs are described in common/state_scan.h.
#include "kernel_operator.h"

#include "common/state_scan.h"
#include "chunk_kda_bwd_dhu_tiling_data.h"

extern "C" __global__ __aicore__ void chunk_kda_bwd_dhu(
    GM_ADDR q, GM_ADDR k, GM_ADDR w, GM_ADDR dO, GM_ADDR dv, GM_ADDR gk, GM_ADDR h0, GM_ADDR dht,
    GM_ADDR cuSeqlens, GM_ADDR chunkIndices, GM_ADDR kLow, GM_ADDR dh, GM_ADDR dh0, GM_ADDR dvScan,
    GM_ADDR dhLow, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaBwdDhuTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaBwdDhuTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    (void)h0;  // its presence asks for dh0, its values do not matter
    kda::StateScanOperands operands = {};
    operands.project = k;
    operands.keyLow = kLow;
    operands.update = w;
    operands.base = dv;
    operands.gk = gk;
    operands.query = q;
    operands.grad = dO;
    operands.initial = dht;
    operands.cuSeqlens = cuSeqlens;
    operands.chunkIndices = chunkIndices;
    operands.states = dh;
    operands.statesLow = dhLow;
    operands.rows = dvScan;
    operands.final = dh0;
    operands.workspace = AscendC::GetUserWorkspace(workspace);
    kda::RunStateScan<true, false>(tilingData.scan, operands);
}
