// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_TILING_DATA_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_TILING_DATA_H

#include <cstdint>

#include "common/chunk_geometry.h"

struct ChunkKdaBwdFinalizeTilingData {
    kda::ChunkGeometry geometry;
    kda::TokenLayout value;      // v
    kda::TokenLayout gate;       // raw_g
    kda::TokenLayout keyGrad;    // dq, dk
    kda::TokenLayout valueGrad;  // dv
    kda::TokenLayout gateGrad;   // dg
    kda::TokenLayout betaGrad;   // dbeta, one value a token
    int64_t slotBytes;           // workspace of a step in flight,
    int64_t blockBytes;          // and of a block
    float scale;
    float lowerBound;
    float betaScale;      // beta_eff = betaScale * sigmoid(beta)
    float gateToLog2;     // gk times this is in units of log2: 1, or log2(e)
    int32_t gateKind;     // GateKind
    int32_t stateVFirst;  // h is [V,K]
    int32_t hasDtBias;
    int32_t hasNorm;         // q_rstd and k_rstd are given
    int32_t hasBetaSigmoid;  // beta_eff came out of a sigmoid
    int32_t gateIsIo;        // raw_g and dg have the type of q, not fp32
    int32_t pairsByLevels;   // not around one reference a row block
    int32_t hasKeyLow;       // k is the sum of two numbers of its type
    int32_t preciseStates;   // h and dh are
};

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_TILING_DATA_H
