// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The state scan over the chunks of a sequence, used by fwd_h, pre_process_fwd, bwd_dhu and
// pre_process_bwd. With D = diag(2^gk_last), for every chunk in order (backward: in reverse)
//
//   forward   P = w,  U = kg:   y = u  - w X     X <- D X + kg^T y
//   backward  P = kg, U = w:    y = dv + kg X    X <- D X + scale qg^T d_o - w^T y
//
// The scans proper put out X before each chunk (h, dh), y (v_new, dv_scan) and the last X.
// The summaries [E | M] put out the last X only: E starts from zero, M from the identity, and M's
// columns have no base (u, dv) and no query term. X and its accumulation are fp32; the products
// take X and y rounded to T, the type of q, k and v (bf16 or half), which are the stored h and
// v_new.
//
// Work. A task is one sequence and head, or a slice of its columns: columns of X never mix, so the
// bits do not depend on the slicing. X lives in UB, half of its 128 rows on each AIV. A chunk makes
// four hand-overs, which two lanes (tasks that alternate on a core) hide:
//
//   AIV  X to T -> GM                                 -> ScanStateReady
//   AIC  P X -> workspace                             -> ScanProjectedReady
//   AIC  (backward) qg^T d_o -> workspace             -> ScanQueryReady
//   AIV  y = base -+ P X -> GM                        -> ScanRowsReady
//   AIC  U^T y -> workspace                           -> ScanUpdatedReady
//   AIV  X <- D X [+ scale query] +- U^T y
//
// Slots. Each lane has one workspace slot a product, so two are in the ring of a core, and two more
// for the query term, which runs ahead. No edge back is needed: every vector instruction that used
// a slot precedes, on its AIV, the store behind that AIV's next flag of the lane. So when the AIC
// has ScanStateReady it may write `projected` again, when it has ScanRowsReady `updated`; a query
// product follows the ScanRowsReady of the one before, hence the read of the one before that. The
// other way round, an AIV rewrites its X or y in workspace after it has waited for the product
// of the one before.
//
// What is known to be zero is not multiplied: P X at the first chunk of a zero state (y = base
// exactly), and the update behind the last chunk when nobody asked for the last state. MACs, with
// R = rows of the chunk (16 for a single row in P X), W = columns of all slices (V, or V + K):
//   P X          R * K * W    unless first and zero
//   U^T y        K * R * W    unless last and not stored
//   qg^T d_o     K * R * V    backward, as U^T y
#ifndef KDA_OP_KERNEL_COMMON_STATE_SCAN_H
#define KDA_OP_KERNEL_COMMON_STATE_SCAN_H

#include "state_scan_cube.h"
#include "state_scan_vector.h"

namespace kda {

template <typename T, bool kBackward, bool kSummary>
__aicore__ inline void RunStateScanOf(const StateScanTiling& tiling,
                                      const StateScanOperands& operands) {
    AscendC::TPipe pipe;
    if ASCEND_IS_AIC {
        StateScanCube<T, kBackward, kSummary> cube;
        cube.Run(pipe, &tiling, operands);
    }
    if ASCEND_IS_AIV {
        StateScanVector<T, kBackward, kSummary> vector;
        vector.Run(pipe, &tiling, operands);
    }
}

template <bool kBackward, bool kSummary>
__aicore__ inline void RunStateScan(const StateScanTiling& tiling,
                                    const StateScanOperands& operands) {
    if (tiling.geometry.ioIsHalf != 0) {
        RunStateScanOf<half, kBackward, kSummary>(tiling, operands);
    } else {
        RunStateScanOf<bfloat16_t, kBackward, kSummary>(tiling, operands);
    }
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_STATE_SCAN_H
