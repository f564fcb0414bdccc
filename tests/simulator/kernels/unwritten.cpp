// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

// Every kernel reads memory that nothing wrote when its first number is 1, and is right when it
// is 0. Comments mark what the report must name: @read, the first read; @store, where it shows.

namespace {

constexpr uint32_t kFloats = 64;

// Two tensors of 64 floats: `a` from in0, `b` as the block finds it.
struct Tiles {
    TPipe pipe;
    TBuf<TPosition::VECCALC> first;
    TBuf<TPosition::VECCALC> second;
    LocalTensor<float> a;
    LocalTensor<float> b;
    explicit Tiles(GM_ADDR in0) {
        pipe.InitBuffer(first, kFloats * 4);
        pipe.InitBuffer(second, kFloats * 4);
        a = first.Get<float>();
        b = second.Get<float>();
        DataCopy(a, Gm<float>(in0), kFloats);
        Settle();
    }
};

void Store(GM_ADDR out, const LocalTensor<float>& tensor, uint32_t count = kFloats) {
    Settle();
    DataCopy(Gm<float>(out), tensor, count);  // @store
    Settle();
}

}  // namespace

// A vector instruction's second source.
TEST_KERNEL(unwritten_source) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    if (p.v[0] == 0) {
        Duplicate(ub.b, 1.0f, kFloats);
        Settle();
    }
    Add(ub.a, ub.a, ub.b, kFloats);  // @read
    Store(out, ub.a);
}

// The lanes of a tail: they may be computed with, but not stored.
TEST_KERNEL(unwritten_tail) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    const DataCopyPadExtParams<float> unpadded;
    DataCopyPad(ub.b, Gm<float>(in1), DataCopyExtParams(1, 5 * 4, 0, 0, 0), unpadded);  // @read
    Settle();
    Muls(ub.b, ub.b, 2.0f, 8);
    Settle();
    const DataCopyExtParams lanes(1, p.v[0] != 0 ? 8 * 4 : 5 * 4, 0, 0, 0);
    DataCopyPad(Gm<float>(out), ub.b, lanes);  // @store
}

// A sum over more lanes than there are.
TEST_KERNEL(unwritten_reduce) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    DataCopy(ub.b, ub.a, 40);
    Settle();
    Duplicate(ub.a, 0.0f, 8);
    Settle();
    WholeReduceSum(ub.a, ub.b, p.v[0] != 0 ? 64 : 40, 1, 1, 1, 8);  // @read
    Store(out, ub.a, 8);
}

// The same with a pattern as the mask: bits 0 and 2 of four.
TEST_KERNEL(unwritten_mask_bits) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    uint64_t even[2] = {0x5, 0};
    uint64_t taken[2] = {p.v[0] != 0 ? uint64_t(0x7) : uint64_t(0x5), 0};
    Duplicate(ub.b, 3.0f, even, 1, 1, 8);
    Settle();
    Adds(ub.a, ub.b, 1.0f, taken, 1, UnaryRepeatParams());  // @read
    Store(out, ub.a);
}

TEST_KERNEL(unwritten_scalar) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    ub.b(0) = 3.0f;
    const float value = ub.b.GetValue(p.v[0] != 0 ? 1 : 0);  // @read
    Settle();
    Duplicate(ub.a, value, kFloats);
    Store(out, ub.a);
}

// Unwritten lanes go the way that the comparison decides: lanes 0..7 have been written.
TEST_KERNEL(unwritten_select) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    TBuf<TPosition::VECCALC> bits;
    ub.pipe.InitBuffer(bits, 32);
    LocalTensor<uint8_t> mask = bits.Get<uint8_t>();
    // in0 counts from 0.
    CompareScalar(mask, ub.a, 8.0f, CMPMODE::LT, kFloats);
    Duplicate(ub.b, 5.0f, 8);
    Settle();
    if (p.v[0] != 0) {
        CompareScalar(mask, ub.b, 8.0f, CMPMODE::LT, kFloats);  // @read
        Settle();
    }
    Select(ub.a, mask, ub.b, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, kFloats);
    Store(out, ub.a);
}

// A zero decides an And, whatever the other side holds.
TEST_KERNEL(unwritten_and) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    LocalTensor<int16_t> a = ub.a.ReinterpretCast<int16_t>();
    Duplicate(a, int16_t(p.v[0]), 2 * kFloats);
    Settle();
    And(a, a, ub.b.ReinterpretCast<int16_t>(), 2 * kFloats);  // @read
    Store(out, ub.a);
}

TEST_KERNEL(unwritten_offsets) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    LocalTensor<int32_t> offsets = ub.b.ReinterpretCast<int32_t>();
    DataCopy(offsets, Gm<int32_t>(in1), p.v[0] != 0 ? 8 : kFloats);
    Settle();
    TBuf<TPosition::VECCALC> result;
    ub.pipe.InitBuffer(result, kFloats * 4);
    LocalTensor<float> picked = result.Get<float>();
    Gather(picked, ub.a, offsets.ReinterpretCast<uint32_t>(), 0, kFloats);  // @read
    Store(out, picked);
}

// Copies carry it along: UB to UB, a transpose, a cast; the first one read it.
TEST_KERNEL(unwritten_copies) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffers[4];
    for (auto& buffer : buffers) {
        pipe.InitBuffer(buffer, 1024);
    }
    LocalTensor<half> a = buffers[0].Get<half>();
    LocalTensor<half> b = buffers[1].Get<half>();
    LocalTensor<half> c = buffers[2].Get<half>();
    LocalTensor<float> d = buffers[3].Get<float>();
    Duplicate(a, half(2.0f), p.v[0] != 0 ? 255 : 256);
    Settle();
    DataCopy(b, a, 256);  // @read
    Settle();
    Transpose(c, b);
    Settle();
    Cast(d, c, RoundMode::CAST_NONE, 256);
    Store(out, d, 256);
}

// A buffer of a queue is unwritten again when it is handed out again.
TEST_KERNEL(unwritten_queue) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> result;
    pipe.InitBuffer(in, 1, kFloats * 4);
    pipe.InitBuffer(result, 1, kFloats * 4);
    for (int32_t i = 0; i < 2; ++i) {
        LocalTensor<float> x = in.AllocTensor<float>();
        DataCopy(x, Gm<float>(in0), i != 0 && p.v[0] != 0 ? 32 : kFloats);
        in.EnQue(x);
        x = in.DeQue<float>();
        LocalTensor<float> y = result.AllocTensor<float>();
        Muls(y, x, 2.0f, kFloats);  // @read
        result.EnQue(y);
        in.FreeTensor(x);
        y = result.DeQue<float>();
        DataCopy(Gm<float>(out)[i * kFloats], y, kFloats);  // @store
        result.FreeTensor(y);
    }
}

// What an earlier block left in the memory does not count.
TEST_KERNEL(unwritten_block) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    if (p.v[0] == 0 || GetBlockIdx() == 0) {
        Duplicate(ub.b, 1.0f, kFloats);
    }
    Store(out + GetBlockIdx() * kFloats * 4, ub.b);
}

TEST_KERNEL(unwritten_workspace) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    DataCopy(Gm<float>(workspace)[16], ub.a, p.v[0] != 0 ? 56 : 64);
    Settle();
    DataCopy(ub.b, Gm<float>(workspace)[16], kFloats);  // @read
    Store(out, ub.b);
}

// An atomic add reads what it adds to.
TEST_KERNEL(unwritten_atomic) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    Duplicate(ub.b, 0.0f, kFloats);
    if (p.v[0] == 0) {
        Store(out, ub.b);
    }
    SetAtomicAdd<float>();
    Store(out, ub.a);
    SetAtomicNone();
}

// All but one block of the output.
TEST_KERNEL(unwritten_output) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Tiles ub(in0);
    Store(out, ub.a, p.v[0] != 0 ? 24 : 32);
    Store(out + 32 * 4, ub.a[32], 32);
}

// The vector core's garbage in the workspace, multiplied by the cube core.
TEST_KERNEL(unwritten_across_cores) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    GM_ADDR tile = workspace + GetBlockIdx() * 512;
    if ASCEND_IS_AIV {
        TPipe pipe;
        TBuf<TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, 512);
        LocalTensor<half> a = buffer.Get<half>();
        Duplicate(a, half(1.0f), p.v[0] != 0 ? 255 : 256);
        Settle();
        DataCopy(Gm<half>(tile), a, 256);  // @read
        CrossCoreSetFlag<2, PIPE_MTE3>(3);
    }
    if ASCEND_IS_AIC {
        TPipe pipe;
        TBuf<TPosition::A1> l1;
        TBuf<TPosition::A2> l0a;
        TBuf<TPosition::B2> l0b;
        TBuf<TPosition::CO1> l0c;
        pipe.InitBuffer(l1, 512);
        pipe.InitBuffer(l0a, 512);
        pipe.InitBuffer(l0b, 512);
        pipe.InitBuffer(l0c, 1024);
        CrossCoreWaitFlag(3);
        DataCopy(l1.Get<half>(), Gm<half>(tile), 256);
        Settle();
        LoadData(l0a.Get<half>(), l1.Get<half>(), LoadData2DParams(0, 1, 1, 0, 0, false, 0));
        LoadDataWithTranspose(l0b.Get<half>(), l1.Get<half>(),
                              LoadData2dTransposeParams(0, 1, 1, 0, 0));
        Settle();
        const MmadParams sizes(16, 16, 16, 0, false, true);
        Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(), sizes);  // @read
        Settle();
        const FixpipeParamsV220 whole(16, 16, 16, 16, false);
        GlobalTensor<float> to = Gm<float>(out + GetBlockIdx() * 1024);
        Fixpipe<float, float, CFG_ROW_MAJOR>(to, l0c.Get<float>(), whole);  // @store
        Settle();
    }
}

namespace {

// A 16 x 48 (three fractals), B 48 x 16 in L0A and L0B; what L1 holds of them is up to the kernel.
struct Cube {
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    TBuf<TPosition::C2> table;
    LocalTensor<half> a;
    LocalTensor<half> b;
    Cube() {
        pipe.InitBuffer(l1, 6 * 512);
        pipe.InitBuffer(l0a, 3 * 512);
        pipe.InitBuffer(l0b, 3 * 512);
        pipe.InitBuffer(l0c, 1024);
        pipe.InitBuffer(table, 64);
        a = l1.Get<half>();
        b = a[3 * 256];
    }
    void Load() {
        Settle();
        LoadData(l0a.Get<half>(), a, LoadData2DParams(0, 3, 1, 0, 0, false, 0));  // @read
        LoadData(l0b.Get<half>(), b, LoadData2DParams(0, 3, 1, 0, 0, true, 0));   // @read
        Settle();
    }
    void Multiply(uint16_t m, uint16_t n, uint16_t k, bool init = true) {
        const MmadParams sizes(m, n, k, 0, false, init);
        Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(), sizes);  // @read
        Settle();
    }
    void Put(GM_ADDR out, uint16_t m) {
        const FixpipeParamsV220 rows(16, m, 16, 16, false);
        Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), l0c.Get<float>(), rows);  // @store
        Settle();
    }
};

void Fill(const LocalTensor<half>& l1, uint16_t fractals) {
    InitConstValue(l1, InitConstValueParams<half>(1, uint16_t(fractals * 16), 0, half(1.0f)));
}

}  // namespace

// k = 48, of which the last 16 were never copied to L1; with k = 32 they are not read.
TEST_KERNEL(unwritten_k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Cube cube;
    Fill(cube.a, 2);
    Fill(cube.b, 3);
    cube.Load();
    cube.Multiply(16, 16, p.v[0] != 0 ? 48 : 32);
    cube.Put(out, 16);
}

// Eight rows of A: sixteen must not be multiplied, even if only eight are stored.
TEST_KERNEL(unwritten_rows) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Cube cube;
    DataCopy(cube.a, Gm<half>(in1), Nd2NzParams(1, 8, 48, 0, 48, 16, 1, 0));
    Fill(cube.b, 3);
    cube.Load();
    cube.Multiply(p.v[0] != 0 ? 16 : 8, 16, 48);
    cube.Put(out, 8);
}

// One column of B; n = 16 is all of it.
TEST_KERNEL(unwritten_column) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Cube cube;
    Fill(cube.a, 3);
    DataCopy(cube.b, Gm<half>(in1), Nd2NzParams(1, p.v[0] != 0 ? 47 : 48, 16, 0, 16, 48, 1, 0));
    cube.Load();
    cube.Multiply(16, 16, 48);
    cube.Put(out, 16);
}

// A product that adds to an L0C which no product started.
TEST_KERNEL(unwritten_accumulator) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Cube cube;
    Fill(cube.a, 6);
    cube.Load();
    cube.Multiply(16, 16, 32, p.v[0] == 0);
    cube.Multiply(16, 16, 16, false);
    cube.Put(out, 16);
}

TEST_KERNEL(unwritten_bias) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, p, tiling);
    Cube cube;
    Fill(cube.a, 6);
    cube.Load();
    if (p.v[0] == 0) {
        DataCopy(cube.table.Get<float>(), cube.a.ReinterpretCast<float>(), 16);
    }
    Settle();
    MmadParams mmad(16, 16, 48, 0, true, false);
    mmad.isBias = true;
    LocalTensor<float> c = cube.l0c.Get<float>();
    LocalTensor<float> bias = cube.table.Get<float>();
    Mmad(c, cube.l0a.Get<half>(), cube.l0b.Get<half>(), bias, mmad);  // @read
    Settle();
    cube.Put(out, 16);
}
