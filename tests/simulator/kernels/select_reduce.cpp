// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

namespace {

constexpr uint32_t kBytes = 16384;

template <typename T>
void Comparison(const TestParams& p, TBuf<TPosition::VECCALC>* buffers) {
    LocalTensor<T> a = buffers[0].Get<T>();
    LocalTensor<T> b = buffers[1].Get<T>();
    LocalTensor<uint8_t> bits = buffers[3].Get<uint8_t>();
    const CMPMODE mode = static_cast<CMPMODE>(p.v[14]);
    T scalar;
    __builtin_memcpy(&scalar, &p.v[13], sizeof(T));
    BinaryRepeatParams binary;
    binary.src0RepStride = static_cast<uint8_t>(p.v[11]);
    binary.src1RepStride = static_cast<uint8_t>(p.v[12]);
    UnaryRepeatParams unary;
    unary.srcRepStride = static_cast<uint8_t>(p.v[11]);
    const uint64_t mask = static_cast<uint64_t>(p.v[3]);
    const uint8_t repeats = static_cast<uint8_t>(p.v[6]);
    switch (p.v[0]) {
        case 0:
            Compare(bits, a, b, mode, static_cast<uint32_t>(p.v[3]));
            break;
        case 1:
            Compare(bits, a, b, mode, mask, repeats, binary);
            break;
        case 2:
            CompareScalar(bits, a, scalar, mode, static_cast<uint32_t>(p.v[3]));
            break;
        case 3:
            CompareScalar(bits, a, scalar, mode, mask, repeats, unary);
            break;
        default:
            Compare(a, b, mode, mask, binary);
            GetCmpMask(bits);
            break;
    }
}

template <typename T>
void Selection(const TestParams& p, TBuf<TPosition::VECCALC>* buffers) {
    LocalTensor<T> d = buffers[3].Get<T>();
    LocalTensor<T> a = buffers[0].Get<T>();
    LocalTensor<T> b = buffers[1].Get<T>();
    LocalTensor<uint8_t> bits = buffers[2].Get<uint8_t>();
    T scalar;
    __builtin_memcpy(&scalar, &p.v[13], sizeof(T));
    uint64_t mask = static_cast<uint64_t>(p.v[3]);
    const uint32_t count = static_cast<uint32_t>(p.v[3]);
    const uint8_t repeats = static_cast<uint8_t>(p.v[6]);
    const BinaryRepeatParams strides(uint8_t(p.v[7]), uint8_t(p.v[8]), uint8_t(p.v[9]),
                                     uint8_t(p.v[10]), uint8_t(p.v[11]), uint8_t(p.v[12]));
    const SELMODE mode = static_cast<SELMODE>(p.v[14]);
    switch (p.v[0]) {
        case 10:
            Select(d, bits, a, b, mode, count);
            break;
        case 11:
            Select(d, bits, a, b, mode, mask, repeats, strides);
            break;
        case 12:
            Select(d, bits, a, scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
            break;
        case 13:
            Select(d, bits, a, scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, mask, repeats, strides);
            break;
        default:
            SetCmpMask(bits);
            PipeBarrier<PIPE_V>();
            Select<T, SELMODE::VSEL_CMPMASK_SPR>(d, a, b, repeats, strides);
            break;
    }
}

template <typename T>
void Reduction(const TestParams& p, TBuf<TPosition::VECCALC>* buffers) {
    LocalTensor<T> d = buffers[3].Get<T>();
    LocalTensor<T> a = buffers[0].Get<T>();
    LocalTensor<T> work = buffers[1].Get<T>();
    const int32_t mask = static_cast<int32_t>(p.v[3]);
    const uint64_t bits[2] = {static_cast<uint64_t>(p.v[4]), static_cast<uint64_t>(p.v[5])};
    const int32_t repeats = static_cast<int32_t>(p.v[6]);
    const int32_t dstRep = static_cast<int32_t>(p.v[10]);
    const int32_t srcBlk = static_cast<int32_t>(p.v[8]);
    const int32_t srcRep = static_cast<int32_t>(p.v[11]);
    const ReduceOrder order = static_cast<ReduceOrder>(p.v[14]);
    const bool pattern = p.v[2] == 2;
    switch (p.v[0]) {
        case 20:
            pattern ? WholeReduceSum(d, a, bits, repeats, dstRep, srcBlk, srcRep)
                    : WholeReduceSum(d, a, mask, repeats, dstRep, srcBlk, srcRep);
            break;
        case 21:
            WholeReduceMax(d, a, mask, repeats, dstRep, srcBlk, srcRep, order);
            break;
        case 22:
            WholeReduceMin(d, a, mask, repeats, dstRep, srcBlk, srcRep, order);
            break;
        case 23:
            pattern ? BlockReduceSum(d, a, repeats, bits, dstRep, srcBlk, srcRep)
                    : BlockReduceSum(d, a, repeats, mask, dstRep, srcBlk, srcRep);
            break;
        case 24:
            BlockReduceMax(d, a, repeats, mask, dstRep, srcBlk, srcRep);
            break;
        case 25:
            BlockReduceMin(d, a, repeats, mask, dstRep, srcBlk, srcRep);
            break;
        case 26:
            PairReduceSum(d, a, repeats, mask, dstRep, srcBlk, srcRep);
            break;
        case 27:
            RepeatReduceSum(d, a, repeats, mask, 0, srcBlk, dstRep, srcRep);
            break;
        case 28:
            ReduceSum(d, a, work, mask);
            break;
        case 29:
            ReduceMax(d, a, work, mask, true);
            break;
        default:
            ReduceMin(d, a, work, mask, true);
            break;
    }
}

}  // namespace

TEST_KERNEL(test_select_reduce) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffers[4];
    GM_ADDR sources[] = {in0, in1, in2, out};
    for (int i = 0; i < 4; ++i) {
        pipe.InitBuffer(buffers[i], kBytes);
        DataCopy(buffers[i].Get<int32_t>(), Gm<int32_t>(sources[i]), kBytes / 4);
    }
    Settle();
    const bool wide = params.v[1] == 0;
    if (params.v[0] < 10) {
        wide ? Comparison<float>(params, buffers) : Comparison<half>(params, buffers);
    } else if (params.v[0] < 20) {
        wide ? Selection<float>(params, buffers) : Selection<half>(params, buffers);
    } else {
        wide ? Reduction<float>(params, buffers) : Reduction<half>(params, buffers);
    }
    Settle();
    DataCopy(Gm<int32_t>(out), buffers[3].Get<int32_t>(), kBytes / 4);
}

// Mask register forms: counter mode, SetVectorMask with isSetMask = false, and back to normal.
TEST_KERNEL(test_masks) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffers[2];
    GM_ADDR sources[] = {in0, out};
    for (int i = 0; i < 2; ++i) {
        pipe.InitBuffer(buffers[i], kBytes);
        DataCopy(buffers[i].Get<int32_t>(), Gm<int32_t>(sources[i]), kBytes / 4);
    }
    Settle();
    LocalTensor<float> a = buffers[0].Get<float>();
    LocalTensor<float> d = buffers[1].Get<float>();
    const UnaryRepeatParams strides;
    switch (params.v[0]) {
        case 0:
            SetMaskCount();
            SetVectorMask<float, MaskMode::COUNTER>(0, static_cast<uint64_t>(params.v[3]));
            Muls<float, false>(d, a, 2.0f, MASK_PLACEHOLDER, 1, strides);
            SetMaskNorm();
            ResetMask();
            break;
        case 1:
            SetMaskNorm();
            SetVectorMask<float, MaskMode::NORMAL>(0, static_cast<uint64_t>(params.v[4]));
            Muls<float, false>(d, a, 2.0f, MASK_PLACEHOLDER, static_cast<uint8_t>(params.v[6]),
                               strides);
            ResetMask();
            break;
        case 2:
            SetVectorMask<float, MaskMode::NORMAL>(static_cast<int32_t>(params.v[3]));
            Muls<float, false>(d, a, 2.0f, MASK_PLACEHOLDER, static_cast<uint8_t>(params.v[6]),
                               strides);
            ResetMask();
            PipeBarrier<PIPE_V>();
            Muls<float, false>(d[2048], a[2048], 2.0f, MASK_PLACEHOLDER, 1, strides);
            break;
        default:
            break;
    }
    Settle();
    DataCopy(Gm<int32_t>(out), buffers[1].Get<int32_t>(), kBytes / 4);
}
