// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Tile helpers of the cube core: GM -> L1 -> L0A/L0B -> Mmad -> L0C -> GM.
//
// A matrix is named by its row-major form in memory, "X[rows,cols]". In L1 it lies as Nz stripes,
//   element (r, c) at (c / C0) * l1Rows * C0 + r * C0 + c % C0,   C0 = 32 B / sizeof(T),
// with l1Rows = rows rounded up to 16 unless the caller keeps another height. Rows between `rows`
// and l1Rows are not written, so whatever they hold must not count: as M rows of A or C they only
// produce rows that Fixpipe does not store, and along K the real k given to Mmad cuts them off.
//
// Hand-overs between MTE2, MTE1, M and FIX are those of TQue (EnQue/DeQue/Free), two buffers deep,
// so that a tile is loaded while the one before is multiplied and the one before that leaves.
#ifndef KDA_OP_KERNEL_COMMON_CUBE_H
#define KDA_OP_KERNEL_COMMON_CUBE_H

#include "kernel_operator.h"

namespace kda {

constexpr uint32_t kFractalRows = 16;
constexpr uint32_t kBlockBytes = 32;
constexpr uint64_t kMaxNdPitch = 65535;  // Nd2NzParams::srcDValue is 16 bits wide

template <typename T>
struct Nz {
    static constexpr uint32_t kC0 = kBlockBytes / sizeof(T);
    static constexpr uint32_t kFractal = kFractalRows * kC0;  // elements of one 512 B fractal
};

__aicore__ inline constexpr uint32_t CeilDiv(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit;
}
__aicore__ inline constexpr uint32_t AlignUp(uint32_t value, uint32_t unit) {
    return CeilDiv(value, unit) * unit;
}

// Mmad takes m = 1 for a matrix-vector product with another layout of A. A single row therefore
// runs as a whole fractal row of 16; only row 0 of the result is ever stored.
__aicore__ inline constexpr uint32_t MmadRows(uint32_t rows) {
    return rows == 1 ? kFractalRows : rows;
}

// ---------------------------------------------------------------------------- GM -> L1

// X[rows,cols] -> Nz. rowPitch in elements. A pitch that does not fit Nd2NzParams (token-major
// tensors with very many heads) is copied row by row. A last row that is alone in its fractal row
// fills it with copies of itself: MmadRows makes Mmad read all sixteen when that row is a product
// of its own, and unwritten L1 may hold NaN, which the manual wants kept away from Mmad.
template <typename T>
__aicore__ inline void LoadNdToL1(const AscendC::LocalTensor<T>& l1,
                                  const AscendC::GlobalTensor<T>& x, uint32_t rows, uint32_t cols,
                                  uint64_t rowPitch, uint32_t l1Rows) {
    const uint32_t alone = rows % kFractalRows == 1 ? 1 : 0;
    const uint32_t together = rows - alone;
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = static_cast<uint16_t>(together);
    params.dValue = static_cast<uint16_t>(cols);
    params.srcNdMatrixStride = 0;
    params.srcDValue = static_cast<uint16_t>(rowPitch);
    params.dstNzC0Stride = static_cast<uint16_t>(l1Rows);
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 0;
    if (together > 0 && rowPitch <= kMaxNdPitch) {
        AscendC::DataCopy(l1, x, params);
    }
    params.nValue = 1;
    params.srcDValue = static_cast<uint16_t>(cols);
    for (uint32_t row = 0; row < together && rowPitch > kMaxNdPitch; ++row) {
        AscendC::DataCopy(l1[row * Nz<T>::kC0], x[row * rowPitch], params);
    }
    if (alone > 0) {
        params.ndNum = kFractalRows;
        params.dstNzMatrixStride = Nz<T>::kC0;
        AscendC::DataCopy(l1[together * Nz<T>::kC0], x[together * rowPitch], params);
    }
}

template <typename T>
__aicore__ inline void LoadNdToL1(const AscendC::LocalTensor<T>& l1,
                                  const AscendC::GlobalTensor<T>& x, uint32_t rows, uint32_t cols,
                                  uint64_t rowPitch) {
    LoadNdToL1(l1, x, rows, cols, rowPitch, AlignUp(rows, kFractalRows));
}

// fp32 X[rows,cols] -> zZ fractals (16 x 8, rows of fractals contiguous), the order that
// LoadDataWithTranspose needs: it joins two neighbouring fractals into a 16 x 16 square.
// rows and cols are multiples of 16, rowPitch * 16 fits 16 bits.
__aicore__ inline void LoadNdToL1Squares(const AscendC::LocalTensor<float>& l1,
                                         const AscendC::GlobalTensor<float>& x, uint32_t rows,
                                         uint32_t cols, uint32_t rowPitch) {
    AscendC::Nd2NzParams params;
    params.ndNum = static_cast<uint16_t>(rows / kFractalRows);
    params.nValue = kFractalRows;
    params.dValue = static_cast<uint16_t>(cols);
    params.srcNdMatrixStride = static_cast<uint16_t>(kFractalRows * rowPitch);
    params.srcDValue = static_cast<uint16_t>(rowPitch);
    params.dstNzC0Stride = kFractalRows;
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = static_cast<uint16_t>(kFractalRows * cols);
    AscendC::DataCopy(l1, x, params);
}

// ---------------------------------------------------------------------------- L1 -> L0A / L0B

// `count` fractals, source fractal first + i * stride, destination contiguous.
template <typename T>
__aicore__ inline void LoadFractals(const AscendC::LocalTensor<T>& l0,
                                    const AscendC::LocalTensor<T>& l1, uint32_t first,
                                    uint32_t count, uint32_t stride, bool transpose) {
    AscendC::LoadData2DParams params;
    params.startIndex = static_cast<uint16_t>(first);
    params.repeatTimes = static_cast<uint8_t>(count);
    params.srcStride = static_cast<uint16_t>(stride);
    params.dstGap = 0;
    params.ifTranspose = transpose;
    AscendC::LoadData(l0, l1, params);
}

// A = X, X[m,k] in L1.
template <typename T>
__aicore__ inline void LoadA(const AscendC::LocalTensor<T>& l0a, const AscendC::LocalTensor<T>& l1,
                             uint32_t m, uint32_t k, uint32_t l1Rows) {
    const uint32_t rowFractals = CeilDiv(m, kFractalRows);
    const uint32_t depthFractals = CeilDiv(k, Nz<T>::kC0);
    const uint32_t l1Fractals = l1Rows / kFractalRows;
    for (uint32_t row = 0; row < rowFractals; ++row) {
        LoadFractals(l0a[row * depthFractals * Nz<T>::kFractal], l1, row, depthFractals, l1Fractals,
                     false);
    }
}

// A = X^T, X[k,m] in L1 (16-bit types).
template <typename T>
__aicore__ inline void LoadATransposed(const AscendC::LocalTensor<T>& l0a,
                                       const AscendC::LocalTensor<T>& l1, uint32_t m, uint32_t k,
                                       uint32_t l1Rows) {
    const uint32_t rowFractals = CeilDiv(m, kFractalRows);
    const uint32_t depthFractals = CeilDiv(k, kFractalRows);
    const uint32_t l1Fractals = l1Rows / kFractalRows;
    if (l1Fractals == depthFractals) {
        LoadFractals(l0a, l1, 0, rowFractals * depthFractals, 1, true);
        return;
    }
    for (uint32_t row = 0; row < rowFractals; ++row) {
        LoadFractals(l0a[row * depthFractals * Nz<T>::kFractal], l1, row * l1Fractals,
                     depthFractals, 1, true);
    }
}

// B = Y, Y[k,n] in L1 (16-bit types).
template <typename T>
__aicore__ inline void LoadB(const AscendC::LocalTensor<T>& l0b, const AscendC::LocalTensor<T>& l1,
                             uint32_t k, uint32_t n, uint32_t l1Rows) {
    const uint32_t depthFractals = CeilDiv(k, kFractalRows);
    const uint32_t columnFractals = CeilDiv(n, kFractalRows);
    const uint32_t l1Fractals = l1Rows / kFractalRows;
    for (uint32_t depth = 0; depth < depthFractals; ++depth) {
        LoadFractals(l0b[depth * columnFractals * Nz<T>::kFractal], l1, depth, columnFractals,
                     l1Fractals, true);
    }
}

// B = Y^T, Y[n,k] in L1.
template <typename T>
__aicore__ inline void LoadBTransposed(const AscendC::LocalTensor<T>& l0b,
                                       const AscendC::LocalTensor<T>& l1, uint32_t k, uint32_t n,
                                       uint32_t l1Rows) {
    const uint32_t depthFractals = CeilDiv(k, Nz<T>::kC0);
    const uint32_t columnFractals = CeilDiv(n, kFractalRows);
    const uint32_t l1Fractals = l1Rows / kFractalRows;
    if (l1Fractals == columnFractals) {
        LoadFractals(l0b, l1, 0, depthFractals * columnFractals, 1, false);
        return;
    }
    if (columnFractals == 1) {
        LoadFractals(l0b, l1, 0, depthFractals, l1Fractals, false);
        return;
    }
    for (uint32_t depth = 0; depth < depthFractals; ++depth) {
        LoadFractals(l0b[depth * columnFractals * Nz<T>::kFractal], l1, depth * l1Fractals,
                     columnFractals, 1, false);
    }
}

// fp32 B = Y, Y[k,n] in L1 as zZ fractals (LoadNdToL1Squares). One instruction a row of squares:
// each 16 x 16 square turns over and splits into the two 8-deep fractals that nZ wants.
__aicore__ inline void LoadBFromSquares(const AscendC::LocalTensor<float>& l0b,
                                        const AscendC::LocalTensor<float>& l1, uint32_t k,
                                        uint32_t n) {
    const uint32_t columnFractals = n / kFractalRows;
    AscendC::LoadData2dTransposeParams params;
    params.repeatTimes = static_cast<uint8_t>(columnFractals);
    params.srcStride = 1;
    params.dstGap = 0;
    params.dstFracGap = static_cast<uint16_t>(columnFractals - 1);
    for (uint32_t depth = 0; depth < k / kFractalRows; ++depth) {
        params.startIndex = static_cast<uint16_t>(depth * columnFractals);
        AscendC::LoadDataWithTranspose(l0b[depth * 2 * columnFractals * Nz<float>::kFractal], l1,
                                       params);
    }
}

// ---------------------------------------------------------------------------- Mmad, Fixpipe

// C[m,n] = A B, or C += A B. Small products need the barrier before the next one on the same C:
// fewer than ten whole fractals do not cover the pipe's latency.
template <typename T>
__aicore__ inline void Multiply(const AscendC::LocalTensor<float>& c,
                                const AscendC::LocalTensor<T>& a, const AscendC::LocalTensor<T>& b,
                                uint32_t m, uint32_t n, uint32_t k, bool accumulate = false) {
    AscendC::MmadParams params;
    params.m = static_cast<uint16_t>(MmadRows(m));
    params.n = static_cast<uint16_t>(n);
    params.k = static_cast<uint16_t>(k);
    params.cmatrixInitVal = !accumulate;
    AscendC::Mmad(c, a, b, params);
    if (params.m / kFractalRows * (params.n / kFractalRows) < 10) {
        AscendC::PipeBarrier<PIPE_M>();
    }
}

template <typename T>
struct FixpipeMode;
template <>
struct FixpipeMode<float> {
    static constexpr QuantMode_t kPre = QuantMode_t::NoQuant;
};
template <>
struct FixpipeMode<bfloat16_t> {
    static constexpr QuantMode_t kPre = QuantMode_t::F322BF16;
};
template <>
struct FixpipeMode<half> {
    static constexpr QuantMode_t kPre = QuantMode_t::F322F16;
};

// C[m,n] of L0C -> rows of GM at rowPitch elements, rounded to nearest even when T is 16-bit.
// cRows is the height of C in L0C when it is not m (a part of a taller product).
template <typename T>
__aicore__ inline void StoreC(const AscendC::GlobalTensor<T>& out,
                              const AscendC::LocalTensor<float>& c, uint32_t m, uint32_t n,
                              uint64_t rowPitch, uint32_t cRows) {
    AscendC::FixpipeParamsV220 params;
    params.mSize = static_cast<uint16_t>(m);
    params.nSize = static_cast<uint16_t>(n);
    params.srcStride = static_cast<uint16_t>(AlignUp(cRows, kFractalRows));
    params.dstStride = static_cast<uint32_t>(rowPitch);
    params.quantPre = FixpipeMode<T>::kPre;
    AscendC::Fixpipe<T, float, AscendC::CFG_ROW_MAJOR>(out, c, params);
}
template <typename T>
__aicore__ inline void StoreC(const AscendC::GlobalTensor<T>& out,
                              const AscendC::LocalTensor<float>& c, uint32_t m, uint32_t n,
                              uint64_t rowPitch) {
    StoreC(out, c, m, n, rowPitch, m);
}

// ---------------------------------------------------------------------------- L0 ping-pong

// Two halves of L0A, L0B and L0C. Use one product as
//   auto a = l0.AllocA<T>();  LoadA(a, ...);            // MTE1, waits until Mmad left this half
//   auto b = l0.AllocB<T>();  LoadB(b, ...);
//   auto c = l0.AllocC();                               // waits until Fixpipe left this half
//   l0.Multiply(c, a, b, m, n, k);                      // MTE1 -> M hand-over, frees a and b
//   l0.FinishC(c);  StoreC(...);  l0.FreeC(c);          // M -> FIX hand-over
// Several Multiply calls may accumulate into one c before FinishC.
class CubeBuffers {
public:
    static constexpr uint32_t kBytesA = 32 * 1024;
    static constexpr uint32_t kBytesB = 32 * 1024;
    static constexpr uint32_t kBytesC = 64 * 1024;

    __aicore__ inline CubeBuffers() {}
    __aicore__ inline void Init(AscendC::TPipe& pipe) {
        pipe.InitBuffer(a_, 2, kBytesA);
        pipe.InitBuffer(b_, 2, kBytesB);
        pipe.InitBuffer(c_, 2, kBytesC);
    }

    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> AllocA() {
        return a_.template AllocTensor<T>();
    }
    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> AllocB() {
        return b_.template AllocTensor<T>();
    }
    __aicore__ inline AscendC::LocalTensor<float> AllocC() {
        return c_.template AllocTensor<float>();
    }

    template <typename T>
    __aicore__ inline void Multiply(const AscendC::LocalTensor<float>& c,
                                    AscendC::LocalTensor<T>& a, AscendC::LocalTensor<T>& b,
                                    uint32_t m, uint32_t n, uint32_t k, bool accumulate = false) {
        a_.EnQue(a);
        b_.EnQue(b);
        a = a_.template DeQue<T>();
        b = b_.template DeQue<T>();
        kda::Multiply(c, a, b, m, n, k, accumulate);
        a_.FreeTensor(a);
        b_.FreeTensor(b);
    }

    // For several kda::Multiply on parts of one load: from the loads to the products, and back.
    template <typename T>
    __aicore__ inline void TakeOperands(AscendC::LocalTensor<T>& a, AscendC::LocalTensor<T>& b) {
        a_.EnQue(a);
        b_.EnQue(b);
        a = a_.template DeQue<T>();
        b = b_.template DeQue<T>();
    }
    template <typename T>
    __aicore__ inline void FreeOperands(AscendC::LocalTensor<T>& a, AscendC::LocalTensor<T>& b) {
        a_.FreeTensor(a);
        b_.FreeTensor(b);
    }

    // The same with a left operand in two parts: c (+)= (high + low) b, with b loaded once.
    template <typename T>
    __aicore__ inline void MultiplySum(const AscendC::LocalTensor<float>& c,
                                       AscendC::LocalTensor<T>& high, AscendC::LocalTensor<T>& low,
                                       AscendC::LocalTensor<T>& b, uint32_t m, uint32_t n,
                                       uint32_t k, bool accumulate = false) {
        a_.EnQue(high);
        a_.EnQue(low);
        b_.EnQue(b);
        high = a_.template DeQue<T>();
        b = b_.template DeQue<T>();
        kda::Multiply(c, high, b, m, n, k, accumulate);
        a_.FreeTensor(high);
        low = a_.template DeQue<T>();
        kda::Multiply(c, low, b, m, n, k, true);
        a_.FreeTensor(low);
        b_.FreeTensor(b);
    }

    // The same with a right operand in two parts: c (+)= a (high + low), with a loaded once.
    template <typename T>
    __aicore__ inline void MultiplyRightSum(const AscendC::LocalTensor<float>& c,
                                            AscendC::LocalTensor<T>& a,
                                            AscendC::LocalTensor<T>& high,
                                            AscendC::LocalTensor<T>& low, uint32_t m, uint32_t n,
                                            uint32_t k, bool accumulate = false) {
        a_.EnQue(a);
        b_.EnQue(high);
        b_.EnQue(low);
        a = a_.template DeQue<T>();
        high = b_.template DeQue<T>();
        kda::Multiply(c, a, high, m, n, k, accumulate);
        b_.FreeTensor(high);
        low = b_.template DeQue<T>();
        kda::Multiply(c, a, low, m, n, k, true);
        b_.FreeTensor(low);
        a_.FreeTensor(a);
    }

    // With both: c (+)= (a + aLow)(b + bLow), but for aLow bLow, which is below what fp32 keeps.
    template <typename T>
    __aicore__ inline void MultiplyPairs(const AscendC::LocalTensor<float>& c,
                                         AscendC::LocalTensor<T>& a, AscendC::LocalTensor<T>& aLow,
                                         AscendC::LocalTensor<T>& b, AscendC::LocalTensor<T>& bLow,
                                         uint32_t m, uint32_t n, uint32_t k,
                                         bool accumulate = false) {
        a_.EnQue(a);
        a_.EnQue(aLow);
        b_.EnQue(b);
        b_.EnQue(bLow);
        a = a_.template DeQue<T>();
        b = b_.template DeQue<T>();
        kda::Multiply(c, a, b, m, n, k, accumulate);
        bLow = b_.template DeQue<T>();
        kda::Multiply(c, a, bLow, m, n, k, true);
        a_.FreeTensor(a);
        b_.FreeTensor(bLow);
        aLow = a_.template DeQue<T>();
        kda::Multiply(c, aLow, b, m, n, k, true);
        a_.FreeTensor(aLow);
        b_.FreeTensor(b);
    }

    __aicore__ inline void FinishC(AscendC::LocalTensor<float>& c) {
        c_.EnQue(c);
        c = c_.template DeQue<float>();
    }
    __aicore__ inline void FreeC(AscendC::LocalTensor<float>& c) { c_.FreeTensor(c); }

private:
    AscendC::TQue<AscendC::TPosition::A2, 2> a_;
    AscendC::TQue<AscendC::TPosition::B2, 2> b_;
    AscendC::TQue<AscendC::TPosition::CO1, 2> c_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_CUBE_H
