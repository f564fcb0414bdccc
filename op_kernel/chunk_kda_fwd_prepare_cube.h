// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Cube half of fwd_prepare. See chunk_kda_fwd_prepare.cpp for the order of work.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_CUBE_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_CUBE_H

#include "chunk_kda_fwd_prepare_units.h"
#include "common/cube.h"

namespace kda {

// T: as in FwdPrepareBuffers.
template <typename T>
class FwdPrepareCube {
public:
    __aicore__ inline FwdPrepareCube(const ChunkKdaFwdPrepareTilingData& tiling,
                                     const FwdPrepareOperands& gm)
        : tiling_(tiling),
          gm_(gm),
          index_(tiling.geometry, gm.cuSeqlens, gm.chunkIndices),
          units_(tiling.geometry, index_, tiling.unitBytes),
          diagonalColumns_(FwdPrepareIsBounded<T>(tiling) ? kFractalRows : 0) {}

    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        l0_.Init(pipe);
        pipe.InitBuffer(scoreOperands_, 2, (kStackRows + kColumnRows) * 128 * sizeof(T));
        pipe.InitBuffer(outputOperands_, 2, (2 * 64 * 64 + 2 * 64 * 128) * sizeof(T));
    }

    __aicore__ inline void Process() {
        const int64_t rounds = units_.Rounds();
        for (int64_t round = 0; round <= rounds; ++round) {
            FwdPrepareUnit unit;
            if (round < rounds) {
                operands_.Wait();
                for (int64_t sub = 0; sub < 2; ++sub) {
                    if (units_.Find(round, sub, unit)) {
                        WriteScores(unit, units_.Space(round, sub));
                        if (diagonalColumns_ == 0) {
                            WriteLevelScores(unit, units_.Space(round, sub));
                        }
                    }
                }
                ScoreFlag::Set();
            }
            if (round > 0) {
                InverseFlag::Wait();
                for (int64_t sub = 0; sub < 2; ++sub) {
                    if (units_.Find(round - 1, sub, unit)) {
                        WriteWU(unit, units_.Space(round - 1, sub));
                    }
                }
                operands_.Release();
            }
        }
    }

private:
    using L1 = AscendC::LocalTensor<T>;
    using L0C = AscendC::LocalTensor<float>;

    static constexpr uint32_t kStackRows = 128;
    static constexpr uint32_t kColumnRows = 160;
    static constexpr uint32_t kPairRows = 32;  // q and k rows of one row block

    __aicore__ inline AscendC::GlobalTensor<T> Io(GM_ADDR base, int64_t offset) const {
        AscendC::GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer((__gm__ T*)base + offset);
        return tensor;
    }
    __aicore__ inline AscendC::GlobalTensor<float> Scores(int64_t space, int64_t part,
                                                          int64_t offset) const {
        AscendC::GlobalTensor<float> tensor;
        tensor.SetGlobalBuffer((__gm__ float*)(gm_.workspace + space + part) + offset);
        return tensor;
    }

    // Row block I: [q P; k P]_I against the columns J <= I, or J < I without a bound for the gate.
    __aicore__ inline void WriteScores(const FwdPrepareUnit& unit, int64_t space) {
        const uint32_t blocks = CeilDiv(unit.place.rows, kFractalRows);
        if (FirstColumnRow(blocks) == 0) {
            return;
        }
        L1 operands = scoreOperands_.template AllocTensor<T>();
        LoadNdToL1(operands, Io(gm_.workspace + space + FwdPrepareSpace::kRowOperands, 0),
                   kPairRows * blocks, 128, 128, kStackRows);
        LoadNdToL1(operands[kStackRows * 128],
                   Io(gm_.workspace + space + FwdPrepareSpace::kColumnOperands, 0),
                   FirstColumnRow(blocks), 128, 128, kColumnRows);
        scoreOperands_.EnQue(operands);
        operands = scoreOperands_.template DeQue<T>();
        for (uint32_t block = 0; block < blocks; ++block) {
            const uint32_t columns = kFractalRows * block + diagonalColumns_;
            if (columns == 0) {
                continue;
            }
            auto a = l0_.template AllocA<T>();
            LoadA(a, operands[block * kPairRows * Nz<T>::kC0], kPairRows, 128, kStackRows);
            auto b = l0_.template AllocB<T>();
            LoadBTransposed(b, operands[kStackRows * 128 + FirstColumnRow(block) * Nz<T>::kC0], 128,
                            columns, kColumnRows);
            L0C c = l0_.AllocC();
            l0_.Multiply(c, a, b, kPairRows, columns, 128);
            l0_.FinishC(c);
            const int64_t offset = block * kFractalRows * 64;
            StoreC(Scores(space, FwdPrepareSpace::kQueryScores, offset), c, kFractalRows, columns,
                   64, kPairRows);
            StoreC(Scores(space, FwdPrepareSpace::kKeyScores, offset), c[kFractalRows * 16],
                   kFractalRows, columns, 64, kPairRows);
            l0_.FreeC(c);
        }
        scoreOperands_.FreeTensor(operands);
    }

    // The diagonal blocks at each level: [q F; k F]_I against (k F)_I, all blocks in one tall
    // result.
    __aicore__ inline void WriteLevelScores(const FwdPrepareUnit& unit, int64_t space) {
        const uint32_t blocks = CeilDiv(unit.place.rows, kFractalRows);
        for (int64_t level = 0; level < FwdPrepareSpace::kLevelCount; ++level) {
            L1 operands = scoreOperands_.template AllocTensor<T>();
            LoadNdToL1(operands,
                       Io(gm_.workspace + space + FwdPrepareSpace::kLevelOperands +
                              level * FwdPrepareSpace::kRowOperandBytes,
                          0),
                       kPairRows * blocks, 128, 128, kStackRows);
            scoreOperands_.EnQue(operands);
            operands = scoreOperands_.template DeQue<T>();
            L0C c = l0_.AllocC();
            for (uint32_t block = 0; block < blocks; ++block) {
                const L1 pair = operands[block * kPairRows * Nz<T>::kC0];
                auto a = l0_.template AllocA<T>();
                LoadA(a, pair, kPairRows, 128, kStackRows);
                auto b = l0_.template AllocB<T>();
                LoadBTransposed(b, pair[kFractalRows * Nz<T>::kC0], 128, kFractalRows, kStackRows);
                l0_.Multiply(c[block * kPairRows * kFractalRows], a, b, kPairRows, kFractalRows,
                             128);
            }
            scoreOperands_.FreeTensor(operands);
            l0_.FinishC(c);
            StoreC(Scores(space, FwdPrepareSpace::kLevelScores, level * kStackRows * kFractalRows),
                   c, kPairRows * blocks, kFractalRows, kFractalRows);
            l0_.FreeC(c);
        }
    }

    // [w | u] = Akk diag(beta) [k 2^gk | v], one product, or one for each half of Akk diag(beta).
    __aicore__ inline void WriteWU(const FwdPrepareUnit& unit, int64_t space) {
        const uint32_t rows = static_cast<uint32_t>(unit.place.rows);
        const uint32_t padded = AlignUp(rows, kFractalRows);
        L1 operands = outputOperands_.template AllocTensor<T>();
        const L1 low = operands[64 * 64];
        const L1 right = operands[2 * 64 * 64];
        const bool isSplit = tiling_.splitInverse != 0;
        LoadNdToL1(operands, Io(gm_.workspace + space + FwdPrepareSpace::kBetaInverse, 0), rows, 64,
                   64, 64);
        if (isSplit) {
            const int64_t part = tiling_.unitBytes - FwdPrepareSpace::kBetaInverseLowBytes;
            LoadNdToL1(low, Io(gm_.workspace + space + part, 0), rows, 64, 64, 64);
        }
        LoadNdToL1(right, Io(gm_.workspace + space + FwdPrepareSpace::kDecayedKey, 0), padded, 128,
                   128, 64);
        LoadNdToL1(
            right[64 * 128],
            Io(gm_.v, ChunkIndex::RowOffset(tiling_.valueLayout, unit.place, unit.valueHead)), rows,
            128, static_cast<uint64_t>(tiling_.valueLayout.tokenStride), 64);
        outputOperands_.EnQue(operands);
        operands = outputOperands_.template DeQue<T>();
        auto a = l0_.template AllocA<T>();
        LoadA(a, operands, rows, rows, 64);
        auto b = l0_.template AllocB<T>();
        LoadB(b, right, rows, 256, 64);
        L0C c = l0_.AllocC();
        if (isSplit) {
            auto aLow = l0_.template AllocA<T>();
            LoadA(aLow, low, rows, rows, 64);
            l0_.MultiplySum(c, a, aLow, b, rows, 256, rows);
        } else {
            l0_.Multiply(c, a, b, rows, 256, rows);
        }
        outputOperands_.FreeTensor(operands);
        l0_.FinishC(c);
        const int64_t offset =
            index_.CacheOffset(unit.place, unit.valueHead, tiling_.geometry.valueHeads, 128);
        StoreC(Io(gm_.w, offset), c, rows, 128, 128);
        if (tiling_.preciseRelay != 0) {
            AscendC::GlobalTensor<float> u;
            u.SetGlobalBuffer((__gm__ float*)gm_.u + offset);
            StoreC(u, c[padded * 128], rows, 128, 128);
        } else {
            StoreC(Io(gm_.u, offset), c[padded * 128], rows, 128, 128);
        }
        l0_.FreeC(c);
    }

    // The sum of the columns of the row blocks above.
    __aicore__ inline uint32_t FirstColumnRow(uint32_t block) const {
        return kFractalRows * block * (block - 1) / 2 + diagonalColumns_ * block;
    }

    const ChunkKdaFwdPrepareTilingData& tiling_;
    const FwdPrepareOperands& gm_;
    ChunkIndex index_;
    FwdPrepareUnits units_;
    uint32_t diagonalColumns_;  // of a row block, that its scores have together with the others
    OperandRing operands_;
    CubeBuffers l0_;
    AscendC::TQue<AscendC::TPosition::A1, 2> scoreOperands_;
    AscendC::TQue<AscendC::TPosition::A1, 2> outputOperands_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_CUBE_H
