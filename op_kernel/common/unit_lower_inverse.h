// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// X = (I + L)^-1 for a strictly lower 64 x 64 matrix L, in fp32 on the vector unit.
//
// Right-looking elimination: step j adds -L[i][j] * X[j] to every row i > j, one MulAddDst with one
// repeat a row, row j reused by a repeat stride of zero and L[i][j] spread over a 32 B block. That
// is 63 dependent instructions of 32 repeats on average, against the 150 of about 14 that 16 x 16
// substitution and a block merge would take, with the same rounding: every element is one fp32
// chain of products in the order of j.
// The spread values of all of L would fill 128 KiB, so L is cut in panels of 16 columns.
#ifndef KDA_OP_KERNEL_COMMON_UNIT_LOWER_INVERSE_H
#define KDA_OP_KERNEL_COMMON_UNIT_LOWER_INVERSE_H

#include "vector_tile.h"

namespace kda {

// Instruction counters of the solve are kept apart under this TRACE id: its steps are a dependent
// chain and cannot all be long.
#define KDA_TRACE_SOLVE 1

struct UnitLowerInverse {
    static constexpr int32_t kPanelColumns = 16;
    static constexpr int32_t kPanelFloats = 64 * kPanelColumns;
    static constexpr int32_t kSpreadFloats = kPanelFloats * kBlockFloats;

    // x: 64 x 64, identity on entry, the inverse on return.
    // score: 64 x 64, only what is below the diagonal counts; L[i][j] = -negBeta[i] * score[i][j].
    // negBeta: [64, 8] column. panel: kPanelFloats, spread: kSpreadFloats of scratch.
    // rows: real rows; the others keep the identity's.
    __aicore__ static inline void Run(const Tile& x, const Tile& score, const Tile& negBeta,
                                      const Tile& panel, const Tile& spread, int32_t rows) {
        TRACE_START(KDA_TRACE_SOLVE);
        const int32_t paddedRows = (rows + 15) / 16 * 16;
        for (int32_t first = 0; first < paddedRows; first += kPanelColumns) {
            const int32_t panelRows = paddedRows - first;
            LoadPanel(panel, score, negBeta, first, panelRows);
            SpreadPanel(spread, panel, panelRows);
            for (int32_t column = 0; column < kPanelColumns; ++column) {
                const int32_t row = first + column;
                const int32_t below = paddedRows - row - 1;
                if (below == 0) {
                    break;
                }
                // Columns past the panel are still zero in row `row`.
                AscendC::MulAddDst(
                    x[(row + 1) * 64],
                    spread[((column + 1) * kPanelColumns + column) * kBlockFloats], x[row * 64],
                    static_cast<uint64_t>(first + kPanelColumns), static_cast<uint8_t>(below),
                    AscendC::BinaryRepeatParams(1, 0, 1, kRepeatBlocks, kPanelColumns, 0));
                AscendC::PipeBarrier<PIPE_V>();
            }
        }
        TRACE_STOP(KDA_TRACE_SOLVE);
    }

private:
    // panel[i][c] = negBeta[first+i] * score[first+i][first+c]; a repeat takes one 32 B block from
    // each of eight rows.
    __aicore__ static inline void LoadPanel(const Tile& panel, const Tile& score,
                                            const Tile& negBeta, int32_t first, int32_t panelRows) {
        const uint8_t panelBlocks = kPanelColumns / kBlockFloats;
        for (int32_t block = 0; block < panelBlocks; ++block) {
            AscendC::Mul(
                panel[block * kBlockFloats], score[first * 64 + first + block * kBlockFloats],
                negBeta[first * kBlockFloats], kFullMask,
                static_cast<uint8_t>(panelRows / kRepeatBlocks),
                AscendC::BinaryRepeatParams(panelBlocks, 64 / kBlockFloats, 1,
                                            panelBlocks * kRepeatBlocks, 64, kRepeatBlocks));
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ static inline void SpreadPanel(const Tile& spread, const Tile& panel,
                                              int32_t panelRows) {
        SpreadColumn(spread, panel, panelRows * kPanelColumns);
    }
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_UNIT_LOWER_INVERSE_H
