// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// From the raw gate to gk: activation, then the cumulative sum down the rows of a chunk.
// Tiles are 64 x 128 fp32, one AIV's own.
#ifndef KDA_OP_KERNEL_COMMON_GATE_H
#define KDA_OP_KERNEL_COMMON_GATE_H

#include "vector_tile.h"

namespace kda {

// negRate = -exp(a_log) in all eight values of a block, from a block that holds a_log in value 0
// (the other seven may hold anything). spread: 64 values of scratch.
__aicore__ inline void MakeNegativeRate(const Tile& negRate, const Tile& aLog, const Tile& spread) {
    AscendC::Brcb(spread, aLog, 1, AscendC::BrcbRepeatParams(1, kRepeatBlocks));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(negRate, spread, static_cast<uint64_t>(kBlockFloats), 1, ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(negRate, negRate, -1.0f, static_cast<uint64_t>(kBlockFloats), 1,
                  ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
}

// tile = numerator / (1 + exp(tile)), the sigmoid of -tile times a constant. Safe at both ends:
// exp overflows to infinity and the quotient to zero, or exp vanishes and the quotient is exact.
template <int32_t kWidth = 128>
__aicore__ inline void ScaledSigmoidOfNegative(const Tile& tile, const Tile& numerator,
                                               int32_t rows) {
    TileExp<kWidth>(tile, tile, rows);
    TileAdds<kWidth>(tile, tile, 1.0f, rows);
    TileDivide<kWidth>(tile, numerator, tile, rows);
}

// tile = lower_bound * sigmoid(exp(a_log) * (raw + dt_bias)) times the factor folded into `bound`,
// a block of eight equal values (lower_bound * log2(e) for gk in units of log2). raw may be tile.
// Rows from `rows` to 64 become zero: pad tokens neither decay nor count.
__aicore__ inline void ActivateSafeGate(const Tile& tile, const Tile& raw, const Tile& dtBias,
                                        bool hasDtBias, const Tile& negRate, const Tile& bound,
                                        int32_t rows) {
    if (hasDtBias) {
        RowAdd(tile, raw, dtBias, rows);
        TileScale(tile, tile, negRate, rows);
    } else {
        TileScale(tile, raw, negRate, rows);
    }
    ScaledSigmoidOfNegative(tile, bound, rows);
    ClearRows(tile, rows, 64);
}

// The scans work on eight blocks of eight rows side by side: one instruction per column half does
// one step of all eight blocks, seven steps, then the blocks are joined in seven more. Blocks of
// sixteen rows would be 256 blocks of 32 B apart, one more than a repeat stride can say.
constexpr int32_t kScanRows = 8;

// tile[r] = sum of tile[0..r], 64 rows.
__aicore__ inline void CumulativeSum(const Tile& tile) {
    const uint8_t blockStride = static_cast<uint8_t>(kScanRows * RowBlocks<128>());
    const AscendC::BinaryRepeatParams sideBySide(1, 1, 1, blockStride, blockStride, blockStride);
    for (int32_t row = 1; row < kScanRows; ++row) {
        for (int32_t column = 0; column < 128; column += kLanes) {
            AscendC::Add(tile[row * 128 + column], tile[row * 128 + column],
                         tile[(row - 1) * 128 + column], kFullMask, 64 / kScanRows, sideBySide);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    for (int32_t row = kScanRows; row < 64; row += kScanRows) {
        RowAdd(tile[row * 128], tile[row * 128], tile[(row - 1) * 128], kScanRows);
    }
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_GATE_H
