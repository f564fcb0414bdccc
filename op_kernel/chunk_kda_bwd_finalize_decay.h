// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Decay factors of 64 channels of a chunk, as bwd_finalize needs them: like block_decay.h, but the
// reference of row block I is gk at its row 8 (at the last row of a shorter block), rounded to a
// whole number. Then every factor
// 2^(ref_I - ref_J) is a power of two, and a bf16 operand times it is again exactly a bf16 number
// (a float16 one, too, down to 2^-14, where that type's digits begin to go):
// the rounded k_j N_j that one row block multiplies is the one that every other row block
// multiplies, too (see chunk_kda_bwd_finalize.cpp for why that matters). P and N stay within
// 2^+-58.2 under a bounded gate.
// By levels, rows and columns have references of their own: a row block's rows start from gk
// at the last row of the block before (zero for the first block), its columns run to gk at its own
// last row, both rounded likewise. These factors are for pairs of different row blocks only.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_DECAY_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_DECAY_H

#include "kernel_operator.h"

#include "common/block_decay.h"

namespace kda {
namespace bwd_finalize {

constexpr int32_t kChannels = 64;  // of one AIV
constexpr int32_t kReferenceRow = 8;

// Rows of block `block` in a chunk of `rows` rows.
__aicore__ inline int32_t RowsOfBlock(int32_t block, int32_t rows) {
    const int32_t left = rows - block * kBlockRows;
    return left < kBlockRows ? left : kBlockRows;
}

// Rows of block I *= vectors[I], a row vector of 64 channels each.
__aicore__ inline void BlockRowMul64(const Tile& dst, const Tile& src, const Tile& vectors,
                                     int32_t rows) {
    for (int32_t block = 0; block * kBlockRows < rows; ++block) {
        const int32_t first = block * kBlockRows * kChannels;
        RowMul<kChannels>(dst[first], src[first], vectors[block * kChannels],
                          RowsOfBlock(block, rows));
    }
}

class ChannelDecay {
public:
    static constexpr int32_t kRows = 20;
    static constexpr int32_t kFloats = kRows * kChannels;

    __aicore__ inline ChannelDecay() {}
    // gk times gateToLog2 is in units of log2.
    __aicore__ inline void Init(const Tile& vectors, bool byLevels, float gateToLog2) {
        vectors_ = vectors;
        byLevels_ = byLevels;
        gateToLog2_ = gateToLog2;
    }

    // From gk, `rows` rows of 64 channels, to units of log2.
    __aicore__ inline void ToLog2(const Tile& gk, int32_t rows) const {
        if (gateToLog2_ != 1.0f) {
            TileMuls<kChannels>(gk, gk, gateToLog2_, rows);
        }
    }

    // From gk in units of log2.
    __aicore__ inline void Make(const Tile& gk, int32_t rows) {
        const int32_t blocks = (rows + kBlockRows - 1) / kBlockRows;
        const Tile last = gk[(rows - 1) * kChannels];
        const int32_t columnReference = ColumnReference(0);
        // Adding 1.5 * 2^23 leaves no bits for a fraction: round to nearest, |gk| < 2^22.
        for (int32_t block = 0; block < blocks; ++block) {
            const int32_t row = block * kBlockRows + (byLevels_ ? kBlockRows - 1 : kReferenceRow);
            AscendC::Adds(Row(columnReference + block),
                          gk[(row < rows ? row : rows - 1) * kChannels], kRounder, kFullMask, 1,
                          ContiguousUnary());
        }
        if (byLevels_) {
            AscendC::Duplicate(Row(kReference), 0.0f, kFullMask, 1, 1, kRepeatBlocks);
        }
        AscendC::PipeBarrier<PIPE_V>();
        TileAdds<kChannels>(Row(columnReference), Row(columnReference), -kRounder, blocks);
        AscendC::Adds(Row(kReferencePow), Row(kReference), 0.0f, kFullMask,
                      static_cast<uint8_t>(blocks), ContiguousUnary());
        for (int32_t distance = 1; distance < blocks; ++distance) {
            AscendC::Sub(Row(StepRow(distance, 0)), Row(kReference + distance),
                         Row(columnReference), kFullMask, static_cast<uint8_t>(blocks - distance),
                         Contiguous());
        }
        AscendC::Sub(Row(kLastPow), last, Row(columnReference), kFullMask,
                     static_cast<uint8_t>(blocks),
                     AscendC::BinaryRepeatParams(1, 1, 1, kRepeatBlocks, 0, kRepeatBlocks));
        AscendC::Adds(Row(kLast), last, 0.0f, kFullMask, 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileMuls<kChannels>(Row(kReferencePow), Row(kReferencePow), kLn2, kRows - kReferencePow);
        TileExp<kChannels>(Row(kReferencePow), Row(kReferencePow), kRows - kReferencePow);
    }

    // dst = P = 2^(gk - rowRef)
    __aicore__ inline void MakeFactorP(const Tile& dst, const Tile& gk, int32_t rows) const {
        for (int32_t block = 0; block * kBlockRows < rows; ++block) {
            const int32_t first = block * kBlockRows * kChannels;
            RowSub<kChannels>(dst[first], gk[first], Row(kReference + block),
                              RowsOfBlock(block, rows));
        }
        TileMuls<kChannels>(dst, dst, kLn2, rows);
        TileExp<kChannels>(dst, dst, rows);
    }

    // dst = N = 2^(columnRef - gk), which is 1 / P only where both references are the same.
    __aicore__ inline void MakeFactorN(const Tile& dst, const Tile& gk, int32_t rows) const {
        for (int32_t block = 0; block * kBlockRows < rows; ++block) {
            const int32_t first = block * kBlockRows * kChannels;
            AscendC::Sub(dst[first], Row(ColumnReference(block)), gk[first], kFullMask,
                         static_cast<uint8_t>(RowsOfBlock(block, rows)),
                         AscendC::BinaryRepeatParams(1, 1, 1, kRepeatBlocks, 0, kRepeatBlocks));
        }
        AscendC::PipeBarrier<PIPE_V>();
        TileMuls<kChannels>(dst, dst, kLn2, rows);
        TileExp<kChannels>(dst, dst, rows);
    }

    // 2^rowRef_I, four row vectors: P times it is 2^gk.
    __aicore__ inline Tile ReferencePow() const { return Row(kReferencePow); }
    // 2^(gk_last - columnRef_I), four row vectors: N times it is 2^(gk_last - gk).
    __aicore__ inline Tile LastPow() const { return Row(kLastPow); }
    // 2^gk_last
    __aicore__ inline Tile Last() const { return Row(kLast); }
    // 2^(rowRef_I - columnRef_J), J < I
    __aicore__ inline Tile StepPow(int32_t blockI, int32_t blockJ) const {
        return Row(StepRow(blockI - blockJ, blockJ));
    }

private:
    static constexpr float kRounder = 12582912.0f;
    static constexpr int32_t kReference = 0;  // four rows, or five
    static constexpr int32_t kReferencePow = 5;
    static constexpr int32_t kStepPow = 9;  // distance 1: three rows, 2: two, 3: one
    static constexpr int32_t kLastPow = 15;
    static constexpr int32_t kLast = 19;

    // By levels, the end of block J is where the rows of block J + 1 start from.
    __aicore__ inline int32_t ColumnReference(int32_t block) const {
        return kReference + block + (byLevels_ ? 1 : 0);
    }
    __aicore__ static inline int32_t StepRow(int32_t distance, int32_t blockJ) {
        return kStepPow + (distance - 1) * (8 - distance) / 2 + blockJ;
    }
    __aicore__ inline Tile Row(int32_t row) const { return vectors_[row * kChannels]; }

    Tile vectors_;
    bool byLevels_ = false;
    float gateToLog2_ = 1.0f;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_DECAY_H
