// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// fwd_prepare: everything of a chunk that does not depend on the state. A unit (one chunk of one
// value head) visits the cores of a block four times:
//   AIV  gate, gk, norms; q and k operands of the scores, k 2^gk      -> workspace, gk/qg/kg/...
//   AIC  scores, row block by row block, on and below the diagonal    -> workspace
//   AIV  masks, beta, Akk = (I + L)^-1, Akk diag(beta)                -> aqk, akk, workspace
//   AIC  [w | u] = Akk diag(beta) [k 2^gk | v]                        -> w, u
// Each vector core has its own unit; the visits of three units overlap. Rounding happens where an
// operand of a product or an output leaves the vector core, nowhere else.
//
// Cube work of a unit with R rows in b = ceil(R / 16) row blocks, in multiply-adds:
//   32 * 16 * 128 * b (b + 1) / 2   scores of q and k together
//   + max(R, 16 if R = 1) * 256 * R   w and u
// which is 655,360 + 1,048,576 for a full chunk. Under a gate without a bound, and always
// in float16, the diagonal blocks come from four products, one a level (common/level_decay.h):
//   32 * 16 * 128 * (b (b - 1) / 2 + 4 b)
// for the scores, 1,441,792 in a full chunk. Where beta may exceed 1, and with preciseRelay, Akk
// diag(beta) is a sum of two 16-bit numbers, hence two products for w and u. With preciseRelay u
// stays in fp32, and what rounding leaves of kg and k_hat comes out, too.
#include "kernel_operator.h"

#include "chunk_kda_fwd_prepare_cube.h"
#include "chunk_kda_fwd_prepare_tiling_data.h"
#include "chunk_kda_fwd_prepare_vector.h"

namespace kda {

template <typename T>
__aicore__ inline void RunFwdPrepare(const ChunkKdaFwdPrepareTilingData& tiling,
                                     const FwdPrepareOperands& operands) {
    AscendC::TPipe pipe;
    if ASCEND_IS_AIC {
        FwdPrepareCube<T> cube(tiling, operands);
        cube.Init(pipe);
        cube.Process();
    }
    if ASCEND_IS_AIV {
        FwdPrepareVector<T> vector(tiling, operands);
        vector.Init(pipe);
        vector.Process(pipe);
    }
}

}  // namespace kda

extern "C" __global__ __aicore__ void chunk_kda_fwd_prepare(
    GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR g, GM_ADDR beta, GM_ADDR a_log, GM_ADDR dt_bias,
    GM_ADDR cu_seqlens, GM_ADDR chunk_indices, GM_ADDR gk, GM_ADDR aqk, GM_ADDR akk, GM_ADDR w,
    GM_ADDR u, GM_ADDR qg, GM_ADDR kg, GM_ADDR qg_scaled, GM_ADDR q_hat, GM_ADDR k_hat,
    GM_ADDR q_rstd, GM_ADDR k_rstd, GM_ADDR beta_eff, GM_ADDR kg_low, GM_ADDR k_hat_low,
    GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaFwdPrepareTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaFwdPrepareTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    const kda::FwdPrepareOperands operands = {
        q,
        k,
        v,
        g,
        beta,
        a_log,
        dt_bias,
        cu_seqlens,
        chunk_indices,
        gk,
        aqk,
        akk,
        w,
        u,
        qg,
        kg,
        qg_scaled,
        q_hat,
        k_hat,
        q_rstd,
        k_rstd,
        beta_eff,
        kg_low,
        k_hat_low,
        AscendC::GetUserWorkspace(workspace) +
            kda::BlockOfCore() * kda::kFwdPrepareUnitsPerBlock * tilingData.unitBytes};
    if (tilingData.geometry.ioIsHalf != 0) {
        kda::RunFwdPrepare<half>(tilingData, operands);
    } else {
        kda::RunFwdPrepare<bfloat16_t>(tilingData, operands);
    }
}
