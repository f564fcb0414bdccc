// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The vector cores' part of the pairs inside diagonal blocks where they go by the levels of
// common/level_decay.h. With F the factors of a level, a the row operands q F and
// beta k F, c the column operand k F, and S the part of a score's gradient at the pairs of that
// level, the AIC delivers
//   Tq = S_q c by rows,   Tk = S_k c by rows of upper halves,   Tc = S_q^T a_q + S_k^T a_k by rows
//   of lower halves,
// Tk and Tc in one tile, as a row is in one half only. For the same reason beta k F and k F are one
// operand. Like everything else about pairs, dgk takes both of its sides from the rounded operands.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LEVELS_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LEVELS_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_buffers.h"
#include "chunk_kda_bwd_finalize_shared.h"
#include "common/level_decay.h"

namespace kda {
namespace bwd_finalize {

// The rows of all upper or all lower halves of a level among `rows` rows (a multiple of 16), 64
// channels wide. One instruction takes a whole half at the widest level, and at the others the rows
// that have the same place in their half.
class HalfRows {
public:
    __aicore__ inline HalfRows(int32_t level, bool upper, int32_t rows) {
        const int32_t half = LevelHalf(level);
        const bool whole = 2 * half == kBlockRows;
        first_ = upper ? half : 0;
        runs_ = whole ? rows / kBlockRows : half;
        runRows_ = whole ? kBlockRows : 1;
        repeats_ = static_cast<uint8_t>(whole ? half : rows / (2 * half));
        rowStep_ = static_cast<uint8_t>(whole ? 1 : 2 * half);
    }

    // dst += a * b
    __aicore__ inline void MulAdd(const Tile& dst, const Tile& a, const Tile& b) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::MulAddDst(dst[at], a[at], b[at], kFullMask, repeats_, Params());
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    __aicore__ inline void Mul(const Tile& dst, const Tile& a, const Tile& b) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::Mul(dst[at], a[at], b[at], kFullMask, repeats_, Params());
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    // No barrier.
    __aicore__ inline void Add(const Tile& dst, const Tile& a, const Tile& b) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::Add(dst[at], a[at], b[at], kFullMask, repeats_, Params());
        }
    }
    // No barrier.
    __aicore__ inline void Sub(const Tile& dst, const Tile& a, const Tile& b) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::Sub(dst[at], a[at], b[at], kFullMask, repeats_, Params());
        }
    }
    // dst rows *= column, one value a row spread over a block.
    __aicore__ inline void ScaleByColumn(const Tile& dst, const Tile& column) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::Mul(dst[at], dst[at], column[RowOf(run) * kBlockFloats], kFullMask, repeats_,
                         AscendC::BinaryRepeatParams(1, 1, 0, Stride(), Stride(), rowStep_));
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    // No barrier.
    template <typename T>
    __aicore__ inline void ToFloat(const Tile& dst, const AscendC::LocalTensor<T>& src) const {
        for (int32_t run = 0; run < runs_; ++run) {
            const int32_t at = RowOf(run) * kChannels;
            AscendC::Cast(dst[at], src[at], AscendC::RoundMode::CAST_NONE, kFullMask, repeats_,
                          AscendC::UnaryRepeatParams(1, 1, Stride(), Stride() / 2));
        }
    }

private:
    __aicore__ inline int32_t RowOf(int32_t run) const { return first_ + run * runRows_; }
    __aicore__ inline uint8_t Stride() const {
        return static_cast<uint8_t>(rowStep_ * RowBlocks<kChannels>());
    }
    __aicore__ inline AscendC::BinaryRepeatParams Params() const {
        return AscendC::BinaryRepeatParams(1, 1, 1, Stride(), Stride(), Stride());
    }

    int32_t first_;
    int32_t runs_;
    int32_t runRows_;  // from one run to the next
    uint8_t repeats_;
    uint8_t rowStep_;  // from one repeat to the next
};

// T: as in Vector.
template <typename T>
class Levels {
public:
    __aicore__ inline Levels(const SlotRing& slots, VectorBuffers& buffers)
        : slots_(slots), b_(buffers) {}

    // V1: the operands of all levels, from gk in units of log2 (in nats afterwards), k and q. Rows
    // behind the end of a short chunk become zero up to the end of their block, as the AIC
    // multiplies whole blocks. Work tiles 0, 2 and 3 are scratch.
    __aicore__ inline void EmitRows(int64_t step, const Tile& gk, const Tile& key,
                                    const Tile& query, int32_t rows) {
        const int32_t padded = Padded(rows);
        const Tile factor = b_.Work(0);
        const Tile product = b_.Work(2);
        const Tile keyProduct = b_.Work(3);
        PrepareExponents(gk, kLn2, rows);
        for (int32_t level = 0; level < kLevels; ++level) {
            LevelExponents<kChannels>(factor, gk, level, padded);
            TileExp<kChannels>(factor, factor, padded);
            TileMul<kChannels>(product, query, factor, padded);
            EmitRow(step, Slot::kLevelQuery + level * Slot::kLevelBytes, product, rows);
            TileMul<kChannels>(keyProduct, key, factor, padded);
            HalfRows(level, true, padded).ScaleByColumn(keyProduct, b_.BetaColumn());
            EmitRow(step, Slot::kLevelKey + level * Slot::kLevelBytes, keyProduct, rows);
        }
    }

    // V1, V3: of this AIV's rows of a score's gradient, whose fp32 tiles high and low hold what
    // goes to the AIC as two numbers of T: their diagonal blocks, at the pairs of each level. Zero
    // where the chunk has no rows. Work tiles 2 and 3 are scratch.
    __aicore__ inline void EmitScores(int64_t step, int64_t area, const Tile& high, const Tile& low,
                                      int32_t rows) {
        const Tile strips = b_.Work(2);
        const Tile masked = b_.Work(3);
        AscendC::Duplicate(strips, 0.0f, kFullMask, 2 * kStripFloats / kLanes, 1, kRepeatBlocks);
        AscendC::PipeBarrier<PIPE_V>();
        for (int32_t block = 0; block * kBlockRows < rows; ++block) {
            const int32_t first = block * kBlockRows;
            const int32_t column = b_.SubBlock() * kStripRows + first;
            const uint8_t count = static_cast<uint8_t>(RowsOfBlock(block, rows));
            const int32_t from = first * kChunkRows + column;
            CopyBlock(strips[first * kBlockRows], high[from], count);
            CopyBlock(strips[kStripFloats + first * kBlockRows], low[from], count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        for (int32_t level = 0; level < kLevels; ++level) {
            for (int32_t part = 0; part < 2; ++part) {
                AscendC::Select(masked[(2 * level + part) * kStripFloats], b_.LevelMask(level),
                                strips[part * kStripFloats], 0.0f,
                                AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, kFullMask,
                                kStripFloats / kLanes, Contiguous());
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
        auto out = b_.AllocOut<T>();
        const int32_t strip = 2 * kLevels;
        ToIo<kLanes>(out, masked, strip * kStripFloats / kLanes);
        b_.StoreOut(slots_.Area<T>(step, area)[b_.SubBlock() * kStripFloats], out, strip,
                    kStripFloats, 2 * kStripFloats);
    }

    // The tiles that AddTerms works on. operand and rowSum: scratch.
    struct Terms {
        Tile dQuery;
        Tile dKey;
        Tile dGate;
        Tile factor;
        Tile operand;
        Tile rowSum;
    };

    // V4: what the levels add to dq, dk and dgk, from gk as it came. rowSum ends up with the part
    // of dk that still lacks its beta, and whose products with k belong to dbeta.
    __aicore__ inline void AddTerms(int64_t step, const Tile& gk, float gateToNats, const Terms& t,
                                    int32_t rows) {
        const int32_t padded = Padded(rows);
        LoadOperand(step, Slot::kLevelQuery, rows);
        PrepareExponents(gk, gateToNats, rows);
        ClearRows<kChannels>(t.rowSum, 0, padded);
        for (int32_t level = 0; level < kLevels; ++level) {
            const HalfRows upper(level, true, padded);
            const HalfRows lower(level, false, padded);
            const int64_t operandAt = level * Slot::kLevelBytes;
            const int64_t resultAt = level * Slot::kLevelResultBytes;
            LoadResult(step, Slot::kLevelQueryRows + resultAt, rows);
            LoadOperand(step, Slot::kLevelKey + operandAt, rows);
            LevelExponents<kChannels>(t.factor, gk, level, padded);
            TileExp<kChannels>(t.factor, t.factor, padded);
            auto operand = b_.TakeHalf<T>();
            upper.ToFloat(t.operand, operand);
            b_.FreeHalf(operand);
            Tile result = b_.TakeFull();
            upper.MulAdd(t.dQuery, t.factor, result);
            upper.MulAdd(t.dGate, t.operand, result);
            b_.FreeFull(result);

            LoadResult(step, Slot::kLevelKeyRows + resultAt, rows);
            if (level + 1 < kLevels) {
                LoadOperand(step, Slot::kLevelQuery + operandAt + Slot::kLevelBytes, rows);
            }
            operand = b_.TakeHalf<T>();
            ToFloat<kChannels>(t.operand, operand, padded);
            b_.FreeHalf(operand);
            result = b_.TakeFull();
            upper.MulAdd(t.dGate, t.operand, result);
            lower.Mul(t.operand, t.operand, result);
            lower.Sub(t.dGate, t.dGate, t.operand);
            TileMul<kChannels>(result, result, t.factor, padded);
            upper.Add(t.rowSum, t.rowSum, result);
            lower.Add(t.dKey, t.dKey, result);
            b_.FreeFull(result);
        }
    }

private:
    static constexpr int32_t kStripRows = kChunkRows / 2;  // of one AIV
    static constexpr int32_t kStripFloats = kStripRows * kBlockRows;

    __aicore__ static inline int32_t Padded(int32_t rows) {
        return (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
    }

    // gk times a factor, with its last row in place of the rows that are missing in its block.
    __aicore__ static inline void PrepareExponents(const Tile& gk, float factor, int32_t rows) {
        TileMuls<kChannels>(gk, gk, factor, rows);
        const int32_t missing = Padded(rows) - rows;
        if (missing > 0) {
            AscendC::Adds(gk[rows * kChannels], gk[(rows - 1) * kChannels], 0.0f, kFullMask,
                          static_cast<uint8_t>(missing),
                          AscendC::UnaryRepeatParams(1, 1, kRepeatBlocks, 0));
            AscendC::PipeBarrier<PIPE_V>();
        }
    }

    __aicore__ inline void EmitRow(int64_t step, int64_t area, const Tile& tile, int32_t rows) {
        const int32_t padded = Padded(rows);
        ClearRows<kChannels>(tile, rows, padded);
        auto out = b_.AllocOut<T>();
        ToIo<kChannels>(out, tile, padded);
        b_.StoreOut(slots_.Area<T>(step, area)[b_.FirstChannel()], out, padded, kChannels, kKeyDim);
    }

    // A 16 x 16 block of a 64-wide tile, to rows without gaps. No barrier.
    __aicore__ static inline void CopyBlock(const Tile& dst, const Tile& src, uint8_t rows) {
        AscendC::Adds(
            dst, src, 0.0f, static_cast<uint64_t>(kBlockRows), rows,
            AscendC::UnaryRepeatParams(1, 1, kBlockRows / kBlockFloats, kChunkRows / kBlockFloats));
    }

    __aicore__ inline void LoadOperand(int64_t step, int64_t area, int32_t rows) {
        b_.LoadHalf(slots_.Area<T>(step, area)[b_.FirstChannel()], Padded(rows), kKeyDim);
    }
    __aicore__ inline void LoadResult(int64_t step, int64_t area, int32_t rows) {
        b_.LoadFull(slots_.Area<float>(step, area)[b_.FirstChannel()], rows, kKeyDim);
    }

    const SlotRing& slots_;
    VectorBuffers& b_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_LEVELS_H
