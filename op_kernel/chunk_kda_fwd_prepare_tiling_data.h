// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Shared by op_host/chunk_kda_fwd_prepare.cpp and the kernel.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H

#include <cstdint>

#include "common/chunk_geometry.h"

namespace kda {

// Workspace of one unit (one chunk of one value head) while it travels between vector and cube
// core, in bytes from the start of its place.
struct FwdPrepareSpace {
    // Row operands, row block after row block: 16 rows of q P, then 16 rows of k P.
    static constexpr int64_t kRowOperands = 0;
    // Column operands: (k N) 2^(ref_I - ref_J) for J <= I, 16 (I + 1) rows for row block I.
    static constexpr int64_t kColumnOperands = kRowOperands + 128 * 128 * 2;
    static constexpr int64_t kDecayedKey = kColumnOperands + 160 * 128 * 2;  // k 2^gk
    static constexpr int64_t kBetaInverse = kDecayedKey + 64 * 128 * 2;      // Akk diag(beta)
    static constexpr int64_t kQueryScores = kBetaInverse + 64 * 64 * 2;      // fp32 64 x 64
    static constexpr int64_t kKeyScores = kQueryScores + 64 * 64 * 4;
    static constexpr int64_t kBytes = kKeyScores + 64 * 64 * 4;
};

// Units in flight between the cores, for each of the two vector cores: three, so that the vector
// core never waits for the w, u product that is just about to start.
constexpr int64_t kFwdPrepareDepth = 3;
constexpr int64_t kFwdPrepareBytesPerBlock = kFwdPrepareDepth * 2 * FwdPrepareSpace::kBytes;

}  // namespace kda

struct ChunkKdaFwdPrepareTilingData {
    kda::ChunkGeometry geometry;
    kda::TokenLayout keyLayout;    // q, k
    kda::TokenLayout valueLayout;  // v
    kda::TokenLayout gateLayout;   // g
    kda::TokenLayout betaLayout;   // beta, one value a row
    float scale;
    float epsilon;
    float lowerBound;
    int32_t gateIsFloat;  // else bf16
    int32_t betaIsFloat;
    int32_t hasDtBias;
    int32_t normalize;    // L2 norm of q and k
    int32_t betaSigmoid;  // beta_eff = sigmoid(beta)
    // backward_mode, as presence of the optional outputs
    int32_t saveAkk;
    int32_t saveQg;
    int32_t saveHatted;  // q_hat, k_hat, rstd, beta_eff
    int32_t reserved;
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_TILING_DATA_H
