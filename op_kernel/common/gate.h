// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// From the raw gate to gk: activation, then the cumulative sum down the rows of a chunk.
// Tiles are 64 x 128 fp32, one AIV's own.
#ifndef KDA_OP_KERNEL_COMMON_GATE_H
#define KDA_OP_KERNEL_COMMON_GATE_H

#include "vector_tile.h"

namespace kda {

// negRate = -exp(a_log) times a factor in all eight values of a block, from a block that holds
// a_log in value 0 (the other seven may hold anything). spread: 64 values of scratch.
__aicore__ inline void MakeNegativeRate(const Tile& negRate, const Tile& aLog, const Tile& spread,
                                        float factor = 1.0f) {
    AscendC::Brcb(spread, aLog, 1, AscendC::BrcbRepeatParams(1, kRepeatBlocks));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(negRate, spread, static_cast<uint64_t>(kBlockFloats), 1, ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(negRate, negRate, -factor, static_cast<uint64_t>(kBlockFloats), 1,
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

// softplus(x) = max(x, 0) + ln(1 + y) with y = exp(-|x|). Where y vanishes, ln(1 + y) as it stands
// keeps no digit of it, and that is where a decay is weak. It is 2 atanh(z) with z = y / (2 + y) at
// most 1/3, and so z times a polynomial in z^2: right to 4e-9 of itself, whatever y.
struct Softplus {
    // Constants that are blocks of eight equal values, behind each other.
    static constexpr int32_t kConstantFloats = 3 * kBlockFloats;

    // Once a core. No barrier.
    __aicore__ static inline void FillConstants(const Tile& constants) {
        FillBlock(constants, 2.0f);
        FillBlock(constants[kBlockFloats], 0.66666317f);
        FillBlock(constants[2 * kBlockFloats], 0.4002491f);
    }

    // tile = softplus(tile); y, z and sum are scratch of as many rows.
    template <int32_t kWidth = 128>
    __aicore__ static inline void Run(const Tile& tile, const Tile& y, const Tile& z,
                                      const Tile& sum, const Tile& constants, int32_t rows) {
        AscendC::Abs(y, tile, kFullMask, TileRepeats<kWidth>(rows), ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileMuls<kWidth>(y, y, -1.0f, rows);
        TileExp<kWidth>(y, y, rows);
        TileAdds<kWidth>(z, y, 2.0f, rows);
        AscendC::Maxs(tile, tile, 0.0f, kFullMask, TileRepeats<kWidth>(rows), ContiguousUnary());
        TileDiv<kWidth>(z, y, z, rows);
        AscendC::PipeBarrier<PIPE_V>();
        const Tile& square = y;
        TileMul<kWidth>(square, z, z, rows);
        TileMuls<kWidth>(sum, square, 0.28178334f, rows);
        TileAdds<kWidth>(sum, sum, 0.279606f, rows);
        for (int32_t power = 2; power >= 0; --power) {
            AscendC::FusedMulAdd(
                sum, square, constants[power * kBlockFloats], kFullMask, TileRepeats<kWidth>(rows),
                AscendC::BinaryRepeatParams(1, 1, 0, kRepeatBlocks, kRepeatBlocks, 0));
            AscendC::PipeBarrier<PIPE_V>();
        }
        TileMulAdd<kWidth>(tile, sum, z, rows);
    }
};

// The scans work on eight blocks of eight rows side by side: one instruction per column half does
// one step of all eight blocks, seven steps, then the blocks are joined in seven more. Blocks of
// sixteen rows would be 256 blocks of 32 B apart, one more than a repeat stride can say.
constexpr int32_t kScanRows = 8;

// tile[r] = sum from the first row of r's block of eight to r, 64 rows.
__aicore__ inline void ScanBlocks(const Tile& tile) {
    const uint8_t blockStride = static_cast<uint8_t>(kScanRows * RowBlocks<128>());
    const AscendC::BinaryRepeatParams sideBySide(1, 1, 1, blockStride, blockStride, blockStride);
    for (int32_t row = 1; row < kScanRows; ++row) {
        for (int32_t column = 0; column < 128; column += kLanes) {
            AscendC::Add(tile[row * 128 + column], tile[row * 128 + column],
                         tile[(row - 1) * 128 + column], kFullMask, 64 / kScanRows, sideBySide);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
}

// From sums that start anew every `rows` rows to sums that start anew every `end` rows.
__aicore__ inline void JoinBlocks(const Tile& tile, int32_t rows, int32_t end) {
    for (int32_t row = rows; row < 64; row += rows) {
        if (row % end != 0) {
            RowAdd(tile[row * 128], tile[row * 128], tile[(row - 1) * 128], rows);
        }
    }
}

// tile[r] = sum of tile[0..r], 64 rows.
__aicore__ inline void CumulativeSum(const Tile& tile) {
    ScanBlocks(tile);
    JoinBlocks(tile, kScanRows, 64);
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_GATE_H
