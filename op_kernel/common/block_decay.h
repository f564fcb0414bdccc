// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Decay factors of a chunk under a bounded gate, in row blocks of 16. The exponent gk falls by up
// to 454 over 64 rows at lower_bound -5 (in units of log2), so 2^gk and 2^-gk must never exist
// apart. Within a block it falls by at most 15 times the bound. With half of that as a shift,
//   ref_I = gk at the first row of block I - shift,   shift = round(7.5 |lower_bound| log2(e)),
//   P_i = 2^(gk_i - ref_I),   N_i = 2^(ref_I - gk_i) = 1 / P_i
// stay within 2^+-54.2, and everything else is P or N times a row vector that is constant over a
// block. A row's factors depend on that row and on its block's first one: nothing that comes later
// can reach a bit of an earlier row, as a reference in the middle of the block would let it.
// Row blocks past the end of a tail chunk need no special case: pad rows have gate zero, so gk
// stays at gk_last there.
#ifndef KDA_OP_KERNEL_COMMON_BLOCK_DECAY_H
#define KDA_OP_KERNEL_COMMON_BLOCK_DECAY_H

#include "vector_tile.h"

namespace kda {

constexpr int32_t kBlockRows = 16;
constexpr int32_t kRowBlocks = 4;

// Row vectors of 128 values that belong to a chunk, one after the other.
struct DecayVectors {
    static constexpr int32_t kReference = 0;     // 4 rows: ref_I
    static constexpr int32_t kReferencePow = 4;  // 4 rows: 2^ref_I
    static constexpr int32_t kStepPow = 8;       // 3 rows: 2^(ref_(I+1) - ref_I)
    static constexpr int32_t kLastPow = 11;      // 4 rows: 2^(gk_last - ref_I)
    static constexpr int32_t kRows = 15;
    static constexpr int32_t kFloats = kRows * 128;

    __aicore__ static inline Tile At(const Tile& vectors, int32_t row) {
        return vectors[row * 128];
    }
};

// Fills DecayVectors from gk (64 rows, pad rows hold gk_last). gateFactor: 2^x is exp(x gateFactor)
// for x in the unit of gk and of the shift.
__aicore__ inline void MakeDecayVectors(const Tile& vectors, const Tile& gk, float shift,
                                        float gateFactor) {
    const Tile reference = DecayVectors::At(vectors, DecayVectors::kReference);
    for (int32_t block = 0; block < kRowBlocks; ++block) {
        AscendC::Adds(reference[block * 128], gk[block * kBlockRows * 128], -shift, kFullMask,
                      TileRepeats<128>(1), ContiguousUnary());
    }
    AscendC::PipeBarrier<PIPE_V>();
    const Tile referencePow = DecayVectors::At(vectors, DecayVectors::kReferencePow);
    const Tile stepPow = DecayVectors::At(vectors, DecayVectors::kStepPow);
    const Tile lastPow = DecayVectors::At(vectors, DecayVectors::kLastPow);
    AscendC::Adds(referencePow, reference, 0.0f, kFullMask, TileRepeats<128>(kRowBlocks),
                  ContiguousUnary());
    AscendC::Sub(stepPow, reference[128], reference, kFullMask, TileRepeats<128>(kRowBlocks - 1),
                 Contiguous());
    for (int32_t column = 0; column < 128; column += kLanes) {
        AscendC::Sub(lastPow[column], gk[63 * 128 + column], reference[column], kFullMask,
                     kRowBlocks,
                     AscendC::BinaryRepeatParams(1, 1, 1, RowBlocks<128>(), 0, RowBlocks<128>()));
    }
    AscendC::PipeBarrier<PIPE_V>();
    const int32_t powRows = DecayVectors::kRows - DecayVectors::kReferencePow;
    TileMuls(referencePow, referencePow, gateFactor, powRows);
    TileExp(referencePow, referencePow, powRows);
}

// factorP = P: one exponential a tile. gk is left alone, unless factorP is the same tile.
__aicore__ inline void MakeBlockFactorP(const Tile& factorP, const Tile& gk, const Tile& vectors,
                                        float gateFactor) {
    const Tile reference = DecayVectors::At(vectors, DecayVectors::kReference);
    for (int32_t block = 0; block < kRowBlocks; ++block) {
        const int32_t first = block * kBlockRows * 128;
        RowSub(factorP[first], gk[first], reference[block * 128], kBlockRows);
    }
    TileMuls(factorP, factorP, gateFactor, 64);
    TileExp(factorP, factorP, 64);
}

// dst rows of block I = src rows of block I * vectors[I], for `blocks` blocks; vectors: the 128
// values of the first of those blocks, and the following ones behind it.
__aicore__ inline void BlockRowMul(const Tile& dst, const Tile& src, const Tile& vectors,
                                   int32_t blocks) {
    for (int32_t block = 0; block < blocks; ++block) {
        const int32_t first = block * kBlockRows * 128;
        RowMul(dst[first], src[first], vectors[block * 128], kBlockRows);
    }
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_BLOCK_DECAY_H
