// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 3: the states h before every chunk, v_new = u - w h, and the state after the last chunk.
// The scan, its MACs and its hand-overs are described in common/state_scan.h.
#include "kernel_operator.h"

#include "common/state_scan.h"
#include "chunk_kda_fwd_h_tiling_data.h"

extern "C" __global__ __aicore__ void chunk_kda_fwd_h(GM_ADDR k, GM_ADDR w, GM_ADDR u, GM_ADDR gk,
                                                      GM_ADDR initialState, GM_ADDR cuSeqlens,
                                                      GM_ADDR chunkIndices, GM_ADDR kLow, GM_ADDR h,
                                                      GM_ADDR vNew, GM_ADDR finalState,
                                                      GM_ADDR hLow, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaFwdHTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaFwdHTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    kda::StateScanOperands operands = {};
    operands.project = w;
    operands.update = k;
    operands.keyLow = kLow;
    operands.base = u;
    operands.gk = gk;
    operands.initial = initialState;
    operands.cuSeqlens = cuSeqlens;
    operands.chunkIndices = chunkIndices;
    operands.states = h;
    operands.statesLow = hLow;
    operands.rows = vNew;
    operands.final = finalState;
    operands.workspace = AscendC::GetUserWorkspace(workspace);
    kda::RunStateScan<false, false>(tilingData.scan, operands);
}
