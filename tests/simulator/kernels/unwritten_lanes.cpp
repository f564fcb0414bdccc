// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

// Any instruction on memory of which some is written: what nothing wrote is NaN, and these
// instructions make NaN of NaN and of nothing else, so that the result tells what the checker must
// report.

namespace {

constexpr uint32_t kFloats = 2048;

struct LaneTest {
    const TestParams& p;
    LocalTensor<float> d;
    LocalTensor<float> a;
    LocalTensor<float> b;
    LocalTensor<int32_t> defined;  // in0: offsets or a selection

    template <typename Mask>
    void Run(Mask mask) {
        const uint8_t repeats = uint8_t(p.v[4]);
        const BinaryRepeatParams both(uint8_t(p.v[5]), uint8_t(p.v[6]), uint8_t(p.v[7]),
                                      uint8_t(p.v[8]), uint8_t(p.v[9]), uint8_t(p.v[10]));
        const UnaryRepeatParams one(uint16_t(p.v[5]), uint16_t(p.v[6]), uint8_t(p.v[8]),
                                    uint8_t(p.v[9]));
        const int32_t step = int32_t(p.v[8]);
        switch (p.v[0]) {
            case 0:
                return Add(d, a, b, mask, repeats, both);
            case 1:
                return MulAddDst(d, a, b, mask, repeats, both);
            case 2:
                return Muls(d, a, 2.0f, mask, repeats, one);
            case 3:
                return Exp(d, a, mask, repeats, one);
            case 4:
                return Copy(d, a, mask, repeats,
                            CopyRepeatParams(one.dstBlkStride, one.srcBlkStride, one.dstRepStride,
                                             one.srcRepStride));
            case 5:
                return Cast(d.ReinterpretCast<half>(), a, RoundMode::CAST_NONE, mask, repeats, one);
            case 6:
                return Cast(d, a.ReinterpretCast<half>(), RoundMode::CAST_NONE, mask, repeats, one);
            case 7:
                return Axpy(d, a, 2.0f, mask, repeats, one);
            case 8:
                return Duplicate(d, 2.0f, mask, repeats, one.dstBlkStride, one.dstRepStride);
            case 9:
                return Select(d, defined.ReinterpretCast<uint8_t>(), a, b,
                              SELMODE::VSEL_TENSOR_TENSOR_MODE, mask, repeats, both);
            case 10:
                return Gather(d, a, defined.ReinterpretCast<uint32_t>(), 0, mask, repeats,
                              uint16_t(p.v[8]));
            case 11:
                return WholeReduceSum(d, a, mask, repeats, step, one.srcBlkStride,
                                      one.srcRepStride);
            case 12:
                return BlockReduceSum(d, a, repeats, mask, step, one.srcBlkStride,
                                      one.srcRepStride);
            case 13:
                return PairReduceSum(d, a, repeats, mask, step, one.srcBlkStride, one.srcRepStride);
            case 14:
                return Brcb(d, a, repeats, BrcbRepeatParams(uint16_t(p.v[5]), uint16_t(p.v[8])));
            default:
                return FusedMulAdd(d, a, b, mask, repeats, both);
        }
    }
};

}  // namespace

// {instruction, 1: the mask is a pattern, mask, pattern, repeats, block strides and repeat strides
// of d, a, b, first and number of blocks to store, number of stretches to write}, then
// {tensor, first float, floats} for each stretch.
TEST_KERNEL(unwritten_lanes) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffers[4];
    for (auto& buffer : buffers) {
        pipe.InitBuffer(buffer, kFloats * 4);
    }
    LaneTest test{p, buffers[0].Get<float>(), buffers[1].Get<float>(), buffers[2].Get<float>(),
                  buffers[3].Get<int32_t>()};
    DataCopy(test.defined, Gm<int32_t>(in0), kFloats);
    for (int64_t i = 0; i < p.v[13]; ++i) {
        const int64_t* stretch = p.v + 16 + 3 * i;
        Duplicate(buffers[stretch[0]].Get<float>()[stretch[1]], 1.0f, int32_t(stretch[2]));
        Settle();
    }
    Settle();
    uint64_t pattern[2] = {static_cast<uint64_t>(p.v[3]), 0};
    if (p.v[1] != 0) {
        test.Run<uint64_t*>(pattern);
    } else {
        test.Run<uint64_t>(static_cast<uint64_t>(p.v[2]));
    }
    Settle();
    const int64_t first = p.v[11] * 8;
    DataCopy(Gm<float>(out)[first], test.d[first], static_cast<uint32_t>(p.v[12] * 8));
}

// {rows and columns copied to A, k-rows and columns copied to B, m, n, k, how often, rows to store,
// result: 0 rows of float, 1 of
// bf16, 2 fractals, 3 narrow fractals}. A is 32 x 48, B 48 x 32; the products add up.
TEST_KERNEL(unwritten_product) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    pipe.InitBuffer(l1, 2 * 6 * 512);
    pipe.InitBuffer(l0a, 6 * 512);
    pipe.InitBuffer(l0b, 6 * 512);
    pipe.InitBuffer(l0c, 4096);
    LocalTensor<half> a = l1.Get<half>();
    LocalTensor<half> b = a[6 * 256];
    // Columns of 16 one after the other, 32 rows of A and 48 of B each.
    DataCopy(a, Gm<half>(in0), Nd2NzParams(1, uint16_t(p.v[0]), uint16_t(p.v[1]), 0, 48, 32, 1, 0));
    DataCopy(b, Gm<half>(in1), Nd2NzParams(1, uint16_t(p.v[2]), uint16_t(p.v[3]), 0, 32, 48, 1, 0));
    Settle();
    const uint16_t n = uint16_t(p.v[5]);
    const uint16_t kBlocks = uint16_t((p.v[6] + 15) / 16);
    for (uint16_t i = 0; i < (p.v[4] + 15) / 16; ++i) {
        LoadData(l0a.Get<half>()[i * kBlocks * 256], a,
                 LoadData2DParams(i, uint8_t(kBlocks), 2, 0, 0, false, 0));
    }
    for (uint16_t i = 0; i < kBlocks; ++i) {
        LoadDataWithTranspose(l0b.Get<half>()[i * ((n + 15) / 16) * 256], b,
                              LoadData2dTransposeParams(i, uint8_t((n + 15) / 16), 3, 0, 0));
    }
    Settle();
    for (int64_t i = 0; i < p.v[7]; ++i) {
        Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(),
             MmadParams(uint16_t(p.v[4]), n, uint16_t(p.v[6]), 0, false, i == 0));
        PipeBarrier<PIPE_M>();
    }
    Settle();
    const uint16_t height = uint16_t((p.v[4] + 15) / 16 * 16);
    FixpipeParamsV220 fix(uint16_t((n + 15) / 16 * 16), uint16_t(p.v[8]), height, 32, false);
    switch (p.v[9]) {
        case 0:
            Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), l0c.Get<float>(), fix);
            break;
        case 1:
            fix.quantPre = QuantMode_t::F322BF16;
            Fixpipe<bfloat16_t, float, CFG_ROW_MAJOR>(Gm<bfloat16_t>(out), l0c.Get<float>(), fix);
            break;
        default:  // stripes of 16 columns, or of 8
            fix.isChannelSplit = p.v[9] == 3;
            fix.dstStride = fix.isChannelSplit ? 32 : 64;
            Fixpipe<float, float, CFG_NZ>(Gm<float>(out), l0c.Get<float>(), fix);
            break;
    }
    Settle();
}
