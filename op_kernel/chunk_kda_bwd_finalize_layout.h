// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Workspace of bwd_finalize, known to host and kernel. Per block: kRingDepth slots, one a step in
// flight (a step is one chunk of one value head), and the sums over the value heads of a key head.
// After the blocks: one row of partial sums a step for da_log and ddt_bias.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LAYOUT_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LAYOUT_H

#include <cstdint>

#include "common/chunk_geometry.h"

namespace kda {
namespace bwd_finalize {

// A step's slot is written from one iteration before to one iteration after its own.
constexpr int32_t kRingDepth = 3;

constexpr int64_t kRowFloats = kChunkRows * kKeyDim;       // a 64 x 128 tile
constexpr int64_t kScoreFloats = kChunkRows * kChunkRows;  // a 64 x 64 tile
constexpr int64_t kBlockPairs = 10;                        // 16 x 16 blocks on or below diagonal
constexpr int64_t kPairRowFloats = kBlockPairs * 16 * kKeyDim;
constexpr int64_t kHalf = 2;  // bytes of a bf16 or a float16
constexpr int64_t kFull = 4;  // bytes of an fp32

// Byte offsets in a slot. Operands of the AIC in the type of q, then fp32 results for the AIVs.
struct Slot {
    static constexpr int64_t kHr = 0;                                       // H R^T
    static constexpr int64_t kDw = kHr + kKeyDim * kKeyDim * kHalf;         // X H^T = -dw
    static constexpr int64_t kResidual = kDw + kRowFloats * kHalf;          // v R^T - kt (H R^T)
    static constexpr int64_t kKeyDecayed = kResidual + kRowFloats * kHalf;  // -kt
    static constexpr int64_t kQueryP = kKeyDecayed + kRowFloats * kHalf;    // q P
    static constexpr int64_t kKeyP = kQueryP + kRowFloats * kHalf;          // beta k P
    static constexpr int64_t kKeyN = kKeyP + kRowFloats * kHalf;            // k N, per row block
    static constexpr int64_t kAkkBeta = kKeyN + kPairRowFloats * kHalf;     // Akk diag(beta)
    static constexpr int64_t kDAqk = kAkkBeta + kScoreFloats * kHalf;       // stril(dAqk)
    static constexpr int64_t kDAqkLow = kDAqk + kScoreFloats * kHalf;       // what T left of it
    static constexpr int64_t kDA = kDAqkLow + kScoreFloats * kHalf;         // -dA
    static constexpr int64_t kAkkDA = kDA + kScoreFloats * kHalf;           // -Akk^T dA
    static constexpr int64_t kDL = kAkkDA + kScoreFloats * kHalf;           // dL
    static constexpr int64_t kDLLow = kDL + kScoreFloats * kHalf;           // what T left of it
    static constexpr int64_t kAkkBetaLow = kDLLow + kScoreFloats * kHalf;   // with preciseStates
    static constexpr int64_t kHrDiagonal = kAkkBetaLow + kScoreFloats * kHalf;  // 8 blocks 16 x 16
    static constexpr int64_t kDvb = kHrDiagonal + kKeyDim * 16 * kFull;         // Akk^T X
    static constexpr int64_t kDARaw = kDvb + kRowFloats * kFull;                // X v^T + dw kt^T
    static constexpr int64_t kDLRaw = kDARaw + kScoreFloats * kFull;            // -Akk^T dA Akk^T
    static constexpr int64_t kDkb = kDLRaw + kScoreFloats * kFull;              // -Akk^T dw
    static constexpr int64_t kDkg = kDkb + kRowFloats * kFull;                  // v_new R^T
    static constexpr int64_t kQueryRows = kDkg + kRowFloats * kFull;            // stril(dAqk) (k N)
    static constexpr int64_t kKeyRows = kQueryRows + kRowFloats * kFull;        // dL (k N)
    static constexpr int64_t kColumns = kKeyRows + kRowFloats * kFull;          // per row block
    static constexpr int64_t kExchange = kColumns + kPairRowFloats * kFull;

    // Row sums over one AIV's channels: dbeta, <q, dq>, <k, dk>.
    static constexpr int64_t kExchangeFloats = 3 * kChunkRows;
    static constexpr int64_t kBytes = kExchange + 2 * kExchangeFloats * kFull;

    // Only with pairsByLevels, four of each, one a level: operands q F and k F (times
    // beta in rows of upper halves), scores as the sum of two numbers with 64 rows of 16 each,
    // and the products.
    static constexpr int64_t kLevelBytes = kRowFloats * kHalf;
    static constexpr int64_t kLevelResultBytes = kRowFloats * kFull;
    static constexpr int64_t kLevelScoreBytes = 2 * kChunkRows * 16 * kHalf;
    static constexpr int64_t kLevelQuery = kBytes;
    static constexpr int64_t kLevelKey = kLevelQuery + 4 * kLevelBytes;
    static constexpr int64_t kLevelDAqk = kLevelKey + 4 * kLevelBytes;
    static constexpr int64_t kLevelDL = kLevelDAqk + 4 * kLevelScoreBytes;
    static constexpr int64_t kLevelQueryRows = kLevelDL + 4 * kLevelScoreBytes;
    static constexpr int64_t kLevelKeyRows = kLevelQueryRows + 4 * kLevelResultBytes;
    static constexpr int64_t kBytesWithLevels = kLevelKeyRows + 4 * kLevelResultBytes;
};

// fp32 sums of dq and dk over the value heads of a task.
struct GroupSum {
    static constexpr int64_t kDQuery = 0;
    static constexpr int64_t kDKey = kDQuery + kRowFloats * kFull;
    static constexpr int64_t kBytes = kDKey + kRowFloats * kFull;
};

// Partial sums of a step: 128 values of sum dg x, then 128 of sum dg. Rows [value head][batch row
// and chunk], so that a head's rows lie together.
constexpr int64_t kPartialFloats = 2 * kKeyDim;

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LAYOUT_H
