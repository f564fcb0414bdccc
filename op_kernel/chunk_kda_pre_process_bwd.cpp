// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 6: the summary [Eb | Mb] of the first sequence, dh0 = Mb dht + Eb. The tiling counts one
// sequence, whatever cu_seqlens holds.
// The scan, its MACs and its hand-overs are described in common/state_scan.h.
#include "kernel_operator.h"

#include "common/state_scan.h"
#include "chunk_kda_pre_process_bwd_tiling_data.h"

extern "C" __global__ __aicore__ void chunk_kda_pre_process_bwd(GM_ADDR q, GM_ADDR k, GM_ADDR w,
                                                                GM_ADDR dO, GM_ADDR dv, GM_ADDR gk,
                                                                GM_ADDR cuSeqlens, GM_ADDR summary,
                                                                GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaPreProcessBwdTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaPreProcessBwdTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    kda::StateScanOperands operands = {};
    operands.project = k;
    operands.update = w;
    operands.base = dv;
    operands.gk = gk;
    operands.query = q;
    operands.grad = dO;
    operands.cuSeqlens = cuSeqlens;
    operands.final = summary;
    operands.workspace = AscendC::GetUserWorkspace(workspace);
    kda::RunStateScan<true, true>(tilingData.scan, operands);
}
