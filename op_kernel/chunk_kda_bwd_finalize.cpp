// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// bwd_finalize: every input gradient of a chunk, from the chunk's state H, the gradient R of the
// state behind it, X = dv_scan, and dAqk and dq_raw of bwd_prepare. A step is one chunk of one
// value head with L real rows; a task is the steps of one query/key head. AIC and AIVs alternate;
// what crosses lies in the step's workspace slot:
//
//   C1  H R^T (io; its diagonal also in fp32), X H^T = -dw (io), dvb = Akk^T X
//   V1  P, N per row block from gk. Operands -kt = -k 2^gk, q P, beta k P, k N (once for every row
//       block below), Ab = Akk diag(beta), stril(dAqk); by levels also those of the levels
//   C2  G = v R^T - kt (H R^T) (io); X v^T + dw kt^T; -dkb = -Akk^T dw; v_new R^T = Ab G
//   V2  -dA = tril(.) diag(-beta)
//   C3  -Akk^T dA (io), then that times Akk^T
//   V3  dL = stril(.); like stril(dAqk), as the sum of two io numbers
//   C4  pairs i > j by row blocks I of 16: rows Tq_I = dAqk_I (k N)^I, Tk_I = dL_I (k N)^I, and
//       what the block sends up, Tc^I = dAqk_I^T (q P)_I + dL_I^T (beta k P)_I; by levels
//       only pairs left of the diagonal block, and then four levels inside it
//   V4  all that is element-wise, sigmoid, gate, outputs, partial sums. dq and dk go on to the
//       task's next step as fp32 sums; the last one takes them through the norms and writes them
//   end SyncAll, then da_log and ddt_bias in a fixed order
//
// Per block the AIVs run V2(s) V1(s+1) V3(s) V4(s-1), the AIC C3(s) C1(s+1) C2(s+1) C4(s): neither
// waits for the other's current one. Three workspace slots; a slot's next writer is always behind
// its last reader by the flags already there.
//
// io is the type of q, k, v and the caches, and so of all operands of products: bf16 or float16.
//
// A gate with a bound takes P and N of a row block around one reference in its middle. Without one
// no such reference holds both in range, and float16 does not hold them in any case. Then it goes
// by levels (pairsByLevels): P runs from the end of the block before, N to the end of its own, and
// pairs inside a block take the levels of common/level_decay.h (chunk_kda_bwd_finalize_levels.h).
// No factor exceeds 2^0.5.
//
// Four choices carry the accuracy:
//  * v_new R^T is not computed from v_new but from v, unrounded: Ab (v R^T - kt (H R^T)). Under a
//    loss on the final state the sum over v nearly cancels, and any rounding of v in front of the
//    product would remain.
//  * diagonal pairs i = j feed dq and dk but not dgk: their parts of dgk cancel exactly.
//  * dgk of pairs i > j is a difference, term by term: t_ij = a_i S_ij c_j enters row i with plus
//    and row j with minus, and the cumulative sum lets every pair cancel that does not straddle a
//    row. Rounded operands spoil that only if both sides round differently. So both sides take the
//    same numbers a = q P (or beta k P), S = dAqk (or dL), c = k N; references are whole numbers,
//    so that scaling c from one row block to the next is exact (see ChannelDecay). a and c are
//    io. S is a sum of two io numbers: da_log adds S over tokens and channels, and where those
//    terms nearly cancel the rounding of S was half of its error. Splitting a and c as well gains
//    little.
//  * what a row wrote into the state is a forward sum of k dk1 in da, not a difference in dgk: see
//    Gradients::SumOverRows.
//
// With preciseStates H and R are sums of two io numbers in H R^T, X H^T and v R^T, and Ab is in
// Ab G: sums over the channels of v that nearly cancel are then right to their last digit of io.
// The other operands do not need it: H R^T itself, kt, G and dw, or X, which no such sum is made
// of.
//
// MACs, K = V = 128, with R(n) = 16 if n is 1, else n, and n_I rows of block I, e_I its end:
//   C1  128^3 + R(L) 128 128 + R(L) 128 L          C2  2 R(L) 128 128 + 2 R(L) L 128 + 2 R(L) 128 L
//   C3  2 R(L) L L                                 C4  sum_I 4 R(n_I) 128 e_I + 4 R(e_I) 128 n_I
// 11 M for a whole chunk. Vector work: about 100 passes over a 64 x 128 tile, the AIVs together.
// By levels C4 is sum_I 4 (R(n_I) + n_I) 128 (e_I - n_I) + 4 16 128 128, 14 M altogether, and
// the vector work 170 passes.
#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_cube.h"
#include "chunk_kda_bwd_finalize_reduce.h"
#include "chunk_kda_bwd_finalize_shared.h"
#include "chunk_kda_bwd_finalize_vector.h"

namespace kda {
namespace bwd_finalize {

// T: bfloat16_t or half, the type of q, k, v, the caches and of what is multiplied.
template <typename T>
__aicore__ inline void Run(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm) {
    AscendC::TPipe pipe;
    if ASCEND_IS_AIC {
        Cube<T> cube(tiling, gm);
        cube.Run(pipe);
        AscendC::SyncAll<false>();
    }
    if ASCEND_IS_AIV {
        Vector<T> vector(tiling, gm);
        vector.Init(pipe);
        vector.Run();
        AscendC::SyncAll<false>();
        if (tiling.gateKind != kGateActivated) {
            Reduce reduce(tiling, gm, vector.Buffers());
            reduce.Run();
        }
    }
}

}  // namespace bwd_finalize
}  // namespace kda

extern "C" __global__ __aicore__ void chunk_kda_bwd_finalize(
    GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR gk, GM_ADDR raw_g, GM_ADDR beta, GM_ADDR a_log,
    GM_ADDR dt_bias, GM_ADDR akk, GM_ADDR v_new, GM_ADDR h, GM_ADDR dh, GM_ADDR dv_scan,
    GM_ADDR d_aqk, GM_ADDR dq_raw, GM_ADDR q_rstd, GM_ADDR k_rstd, GM_ADDR cu_seqlens,
    GM_ADDR chunk_indices, GM_ADDR k_low, GM_ADDR h_low, GM_ADDR dh_low, GM_ADDR dq, GM_ADDR dk,
    GM_ADDR dv, GM_ADDR dbeta, GM_ADDR dg, GM_ADDR da_log, GM_ADDR ddt_bias, GM_ADDR workspace,
    GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ChunkKdaBwdFinalizeTilingData);
    GET_TILING_DATA_WITH_STRUCT(ChunkKdaBwdFinalizeTilingData, tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    (void)v_new;  // regrouped away
    const kda::bwd_finalize::Pointers gm = {q,
                                            k,
                                            v,
                                            gk,
                                            raw_g,
                                            beta,
                                            a_log,
                                            dt_bias,
                                            akk,
                                            h,
                                            dh,
                                            dv_scan,
                                            d_aqk,
                                            dq_raw,
                                            q_rstd,
                                            k_rstd,
                                            cu_seqlens,
                                            chunk_indices,
                                            k_low,
                                            h_low,
                                            dh_low,
                                            dq,
                                            dk,
                                            dv,
                                            dbeta,
                                            dg,
                                            da_log,
                                            ddt_bias,
                                            AscendC::GetUserWorkspace(workspace)};
    if (tilingData.geometry.ioIsHalf) {
        kda::bwd_finalize::Run<half>(tilingData, gm);
    } else {
        kda::bwd_finalize::Run<bfloat16_t>(tilingData, gm);
    }
}
