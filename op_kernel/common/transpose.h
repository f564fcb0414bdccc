// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Transposes in UB, for states that memory holds with V before K.
#ifndef KDA_OP_KERNEL_COMMON_TRANSPOSE_H
#define KDA_OP_KERNEL_COMMON_TRANSPOSE_H

#include "kernel_operator.h"

namespace kda {

// dst[c][r] = src[r][c], rows x columns values of 16 or 32 bits. Pitches in elements; rows is a
// multiple of 16, columns of 32 (a repeat turns one 32 B block of sixteen rows, and there must be
// two or more of them), every row starts on 32 B. One instruction sixteen rows. No barrier.
template <typename T>
__aicore__ inline void TransposeTile(const AscendC::LocalTensor<T>& dst, uint32_t dstPitch,
                                     const AscendC::LocalTensor<T>& src, uint32_t srcPitch,
                                     uint32_t rows, uint32_t columns) {
    constexpr uint32_t kRows = AscendC::NCHW_CONV_ADDR_LIST_SIZE;  // 16
    constexpr uint32_t kBlock = 32 / sizeof(T);                    // columns of a repeat
    constexpr uint32_t kParts = kRows / kBlock;  // 32 B blocks of a row of sixteen
    const AscendC::TransDataTo5HDParams params(false, false, static_cast<uint8_t>(columns / kBlock),
                                               static_cast<uint16_t>(dstPitch),
                                               1);  // kBlock rows further, in 32 B blocks
    for (uint32_t row = 0; row < rows; row += kRows) {
        AscendC::LocalTensor<T> to[kRows];
        AscendC::LocalTensor<T> from[kRows];
        for (uint32_t i = 0; i < kRows; ++i) {
            to[i] = dst[i / kParts * dstPitch + row + i % kParts * kBlock];
            from[i] = src[(row + i) * srcPitch];
        }
        AscendC::TransDataTo5HD<T>(to, from, params);
    }
}

// The instruction does not list bf16; it moves 16 bits whatever they mean.
__aicore__ inline void TransposeTile(const AscendC::LocalTensor<bfloat16_t>& dst, uint32_t dstPitch,
                                     const AscendC::LocalTensor<bfloat16_t>& src, uint32_t srcPitch,
                                     uint32_t rows, uint32_t columns) {
    TransposeTile<half>(dst.template ReinterpretCast<half>(), dstPitch,
                        src.template ReinterpretCast<half>(), srcPitch, rows, columns);
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_TRANSPOSE_H
