// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Element-wise work on whole tiles in UB. A tile is `rows` rows of kWidth (64 or 128) fp32 values,
// without gaps. A task belongs to one AIV as a whole: the two AIVs of a block work on different
// tasks, because column scans, row sums and the triangular solve all would have to be cut
// differently if they shared one.
//
// Every helper is one or two instructions of 16 to 128 repeats and ends with PipeBarrier<PIPE_V>,
// so the next helper may use its result; those that say so leave the barrier to what comes between
// them and the first use. Copies are not ordered by anything in here: pair them with queues or
// HardEvent flags.
#ifndef KDA_OP_KERNEL_COMMON_VECTOR_TILE_H
#define KDA_OP_KERNEL_COMMON_VECTOR_TILE_H

#include "kernel_operator.h"

namespace kda {

constexpr int32_t kLanes = 64;        // fp32 values of one repeat
constexpr int32_t kBlockFloats = 8;   // fp32 values of one 32 B block
constexpr int32_t kRepeatBlocks = 8;  // blocks of one repeat
constexpr uint64_t kFullMask = 64;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kLog2e = 1.4426950408889634f;

using Tile = AscendC::LocalTensor<float>;

// 32 B blocks of a row of that many fp32 values.
template <int32_t kWidth>
__aicore__ constexpr uint8_t RowBlocks() {
    return static_cast<uint8_t>(kWidth / kBlockFloats);
}

template <int32_t kWidth>
__aicore__ constexpr uint8_t TileRepeats(int32_t rows) {
    return static_cast<uint8_t>(rows * kWidth / kLanes);
}

// ---- tile with tile, tile with scalar ----------------------------------------------------------

__aicore__ inline AscendC::BinaryRepeatParams Contiguous() {
    return AscendC::BinaryRepeatParams(1, 1, 1, kRepeatBlocks, kRepeatBlocks, kRepeatBlocks);
}

__aicore__ inline AscendC::UnaryRepeatParams ContiguousUnary() {
    return AscendC::UnaryRepeatParams(1, 1, kRepeatBlocks, kRepeatBlocks);
}

template <int32_t kWidth = 128>
__aicore__ inline void TileAdd(const Tile& dst, const Tile& a, const Tile& b, int32_t rows) {
    AscendC::Add(dst, a, b, kFullMask, TileRepeats<kWidth>(rows), Contiguous());
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128>
__aicore__ inline void TileSub(const Tile& dst, const Tile& a, const Tile& b, int32_t rows) {
    AscendC::Sub(dst, a, b, kFullMask, TileRepeats<kWidth>(rows), Contiguous());
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128>
__aicore__ inline void TileMul(const Tile& dst, const Tile& a, const Tile& b, int32_t rows) {
    AscendC::Mul(dst, a, b, kFullMask, TileRepeats<kWidth>(rows), Contiguous());
    AscendC::PipeBarrier<PIPE_V>();
}

// dst = a / b. No barrier.
template <int32_t kWidth = 128>
__aicore__ inline void TileDiv(const Tile& dst, const Tile& a, const Tile& b, int32_t rows) {
    AscendC::Div(dst, a, b, kFullMask, TileRepeats<kWidth>(rows), Contiguous());
}

// dst += a * b
template <int32_t kWidth = 128>
__aicore__ inline void TileMulAdd(const Tile& dst, const Tile& a, const Tile& b, int32_t rows) {
    AscendC::MulAddDst(dst, a, b, kFullMask, TileRepeats<kWidth>(rows), Contiguous());
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128>
__aicore__ inline void TileMuls(const Tile& dst, const Tile& src, float factor, int32_t rows) {
    AscendC::Muls(dst, src, factor, kFullMask, TileRepeats<kWidth>(rows), ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128>
__aicore__ inline void TileAdds(const Tile& dst, const Tile& src, float term, int32_t rows) {
    AscendC::Adds(dst, src, term, kFullMask, TileRepeats<kWidth>(rows), ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128>
__aicore__ inline void TileExp(const Tile& dst, const Tile& src, int32_t rows) {
    AscendC::Exp(dst, src, kFullMask, TileRepeats<kWidth>(rows), ContiguousUnary());
    AscendC::PipeBarrier<PIPE_V>();
}

// ---- one constant, held as a 32 B block of eight equal values -----------------------------------

// dst = block / src. Division, not Reciprocal: the latter may be approximate on hardware.
template <int32_t kWidth = 128>
__aicore__ inline void TileDivide(const Tile& dst, const Tile& block, const Tile& src,
                                  int32_t rows) {
    AscendC::Div(dst, block, src, kFullMask, TileRepeats<kWidth>(rows),
                 AscendC::BinaryRepeatParams(1, 0, 1, kRepeatBlocks, 0, kRepeatBlocks));
    AscendC::PipeBarrier<PIPE_V>();
}

// dst = src * block: a scalar that was computed on the vector unit needs no trip to the scalar one.
template <int32_t kWidth = 128>
__aicore__ inline void TileScale(const Tile& dst, const Tile& src, const Tile& block,
                                 int32_t rows) {
    AscendC::Mul(dst, src, block, kFullMask, TileRepeats<kWidth>(rows),
                 AscendC::BinaryRepeatParams(1, 1, 0, kRepeatBlocks, kRepeatBlocks, 0));
    AscendC::PipeBarrier<PIPE_V>();
}

// For constants that are made before the first tile comes. No barrier.
__aicore__ inline void FillBlock(const Tile& block, float value) {
    AscendC::Duplicate(block, value, static_cast<uint64_t>(kBlockFloats), 1, 1, kRepeatBlocks);
}

// ---- tile with a row vector, used for every row
// --------------------------------------------------

template <int32_t kWidth>
__aicore__ inline AscendC::BinaryRepeatParams RowBroadcast() {
    return AscendC::BinaryRepeatParams(1, 1, 1, RowBlocks<kWidth>(), RowBlocks<kWidth>(), 0);
}

// dst[r] = src[r] * vec
template <int32_t kWidth = 128>
__aicore__ inline void RowMul(const Tile& dst, const Tile& src, const Tile& vec, int32_t rows) {
    for (int32_t column = 0; column < kWidth; column += kLanes) {
        AscendC::Mul(dst[column], src[column], vec[column], kFullMask, static_cast<uint8_t>(rows),
                     RowBroadcast<kWidth>());
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// dst[r] = src[r] + vec
template <int32_t kWidth = 128>
__aicore__ inline void RowAdd(const Tile& dst, const Tile& src, const Tile& vec, int32_t rows) {
    for (int32_t column = 0; column < kWidth; column += kLanes) {
        AscendC::Add(dst[column], src[column], vec[column], kFullMask, static_cast<uint8_t>(rows),
                     RowBroadcast<kWidth>());
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// dst[r] = src[r] - vec
template <int32_t kWidth = 128>
__aicore__ inline void RowSub(const Tile& dst, const Tile& src, const Tile& vec, int32_t rows) {
    for (int32_t column = 0; column < kWidth; column += kLanes) {
        AscendC::Sub(dst[column], src[column], vec[column], kFullMask, static_cast<uint8_t>(rows),
                     RowBroadcast<kWidth>());
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// ---- tile with a column, one value a row, spread over 32 B blocks: [rows, 8]
// ---------------------

// column[r][0..7] = values[r]; values and column hold a multiple of eight rows.
__aicore__ inline void SpreadColumn(const Tile& column, const Tile& values, int32_t rows) {
    AscendC::Brcb(column, values, static_cast<uint8_t>((rows + 7) / 8),
                  AscendC::BrcbRepeatParams(1, kRepeatBlocks));
    AscendC::PipeBarrier<PIPE_V>();
}

// dst[r] = src[r] * column[r]
template <int32_t kWidth = 128>
__aicore__ inline void ColumnMul(const Tile& dst, const Tile& src, const Tile& column,
                                 int32_t rows) {
    for (int32_t first = 0; first < kWidth; first += kLanes) {
        AscendC::Mul(
            dst[first], src[first], column, kFullMask, static_cast<uint8_t>(rows),
            AscendC::BinaryRepeatParams(1, 1, 0, RowBlocks<kWidth>(), RowBlocks<kWidth>(), 1));
    }
    AscendC::PipeBarrier<PIPE_V>();
}

// dst[r] += src[r] * column[r]. No barrier.
template <int32_t kWidth = 128>
__aicore__ inline void ColumnMulAdd(const Tile& dst, const Tile& src, const Tile& column,
                                    int32_t rows) {
    for (int32_t first = 0; first < kWidth; first += kLanes) {
        AscendC::MulAddDst(
            dst[first], src[first], column, kFullMask, static_cast<uint8_t>(rows),
            AscendC::BinaryRepeatParams(1, 1, 0, RowBlocks<kWidth>(), RowBlocks<kWidth>(), 1));
    }
}

// ---- sums
// ------------------------------------------------------------------------------------------

// sums[r] = sum of src[r][0..63] (a 64-wide tile): one value a repeat.
__aicore__ inline void RowSums64(const Tile& sums, const Tile& src, int32_t rows) {
    AscendC::WholeReduceSum<float>(sums, src, kLanes, rows, 1, 1, kRepeatBlocks);
    AscendC::PipeBarrier<PIPE_V>();
}

// sums[c] = sum over rows of src[r][c], in a fixed order (halves, so every step has many repeats);
// src is overwritten. rows must be a power of two: clear the rest of a tail tile first. No barrier
// at the end.
template <int32_t kWidth = 128>
__aicore__ inline void ColumnSums(const Tile& sums, const Tile& src, int32_t rows) {
    for (int32_t half = rows / 2; half >= 2; half /= 2) {
        AscendC::Add(src, src, src[half * kWidth], kFullMask, TileRepeats<kWidth>(half),
                     Contiguous());
        AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::Add(sums, src, src[kWidth], kFullMask, TileRepeats<kWidth>(1), Contiguous());
}

// ---- casts and clearing
// ------------------------------------------------------------------------------

// From and to T, bfloat16_t or half: the type of q, k, v and the caches. To nearest, ties to even.
template <int32_t kWidth = 128, typename T>
__aicore__ inline void ToFloat(const Tile& dst, const AscendC::LocalTensor<T>& src, int32_t rows) {
    AscendC::Cast(dst, src, AscendC::RoundMode::CAST_NONE, kFullMask, TileRepeats<kWidth>(rows),
                  AscendC::UnaryRepeatParams(1, 1, kRepeatBlocks, kRepeatBlocks / 2));
    AscendC::PipeBarrier<PIPE_V>();
}

template <int32_t kWidth = 128, typename T>
__aicore__ inline void ToIo(const AscendC::LocalTensor<T>& dst, const Tile& src, int32_t rows) {
    AscendC::Cast(dst, src, AscendC::RoundMode::CAST_RINT, kFullMask, TileRepeats<kWidth>(rows),
                  AscendC::UnaryRepeatParams(1, 1, kRepeatBlocks / 2, kRepeatBlocks));
    AscendC::PipeBarrier<PIPE_V>();
}

// Rows [first, end) become zero, whatever they held. Never multiply by zero for this: NaN * 0 is
// NaN, and a reused buffer may hold another head's NaN.
template <int32_t kWidth = 128>
__aicore__ inline void ClearRows(const Tile& tile, int32_t first, int32_t end) {
    if (first >= end) {
        return;
    }
    AscendC::Duplicate(tile[first * kWidth], 0.0f, kFullMask, TileRepeats<kWidth>(end - first), 1,
                       kRepeatBlocks);
    AscendC::PipeBarrier<PIPE_V>();
}

// ---- copies GM <-> UB
// ---------------------------------------------------------------------------------

// `rows` rows of `width` elements at a pitch of `pitch` elements in GM, to rows without gaps in UB.
// width * sizeof(T) must be a multiple of 32 B. Works in place for every TokenLayout.
template <typename T>
__aicore__ inline void LoadRows(const AscendC::LocalTensor<T>& dst,
                                const AscendC::GlobalTensor<T>& src, int32_t rows, int32_t width,
                                int64_t pitch) {
    const uint32_t rowBytes = static_cast<uint32_t>(width * sizeof(T));
    AscendC::DataCopyExtParams params;
    params.blockCount = pitch == width ? 1 : static_cast<uint16_t>(rows);
    params.blockLen = pitch == width ? rowBytes * static_cast<uint32_t>(rows) : rowBytes;
    params.srcStride = static_cast<uint32_t>((pitch - width) * static_cast<int64_t>(sizeof(T)));
    params.dstStride = 0;
    AscendC::DataCopyPadExtParams<T> pad;
    pad.isPad = false;
    AscendC::DataCopyPad(dst, src, params, pad);
}

template <typename T>
__aicore__ inline void StoreRows(const AscendC::GlobalTensor<T>& dst,
                                 const AscendC::LocalTensor<T>& src, int32_t rows, int32_t width,
                                 int64_t pitch) {
    const uint32_t rowBytes = static_cast<uint32_t>(width * sizeof(T));
    AscendC::DataCopyExtParams params;
    params.blockCount = pitch == width ? 1 : static_cast<uint16_t>(rows);
    params.blockLen = pitch == width ? rowBytes * static_cast<uint32_t>(rows) : rowBytes;
    params.srcStride = 0;
    params.dstStride = static_cast<uint32_t>((pitch - width) * static_cast<int64_t>(sizeof(T)));
    AscendC::DataCopyPad(dst, src, params);
}

// One element a row (beta): element r lands at dst[r * kColumnPitch<T>], alone in its 32 B block;
// the rest of the block is zero. CompactColumn makes plain fp32 values of them.
template <typename T>
__aicore__ constexpr int32_t ColumnPitch() {
    return kBlockFloats * static_cast<int32_t>(sizeof(float) / sizeof(T));
}

template <typename T>
__aicore__ inline void LoadColumn(const AscendC::LocalTensor<T>& dst,
                                  const AscendC::GlobalTensor<T>& src, int32_t rows,
                                  int64_t pitch) {
    AscendC::DataCopyExtParams params;
    params.blockCount = static_cast<uint16_t>(rows);
    params.blockLen = static_cast<uint32_t>(sizeof(T));
    params.srcStride = static_cast<uint32_t>((pitch - 1) * static_cast<int64_t>(sizeof(T)));
    params.dstStride = 0;
    AscendC::DataCopyPadExtParams<T> pad;
    pad.isPad = true;
    pad.rightPadding = static_cast<uint8_t>(ColumnPitch<T>() - 1);
    pad.paddingValue = T(0);
    AscendC::DataCopyPad(dst, src, params, pad);
}

// values[r] = column[r * pitch]: the sum of a block with one non-zero element is that element.
__aicore__ inline void CompactColumn(const Tile& values, const Tile& column, int32_t rows,
                                     int32_t pitch) {
    AscendC::WholeReduceSum<float>(values, column, pitch, rows, 1, 1, pitch / kBlockFloats);
    AscendC::PipeBarrier<PIPE_V>();
}

// rows fp32 values without gaps (beta_eff, rstd): only whole elements are written.
__aicore__ inline void StoreValues(const AscendC::GlobalTensor<float>& dst, const Tile& src,
                                   int32_t count) {
    AscendC::DataCopyExtParams params;
    params.blockCount = 1;
    params.blockLen = static_cast<uint32_t>(count * sizeof(float));
    params.srcStride = 0;
    params.dstStride = 0;
    AscendC::DataCopyPad(dst, src, params);
}

// ---- triangle masks of a 64 x 64 tile
// -------------------------------------------------------------------

// Bit c of 64-bit row r says whether element (r, c) is kept.
constexpr int32_t kMaskBytes = 64 * 64 / 8;

// Makes the masks c < r, c <= r and c == r, kMaskBytes each, once a core. No barrier at the end.
// scratch: 64 + 512 floats.
__aicore__ inline void MakeTriangleMasks(const AscendC::LocalTensor<uint8_t>& below,
                                         const AscendC::LocalTensor<uint8_t>& belowOrDiagonal,
                                         const AscendC::LocalTensor<uint8_t>& diagonal,
                                         const Tile& scratch) {
    Tile index = scratch;
    const Tile rowOf = scratch[kLanes];
    AscendC::CreateVecIndex(index, 0.0f, static_cast<uint32_t>(kLanes));
    AscendC::PipeBarrier<PIPE_V>();
    SpreadColumn(rowOf, index, 64);
    const AscendC::BinaryRepeatParams params(1, 1, 0, kRepeatBlocks, 0, 1);
    AscendC::Compare(below, index, rowOf, AscendC::CMPMODE::LT, kFullMask, 64, params);
    AscendC::Compare(belowOrDiagonal, index, rowOf, AscendC::CMPMODE::LE, kFullMask, 64, params);
    AscendC::Compare(diagonal, index, rowOf, AscendC::CMPMODE::EQ, kFullMask, 64, params);
}

// dst = mask ? src : 0 on a 64-wide tile of `rows` rows.
__aicore__ inline void KeepMasked(const Tile& dst, const AscendC::LocalTensor<uint8_t>& mask,
                                  const Tile& src, int32_t rows) {
    AscendC::Select(dst, mask, src, 0.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, kFullMask,
                    static_cast<uint8_t>(rows), Contiguous());
    AscendC::PipeBarrier<PIPE_V>();
}

// dst = identity, 64 x 64; one: a 32 B block of ones. No barrier.
__aicore__ inline void FillIdentity(const Tile& dst, const AscendC::LocalTensor<uint8_t>& diagonal,
                                    const Tile& one) {
    AscendC::Select(dst, diagonal, one, 0.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, kFullMask,
                    64, AscendC::BinaryRepeatParams(1, 0, 1, kRepeatBlocks, 0, kRepeatBlocks));
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_VECTOR_TILE_H
