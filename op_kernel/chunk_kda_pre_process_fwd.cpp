// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 2: the summary [E | M] of a sequence, final state = M initial state + E.
// The scan, its MACs and its hand-overs are described in common/state_scan.h.
#include "kernel_operator.h"

#include "common/state_scan.h"
#include "chunk_kda_pre_process_fwd_tiling_data.h"

extern "C" __global__ __aicore__ void chunk_kda_pre_process_fwd(GM_ADDR k, GM_ADDR w, GM_ADDR u,
                                                                GM_ADDR gk, GM_ADDR cuSeqlens,
                                                                GM_ADDR summary, GM_ADDR workspace,
                                                                GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaPreProcessFwdTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaPreProcessFwdTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    kda::StateScanOperands operands = {};
    operands.project = w;
    operands.update = k;
    operands.base = u;
    operands.gk = gk;
    operands.cuSeqlens = cuSeqlens;
    operands.final = summary;
    operands.workspace = AscendC::GetUserWorkspace(workspace);
    kda::RunStateScan<false, true>(tilingData.scan, operands);
}
