// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Shared by op_host/chunk_kda_fwd_prepare.cpp and the kernel.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H

#include <cstdint>

#include "common/chunk_geometry.h"
#include "common/gate_kind.h"

namespace kda {

// Workspace of one unit (one chunk of one value head) while it travels between vector and cube
// core, in bytes from the start of its place.
struct FwdPrepareSpace {
    // Row operands, row block after row block: 16 rows of q P, then 16 rows of k P.
    static constexpr int64_t kRowOperands = 0;
    static constexpr int64_t kRowOperandBytes = 128 * 128 * 2;
    // Column operands: (k N) 2^(ref_I - ref_J) for J <= I, 16 (I + 1) rows for row block I. Without
    // a bound for the gate only those for J < I.
    static constexpr int64_t kColumnOperands = kRowOperands + kRowOperandBytes;
    static constexpr int64_t kDecayedKey = kColumnOperands + 160 * 128 * 2;  // k 2^gk
    static constexpr int64_t kBetaInverse = kDecayedKey + 64 * 128 * 2;      // Akk diag(beta)
    static constexpr int64_t kQueryScores = kBetaInverse + 64 * 64 * 2;      // fp32 64 x 64
    static constexpr int64_t kKeyScores = kQueryScores + 64 * 64 * 4;
    static constexpr int64_t kBoundedBytes = kKeyScores + 64 * 64 * 4;
    // Without a bound and in float16 (common/level_decay.h): operands q F and k F of every level,
    // laid out like the row operands; and of every level the scores in the diagonal blocks, fp32,
    // 16 rows of q and 16 of k a block.
    static constexpr int64_t kLevelCount = 4;
    static constexpr int64_t kLevelOperands = kBoundedBytes;
    static constexpr int64_t kLevelScores = kLevelOperands + kLevelCount * kRowOperandBytes;
    static constexpr int64_t kLevelScoreBytes = 128 * 16 * 4;
    static constexpr int64_t kUnboundedBytes = kLevelScores + kLevelCount * kLevelScoreBytes;
    // With splitInverse, at the end: what rounding left of Akk diag(beta).
    static constexpr int64_t kBetaInverseLowBytes = 64 * 64 * 2;
};

// Units in flight between the cores, for each of the two vector cores: three, so that the vector
// core never waits for the w, u product that is just about to start.
constexpr int64_t kFwdPrepareDepth = 3;
constexpr int64_t kFwdPrepareUnitsPerBlock = kFwdPrepareDepth * 2;

}  // namespace kda

struct ChunkKdaFwdPrepareTilingData {
    kda::ChunkGeometry geometry;
    kda::TokenLayout keyLayout;    // q, k
    kda::TokenLayout valueLayout;  // v
    kda::TokenLayout gateLayout;   // g
    kda::TokenLayout betaLayout;   // beta, one value a row
    int64_t unitBytes;             // workspace of one unit, see FwdPrepareSpace
    float scale;
    float epsilon;
    float gateBound;       // least log decay of a token in the unit of gk: lower_bound of the safe
                           // gate, else kGateFloor
    float referenceShift;  // see block_decay.h; in the unit of gk (safe gate)
    float gateUnit;        // gk of one nat: log2(e) when gk is in units of log2, else 1
    float gateFactor;      // decay = exp(gk gateFactor): 1 / gateUnit
    float betaTop;         // beta_eff = betaTop sigmoid(beta), with betaSigmoid
    int32_t gateKind;      // GateKind
    int32_t gateIsFloat;   // else of the io type
    int32_t betaIsFloat;
    int32_t hasDtBias;
    int32_t normalize;    // L2 norm of q and k
    int32_t betaSigmoid;  // else beta_eff = beta
    // backward_mode, as presence of the optional outputs
    int32_t saveAkk;
    int32_t saveQg;
    int32_t saveHatted;    // q_hat, k_hat, rstd, beta_eff
    int32_t preciseRelay;  // kg and, where it is rounded, k_hat as pairs of numbers; u in fp32
    int32_t splitInverse;  // Akk diag(beta) enters the products for w and u as a pair
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H
