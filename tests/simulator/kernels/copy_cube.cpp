// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

namespace {

constexpr uint32_t kBytes = 16384;

template <typename T>
void PadIn(const TestParams& p, const LocalTensor<uint8_t>& image, GM_ADDR in0) {
    T value;
    __builtin_memcpy(&value, &p.v[8], sizeof(T));
    DataCopyPad(image[p.v[9]].ReinterpretCast<T>(), Gm<T>(in0 + p.v[10]),
                DataCopyExtParams(uint16_t(p.v[1]), uint32_t(p.v[2]), uint32_t(p.v[3]),
                                  uint32_t(p.v[4]), 0),
                DataCopyPadExtParams<T>(p.v[5] != 0, uint8_t(p.v[6]), uint8_t(p.v[7]), value));
}

template <typename T>
void PadOut(const TestParams& p, const LocalTensor<uint8_t>& image, GM_ADDR out) {
    DataCopyPad(Gm<T>(out + p.v[10]), image[p.v[9]].ReinterpretCast<T>(),
                DataCopyExtParams(uint16_t(p.v[1]), uint32_t(p.v[2]), uint32_t(p.v[3]),
                                  uint32_t(p.v[4]), 0));
}

}  // namespace

// GM to UB and back in every form; the untouched side of each copy comes from in1 or out.
TEST_KERNEL(test_copy) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, kBytes);
    LocalTensor<uint8_t> image = buffer.Get<uint8_t>();
    const bool outward = p.v[0] >= 10;
    DataCopy(image.ReinterpretCast<int32_t>(), Gm<int32_t>(outward ? in0 : in1), kBytes / 4);
    Settle();
    const DataCopyParams blocks(uint16_t(p.v[1]), uint16_t(p.v[2]), uint16_t(p.v[3]),
                                uint16_t(p.v[4]));
    LocalTensor<half> part = image[p.v[9]].ReinterpretCast<half>();
    switch (p.v[0]) {
        case 0:
            PadIn<float>(p, image, in0);
            break;
        case 1:
            PadIn<bfloat16_t>(p, image, in0);
            break;
        case 2:
            PadIn<uint8_t>(p, image, in0);
            break;
        case 3:
            DataCopy(part, Gm<half>(in0 + p.v[10]), blocks);
            break;
        case 4:
            DataCopy(part, Gm<half>(in0 + p.v[10]), static_cast<uint32_t>(p.v[1]));
            break;
        case 10:
            PadOut<float>(p, image, out);
            break;
        case 11:
            PadOut<bfloat16_t>(p, image, out);
            break;
        case 12:
            PadOut<uint8_t>(p, image, out);
            break;
        case 13:
            DataCopy(Gm<half>(out + p.v[10]), part, blocks);
            break;
        case 14:
            DataCopy(Gm<half>(out + p.v[10]), part, static_cast<uint32_t>(p.v[1]));
            break;
        case 20:
            SetAtomicAdd<float>();
            PadOut<float>(p, image, out);
            SetAtomicNone();
            break;
        case 21:
            SetAtomicAdd<bfloat16_t>();
            PadOut<bfloat16_t>(p, image, out);
            SetAtomicNone();
            break;
        case 22:
            SetAtomicMax<int32_t>();
            PadOut<int32_t>(p, image, out);
            SetAtomicNone();
            break;
        case 23:
            SetAtomicAdd<int32_t>();
            DataCopy(Gm<int32_t>(out), image.ReinterpretCast<int32_t>(), 64);
            SetAtomicNone();
            break;
        default:
            break;
    }
    if (!outward) {
        Settle();
        DataCopy(Gm<int32_t>(out), image.ReinterpretCast<int32_t>(), kBytes / 4);
    }
}

namespace {

struct CubeBuffers {
    TBuf<TPosition::A1> a1;
    TBuf<TPosition::B1> b1;
    TBuf<TPosition::A2> a2;
    TBuf<TPosition::B2> b2;
    TBuf<TPosition::CO1> c;

    explicit CubeBuffers(TPipe* pipe) {
        pipe->InitBuffer(a1, 131072);
        pipe->InitBuffer(b1, 131072);
        pipe->InitBuffer(a2, 65536);
        pipe->InitBuffer(b2, 65536);
        pipe->InitBuffer(c, 131072);
    }
};

// A list of loads: {kind, source offset bytes, destination offset bytes, startIndex, repeat,
// srcStride, dstGap, dstFracGap or ifTranspose}. kind 0: LoadData, 1: LoadDataWithTranspose.
template <typename T, TPosition To, TPosition From>
void RunLoads(TBuf<To>& to, TBuf<From>& from, const int64_t* list, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t* l = list + i * 8;
        LocalTensor<T> dst = to.template Get<T>()[l[2] / sizeof(T)];
        LocalTensor<T> src = from.template Get<T>()[l[1] / sizeof(T)];
        if (l[0] == 0) {
            LoadData(dst, src,
                     LoadData2DParams(uint16_t(l[3]), uint8_t(l[4]), uint16_t(l[5]), 0,
                                      uint16_t(l[6]), l[7] != 0, 0));
        } else {
            LoadDataWithTranspose(
                dst, src,
                LoadData2dTransposeParams(uint16_t(l[3]), uint8_t(l[4]), uint16_t(l[5]),
                                          uint16_t(l[6]), uint16_t(l[7])));
        }
    }
}

template <typename T>
void Product(const TestParams& p, CubeBuffers& buffers, GM_ADDR in0, GM_ADDR in1, GM_ADDR in2,
             GM_ADDR out) {
    // L1 images as they are, or through Nd2Nz.
    LocalTensor<T> a1 = buffers.a1.Get<T>();
    LocalTensor<T> b1 = buffers.b1.Get<T>();
    DataCopy(a1, Gm<T>(in0), static_cast<uint32_t>(p.v[1]));
    DataCopy(b1, Gm<T>(in1), static_cast<uint32_t>(p.v[2]));
    Settle();
    if (p.v[3] != 0) {
        DataCopy(a1[p.v[20]], Gm<T>(in2),
                 Nd2NzParams(uint16_t(p.v[12]), uint16_t(p.v[13]), uint16_t(p.v[14]),
                             uint16_t(p.v[15]), uint16_t(p.v[16]), uint16_t(p.v[17]),
                             uint16_t(p.v[18]), uint16_t(p.v[19])));
        Settle();
    }
    RunLoads<T>(buffers.a2, buffers.a1, p.v + 40, p.v[4]);
    RunLoads<T>(buffers.b2, buffers.b1, p.v + 40 + 8 * p.v[4], p.v[5]);
    Settle();
    LocalTensor<float> c = buffers.c.Get<float>();
    MmadParams mmad;
    mmad.m = static_cast<uint16_t>(p.v[6]);
    mmad.n = static_cast<uint16_t>(p.v[7]);
    mmad.k = static_cast<uint16_t>(p.v[8]);
    for (int64_t i = 0; i < p.v[9]; ++i) {
        mmad.cmatrixInitVal = i == 0;
        Mmad(c, buffers.a2.Get<T>(), buffers.b2.Get<T>(), mmad);
        PipeBarrier<PIPE_M>();
    }
    Settle();
    FixpipeParamsV220 fix(uint16_t(p.v[21]), uint16_t(p.v[22]), uint16_t(p.v[23]),
                          uint32_t(p.v[24]), p.v[25] != 0);
    fix.ndNum = static_cast<uint16_t>(p.v[26]);
    fix.srcNdStride = static_cast<uint16_t>(p.v[27]);
    fix.dstNdStride = static_cast<uint16_t>(p.v[28]);
    fix.isChannelSplit = p.v[30] != 0;
    if (p.v[31] != 0) {
        AscendCUtils::SetOverflow(0);
    }
    if (p.v[32] != 0) {
        SetAtomicAdd<float>();
    }
    switch (p.v[29]) {
        case 0:
            Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);
            break;
        case 1:
            fix.quantPre = QuantMode_t::F322BF16;
            Fixpipe<bfloat16_t, float, CFG_ROW_MAJOR>(Gm<bfloat16_t>(out), c, fix);
            break;
        case 2:
            fix.quantPre = QuantMode_t::F322F16;
            Fixpipe<half, float, CFG_ROW_MAJOR>(Gm<half>(out), c, fix);
            break;
        case 3:
            Fixpipe<float, float, CFG_NZ>(Gm<float>(out), c, fix);
            break;
        case 4:
            fix.quantPre = QuantMode_t::F322BF16;
            Fixpipe<bfloat16_t, float, CFG_NZ>(Gm<bfloat16_t>(out), c, fix);
            break;
        default:
            break;
    }
    if (p.v[32] != 0) {
        SetAtomicNone();
    }
}

}  // namespace

TEST_KERNEL(test_cube) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    CubeBuffers buffers(&pipe);
    if (params.v[0] == 0) {
        Product<bfloat16_t>(params, buffers, in0, in1, in2, out);
    } else if (params.v[0] == 1) {
        Product<half>(params, buffers, in0, in1, in2, out);
    } else {
        Product<float>(params, buffers, in0, in1, in2, out);
    }
}

// A product that stays on the cube: L0C to L1 as bf16, and from there into the next product.
TEST_KERNEL(test_fixpipe_to_l1) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    CubeBuffers buffers(&pipe);
    LocalTensor<bfloat16_t> a1 = buffers.a1.Get<bfloat16_t>();
    LocalTensor<bfloat16_t> b1 = buffers.b1.Get<bfloat16_t>();
    LocalTensor<bfloat16_t> a2 = buffers.a2.Get<bfloat16_t>();
    LocalTensor<bfloat16_t> b2 = buffers.b2.Get<bfloat16_t>();
    LocalTensor<float> c = buffers.c.Get<float>();
    DataCopy(a1, Gm<bfloat16_t>(in0), Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
    DataCopy(b1, Gm<bfloat16_t>(in1), Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
    Settle();
    LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    LoadData(b2, b1, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
    Settle();
    MmadParams mmad;
    mmad.m = mmad.n = mmad.k = 16;
    Mmad(c, a2, b2, mmad);
    Settle();
    FixpipeParamsV220 fix(16, 16, 16, 16, false);
    fix.quantPre = QuantMode_t::F322BF16;
    Fixpipe<bfloat16_t, float, CFG_NZ>(a1[1024], c, fix);
    Settle();
    LoadData(a2, a1[1024], LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    Settle();
    Mmad(c, a2, b2, mmad);
    Settle();
    fix.quantPre = QuantMode_t::NoQuant;
    Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);
}

// Constants in L1, L0A and L0B, fractals straight from GM, and a bias row.
TEST_KERNEL(test_cube_sources) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    CubeBuffers buffers(&pipe);
    LocalTensor<half> a1 = buffers.a1.Get<half>();
    LocalTensor<half> a2 = buffers.a2.Get<half>();
    LocalTensor<half> b2 = buffers.b2.Get<half>();
    LocalTensor<float> c = buffers.c.Get<float>();
    MmadParams mmad;
    mmad.m = mmad.n = 32;
    mmad.k = 16;
    switch (params.v[0]) {
        case 0:  // A and B constant
            InitConstValue(a2, InitConstValueParams<half>(1, 2, 0, half(3.0f)));
            InitConstValue(b2, InitConstValueParams<half>(2, 1, 0, half(0.5f)));
            break;
        case 1:  // A: 2 x 32 B blocks of 7, 2 blocks apart, in an L1 of ones
            InitConstValue(a1, InitConstValueParams<half>(1, 32, 0, half(1.0f)));
            Settle();
            InitConstValue(a1, InitConstValueParams<half>(2, 2, 2, half(7.0f)));
            Settle();
            LoadData(a2, a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
            LoadData(b2, Gm<half>(in1), LoadData2DParams(0, 2, 1, 0, 0, false, 0));
            break;
        default:  // straight from GM, every second fractal, and through L1
            LoadData(a2, Gm<half>(in0), LoadData2DParams(1, 2, 2, 0, 0, false, 0));
            LoadData(a1, Gm<half>(in1), LoadData2DParams(0, 2, 1, 0, 1, false, 0));
            Settle();
            LoadData(b2, a1, LoadData2DParams(0, 2, 2, 0, 0, false, 0));
            break;
    }
    Settle();
    if (params.v[1] != 0) {
        TBuf<TPosition::C1> bias1;
        TBuf<TPosition::C2> bias2;
        pipe.InitBuffer(bias1, 128);
        pipe.InitBuffer(bias2, 128);
        DataCopy(bias1.Get<float>(), Gm<float>(in2), 32);
        Settle();
        DataCopy(bias2.Get<float>(), bias1.Get<float>(), 32);
        Settle();
        mmad.cmatrixInitVal = params.v[1] == 2;
        Mmad(c, a2, b2, bias2.Get<float>(), mmad);
    } else {
        Mmad(c, a2, b2, mmad);
    }
    Settle();
    Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c,
                                         FixpipeParamsV220(32, 32, 32, 32, false));
}
