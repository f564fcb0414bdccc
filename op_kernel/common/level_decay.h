// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Decay factors of a chunk under a gate without a bound, in row blocks of 16. No reference in the
// middle of a block keeps both factors of a pair in range when one token may decay by any amount,
// so every factor here runs from a row to a boundary between the two rows of the pair, forward on
// one side and backward on the other: both are at most one for any gate that only decays, and none
// looks at a row behind its pair.
//   Left of the diagonal the boundary is the start of the row block: the row operand decays from
//   there, the column operand up to the end of its own block and on over the blocks between.
//   Inside a diagonal block there are four levels, halves of s = 8, 4, 2 and 1 rows. Level s takes
//   the pairs of rows whose common group of 2 s rows the boundary between its halves parts. A row
//   of an upper half is a row operand there, one of a lower half a column operand, so one factor a
//   row is all a level needs:
//     F_r = 2^(gk_r - gk_m) in an upper half, 2^(gk_m - gk_r) in a lower one,
//   m the last row of the lower half. The product of (x F) with (k F) is right at the pairs of that
//   level; a mask keeps them. The masks of the four levels and the diagonal make up the triangle.
#ifndef KDA_OP_KERNEL_COMMON_LEVEL_DECAY_H
#define KDA_OP_KERNEL_COMMON_LEVEL_DECAY_H

#include "block_decay.h"
#include "vector_tile.h"

namespace kda {

constexpr int32_t kLevels = 4;

// Rows of a half at a level: 8, 4, 2, 1.
__aicore__ constexpr int32_t LevelHalf(int32_t level) {
    return (kBlockRows / 2) >> level;
}

// dst = the exponents of F at a level, in the unit of `sums`: gk itself, or sums of the gate that
// start anew in every block, which lose less. `rows`: a multiple of 16; rows past the end of a tail
// must hold the last real one. dst and sums are different tiles.
template <int32_t kWidth>
__aicore__ inline void LevelExponents(const Tile& dst, const Tile& sums, int32_t level,
                                      int32_t rows) {
    const int32_t half = LevelHalf(level);
    // One instruction does the same row of all groups, unless they lie too far apart for a repeat
    // stride: then it does one half of one group.
    const bool byRow = 2 * half * RowBlocks<kWidth>() <= 255;
    const int32_t groups = rows / (2 * half);
    const int32_t count = byRow ? 2 * half : 2 * groups;
    const uint8_t repeats = static_cast<uint8_t>(byRow ? groups : half);
    const uint8_t stride = static_cast<uint8_t>((byRow ? 2 * half : 1) * RowBlocks<kWidth>());
    const uint8_t middleStride = byRow ? stride : 0;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t row = byRow ? i : i * half;
        const int32_t middle = byRow ? half - 1 : i / 2 * 2 * half + half - 1;
        const bool upper = byRow ? i >= half : i % 2 == 1;
        for (int32_t column = 0; column < kWidth; column += kLanes) {
            const Tile own = sums[row * kWidth + column];
            const Tile boundary = sums[middle * kWidth + column];
            if (upper) {
                AscendC::Sub(dst[row * kWidth + column], own, boundary, kFullMask, repeats,
                             AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, middleStride));
            } else {
                AscendC::Sub(dst[row * kWidth + column], boundary, own, kFullMask, repeats,
                             AscendC::BinaryRepeatParams(1, 1, 1, stride, middleStride, stride));
            }
        }
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// dst = the exponents of a column operand's decay up to the end of its own block. As above.
template <int32_t kWidth>
__aicore__ inline void BlockEndExponents(const Tile& dst, const Tile& sums, int32_t rows) {
    for (int32_t first = 0; first < rows; first += kBlockRows) {
        for (int32_t column = 0; column < kWidth; column += kLanes) {
            AscendC::Sub(
                dst[first * kWidth + column], sums[(first + kBlockRows - 1) * kWidth + column],
                sums[first * kWidth + column], kFullMask, static_cast<uint8_t>(kBlockRows),
                AscendC::BinaryRepeatParams(1, 1, 1, RowBlocks<kWidth>(), 0, RowBlocks<kWidth>()));
        }
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// Fills the rows of DecayVectors that hold with ref_I = gk at the end of the block before:
//   kReferencePow, four rows: 2^ref_I;   kStepPow, four rows: 2^(ref_(I+1) - ref_I).
// sums: those of each block, 64 rows of 128 channels, in nats.
__aicore__ inline void MakeLevelVectors(const Tile& vectors, const Tile& sums) {
    const Tile reference = DecayVectors::At(vectors, DecayVectors::kReferencePow);
    const Tile step = DecayVectors::At(vectors, DecayVectors::kStepPow);
    AscendC::Duplicate(reference, 0.0f, kFullMask, TileRepeats<128>(1), 1, kRepeatBlocks);
    for (int32_t block = 0; block < kRowBlocks; ++block) {
        AscendC::Adds(step[block * 128], sums[(block * kBlockRows + kBlockRows - 1) * 128], 0.0f,
                      kFullMask, TileRepeats<128>(1), ContiguousUnary());
    }
    AscendC::PipeBarrier<PIPE_V>();
    for (int32_t block = 1; block < kRowBlocks; ++block) {
        TileAdd(reference[block * 128], reference[(block - 1) * 128], step[(block - 1) * 128], 1);
    }
    TileExp(reference, reference, 2 * kRowBlocks);
}

// The pairs of each level, as masks of the four diagonal blocks of a chunk one below the other:
// tiles of 64 rows and 16 columns, four rows a repeat.
struct LevelMasks {
    static constexpr int32_t kBytes = 64 * kBlockRows / 8;  // of one mask
    static constexpr int32_t kScratchFloats = 4 * 64 + 64 * kBlockRows;

    // Once a core: kLevels masks, one behind the other. No barrier at the end.
    __aicore__ static inline void Make(const AscendC::LocalTensor<uint8_t>& masks,
                                       const Tile& scratch) {
        Tile place = scratch;  // of a row, and of a column, in its block
        const Tile half = scratch[64];
        const Tile group = scratch[2 * 64];
        const Tile partner = scratch[3 * 64];
        const Tile rowOf = scratch[4 * 64];
        AscendC::CreateVecIndex(place, 0.0f, static_cast<uint32_t>(kLanes));
        AscendC::PipeBarrier<PIPE_V>();
        FloorDivide(half, place, kBlockRows);
        TileMuls<64>(half, half, static_cast<float>(kBlockRows), 1);
        TileSub<64>(place, place, half, 1);
        for (int32_t level = 0; level < kLevels; ++level) {
            // Halves are counted from 0. A pair's row lies in the half behind its column's, whose
            // number is even. Odd columns ask for a half that does not exist.
            FloorDivide(half, place, LevelHalf(level));
            FloorDivide(group, place, 2 * LevelHalf(level));
            TileMuls<64>(group, group, -2.0f, 1);
            TileAdd<64>(partner, half, group, 1);
            TileMuls<64>(partner, partner, kNowhere, 1);
            TileAdd<64>(partner, partner, half, 1);
            TileAdds<64>(partner, partner, 1.0f, 1);
            CompareRows(masks[level * kBytes], partner, half, rowOf);
        }
    }

private:
    static constexpr float kNowhere = 1000.0f;

    // dst = floor(src / divisor), 64 values.
    __aicore__ static inline void FloorDivide(const Tile& dst, const Tile& src, int32_t divisor) {
        TileMuls<64>(dst, src, 1.0f / static_cast<float>(divisor), 1);
        const AscendC::LocalTensor<int32_t> whole = dst.ReinterpretCast<int32_t>();
        AscendC::Cast(whole, dst, AscendC::RoundMode::CAST_FLOOR, kFullMask, 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(dst, whole, AscendC::RoundMode::CAST_NONE, kFullMask, 1, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
    }

    // Bit (r, c) = (columns[c] == rows[r]). Each row's value fills the two 32 B blocks of a row.
    // No barrier at the end.
    __aicore__ static inline void CompareRows(const AscendC::LocalTensor<uint8_t>& mask,
                                              const Tile& columns, const Tile& rows,
                                              const Tile& rowOf) {
        const uint16_t blocks = RowBlocks<kBlockRows>();
        for (int32_t block = 0; block < blocks; ++block) {
            AscendC::Brcb(rowOf[block * kBlockFloats], rows, kRepeatBlocks,
                          AscendC::BrcbRepeatParams(blocks, blocks * kRepeatBlocks));
        }
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Compare(mask, columns, rowOf, AscendC::CMPMODE::EQ, kFullMask,
                         static_cast<uint8_t>(64 * kBlockRows / kLanes),
                         AscendC::BinaryRepeatParams(1, 1, 1, kRepeatBlocks, 0, kRepeatBlocks));
    }
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_LEVEL_DECAY_H
