// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

// Each case breaks one rule. The tests know which message it must give.

namespace {

// UB tensors of a vector core.
struct Ub {
    TPipe pipe;
    TBuf<TPosition::VECCALC> first;
    TBuf<TPosition::VECCALC> second;
    LocalTensor<float> a;
    LocalTensor<float> b;
    Ub() {
        pipe.InitBuffer(first, 4096);
        pipe.InitBuffer(second, 4096);
        a = first.Get<float>();
        b = second.Get<float>();
        Duplicate(a, 1.0f, 1024);
        Duplicate(b, 1.0f, 1024);
        Settle();
    }
};

void BadCopy(int64_t which, GM_ADDR in0, GM_ADDR out) {
    Ub ub;
    switch (which) {
        case 0:  // past the buffer
            return DataCopy(ub.a[512], Gm<float>(in0), 1024);
        case 1:  // not 32 bytes
            return DataCopy(ub.a, Gm<float>(in0), 7);
        case 2:  // misaligned
            return DataCopy(ub.a[1], Gm<float>(in0), 8);
        case 3:  // past the GM tensor
            return DataCopy(ub.a, Gm<float>(in0)[4096 - 8], 64);
        case 4:  // in front of it
            return DataCopy(ub.a, Gm<float>(in0 - 64), 8);
        case 5:  // writes an input
            return DataCopy(Gm<float>(in0), ub.a, 8);
        case 6:  // too many blocks
            return DataCopyPad(ub.a, Gm<float>(in0), DataCopyExtParams(4096, 4, 0, 0, 0),
                               DataCopyPadExtParams<float>());
        case 7:  // padding over 32 bytes
            return DataCopyPad(ub.a, Gm<float>(in0), DataCopyExtParams(1, 4, 0, 0, 0),
                               DataCopyPadExtParams<float>(true, 9, 0, 0.0f));
        case 8:  // half an element
            return DataCopyPad(ub.a, Gm<float>(in0), DataCopyExtParams(1, 6, 0, 0, 0),
                               DataCopyPadExtParams<float>());
        case 9:  // write past the output through strides
            return DataCopyPad(Gm<float>(out), ub.a, DataCopyExtParams(8, 4, 0, 4096, 0));
        case 10:  // atomic mode of another type
            SetAtomicAdd<int32_t>();
            return DataCopy(Gm<float>(out), ub.a, 8);
        case 11:  // atomic mode left on
            return SetAtomicAdd<float>();
        default:
            return;
    }
}

void BadVector(int64_t which) {
    Ub ub;
    const UnaryRepeatParams unary;
    switch (which) {
        case 0:  // mask too wide
            return Muls(ub.a, ub.b, 2.0f, 65, 1, unary);
        case 1:  // repeats run out of the buffer
            return Muls(ub.a, ub.b, 2.0f, 64, 17, unary);
        case 2:  // misaligned source
            return Muls(ub.a, ub.b[4], 2.0f, 64);
        case 3:  // repeat N+1 reads what repeat N wrote
            return Muls(ub.a[64], ub.a, 2.0f, 64, 3, unary);
        case 4:  // partial overlap
            return Muls(ub.a[8], ub.a, 2.0f, 64);
        case 5:  // float to bf16 without a rounding
            return Cast(ub.a.ReinterpretCast<bfloat16_t>(), ub.b, RoundMode::CAST_NONE, 64);
        case 6:  // elements that do not fill 256 bytes
            return Compare(ub.a.ReinterpretCast<uint8_t>(), ub.b, ub.b, CMPMODE::LT, 60);
        case 7:  // tensor without a buffer
            return Muls(ub.a, LocalTensor<float>(), 2.0f, 64);
        case 8:  // gather outside the source
            Duplicate(ub.b.ReinterpretCast<uint32_t>(), 4096u, 64);
            PipeBarrier<PIPE_V>();
            return Gather(ub.a, ub.b, ub.b.ReinterpretCast<uint32_t>(), 0u, 64u);
        case 9:  // empty bit mask
        {
            uint64_t none[2] = {0, 0};
            return Muls(ub.a, ub.b, 2.0f, none, 1, unary);
        }
        case 10:  // reduction with a misaligned destination
            return BlockReduceSum(ub.a[4], ub.b, 1, 64, 1, 1, 8);
        case 11:  // scalar outside the tensor
            return ub.a.SetValue(1024, 1.0f);
        default:
            return;
    }
}

void BadPipe(int64_t which, GM_ADDR in0) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECIN, 1> queue;
    switch (which) {
        case 0:  // more UB than a TPipe has
            pipe.InitBuffer(buffer, 100000);
            pipe.InitBuffer(queue, 1, 100000);
            return;
        case 1:  // an AIC's memory
        {
            TBuf<TPosition::A1> a1;
            pipe.InitBuffer(a1, 1024);
            return;
        }
        case 2:  // more buffers than a TPipe has
            for (int i = 0; i < 65; ++i) {
                pipe.InitBuffer(buffer, 32);
            }
            return;
        case 3:  // no buffer left
            pipe.InitBuffer(queue, 2, 256);
            queue.AllocTensor<float>();
            queue.AllocTensor<float>();
            queue.AllocTensor<float>();
            return;
        case 4:  // nothing in the queue
            pipe.InitBuffer(queue, 2, 256);
            queue.DeQue<float>();
            return;
        case 5:  // deeper than the queue
        {
            pipe.InitBuffer(queue, 2, 256);
            LocalTensor<float> x = queue.AllocTensor<float>();
            LocalTensor<float> y = queue.AllocTensor<float>();
            queue.EnQue(x);
            queue.EnQue(y);
            return;
        }
        case 6:  // freed twice
        {
            pipe.InitBuffer(queue, 2, 256);
            LocalTensor<float> x = queue.AllocTensor<float>();
            queue.FreeTensor(x);
            queue.FreeTensor(x);
            return;
        }
        case 7:  // a tensor of something else
        {
            pipe.InitBuffer(queue, 2, 256);
            pipe.InitBuffer(buffer, 256);
            LocalTensor<float> x = buffer.Get<float>();
            queue.EnQue(x);
            return;
        }
        case 8:  // left in the queue
        {
            pipe.InitBuffer(queue, 2, 256);
            LocalTensor<float> x = queue.AllocTensor<float>();
            queue.EnQue(x);
            return;
        }
        case 9:  // nine buffers in flight at one position
        {
            TQue<TPosition::VECIN, 9> deep;
            pipe.InitBuffer(deep, 9, 32);
            for (int i = 0; i < 9; ++i) {
                LocalTensor<float> x = deep.AllocTensor<float>();
                deep.EnQue(x);
            }
            return;
        }
        case 10:  // not initialised
            queue.AllocTensor<float>();
            return;
        case 11:  // two pipes
        {
            TPipe other;
            return;
        }
        case 12:  // more than the TBuf holds
            pipe.InitBuffer(buffer, 256);
            buffer.Get<float>(65);
            return;
        case 13:  // set twice
            SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
            SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
            return;
        case 14:  // waited for but never set
            WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
            return;
        case 15:  // never waited for
            SetFlag<HardEvent::V_MTE3>(EVENT_ID2);
            return;
        case 16:  // the system's
            SetFlag<HardEvent::V_MTE3>(EVENT_ID6);
            return;
        case 17:  // out of range
            SetFlag<HardEvent::V_MTE3>(8);
            return;
        case 18:  // a queue's id
        {
            pipe.InitBuffer(queue, 2, 256);
            LocalTensor<float> x = queue.AllocTensor<float>();
            queue.EnQue(x);
            SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
            return;
        }
        case 19:  // the tiling data after the pipe: it would overwrite UB
        {
            GET_TILING_DATA_WITH_STRUCT(TestParams, late, in0);
            return;
        }
        default:
            return;
    }
}

void BadCube(int64_t which, GM_ADDR out) {
    TPipe pipe;
    TBuf<TPosition::A1> a1Buffer;
    TBuf<TPosition::A2> a2Buffer;
    TBuf<TPosition::B2> b2Buffer;
    TBuf<TPosition::CO1> cBuffer;
    if (which == 0) {  // L0A in pieces that are not fractals
        pipe.InitBuffer(a2Buffer, 768);
        return;
    }
    if (which == 1) {  // a vector core's memory
        TBuf<TPosition::VECCALC> ub;
        pipe.InitBuffer(ub, 256);
        return;
    }
    pipe.InitBuffer(a1Buffer, 8192);
    pipe.InitBuffer(a2Buffer, 8192);
    pipe.InitBuffer(b2Buffer, 8192);
    pipe.InitBuffer(cBuffer, 16384);
    LocalTensor<bfloat16_t> a1 = a1Buffer.Get<bfloat16_t>();
    LocalTensor<bfloat16_t> a2 = a2Buffer.Get<bfloat16_t>();
    LocalTensor<bfloat16_t> b2 = b2Buffer.Get<bfloat16_t>();
    LocalTensor<float> c = cBuffer.Get<float>();
    LoadData(a2, a1, LoadData2DParams(0, 16, 1, 0, 0, false, 0));
    LoadData(b2, a1, LoadData2DParams(0, 16, 1, 0, 0, false, 0));
    Settle();
    MmadParams mmad;
    mmad.m = mmad.n = mmad.k = 32;
    FixpipeParamsV220 fix(32, 32, 32, 32, false);
    switch (which) {
        case 2:  // past L1
            return LoadData(a2, a1, LoadData2DParams(15, 2, 1, 0, 0, false, 0));
        case 3:  // past L0A
            return LoadData(a2, a1, LoadData2DParams(0, 9, 1, 0, 1, false, 0));
        case 4:  // misaligned L0A
            return LoadData(a2[8], a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
        case 5:  // more than was loaded, and than the buffer
            mmad.m = 256;
            return Mmad(c, a2, b2, mmad);
        case 6:  // GEMV
            mmad.m = 1;
            return Mmad(c, a2, b2, mmad);
        case 7:  // result not on 1 KiB
            return Mmad(c[64], a2, b2, mmad);
        case 8:  // operands of another type
            return Mmad(c, a2.ReinterpretCast<half>(), b2.ReinterpretCast<half>(), mmad);
        case 9:  // quantPre forgotten
            return Fixpipe<bfloat16_t, float, CFG_ROW_MAJOR>(Gm<bfloat16_t>(out), c, fix);
        case 10:  // columns that are no multiple of 16
            fix.nSize = 24;
            return Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);
        case 11:  // past the output
            fix.dstStride = 4096;
            return Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);
        case 12:  // left and right exchanged
            return Mmad(c, b2, a2, mmad);
        case 13:  // the pipe's own id
            return SetFlag<HardEvent::M_MTE1>(EVENT_ID1);
        case 14:  // an AIV's event
            return SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        case 15:  // strides beyond the instruction
            return DataCopy(a1, Gm<bfloat16_t>(out), Nd2NzParams(1, 16, 16, 0, 16, 16385, 1, 0));
        case 16:  // rows that overlap
            return DataCopy(a1, Gm<bfloat16_t>(out), Nd2NzParams(1, 16, 32, 0, 16, 16, 1, 0));
        case 17:  // matrices too far apart
            return DataCopy(a1, Gm<bfloat16_t>(out), Nd2NzParams(2, 16, 16, 16, 16, 16, 1, 16400));
        case 18:  // no pitch
            return DataCopy(a1, Gm<bfloat16_t>(out), Nd2NzParams(1, 1, 16, 0, 0, 16, 1, 0));
        case 19:
            return SetHF32Mode(true);
        default:
            return;
    }
}

}  // namespace

TEST_KERNEL(test_bad_vector_core) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    if (params.v[0] == 0) {
        BadCopy(params.v[1], in0, out);
    } else if (params.v[0] == 1) {
        BadVector(params.v[1]);
    } else {
        BadPipe(params.v[1], in0);
    }
}

TEST_KERNEL(test_bad_cube_core) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    BadCube(params.v[0], out);
}

TEST_KERNEL(test_no_type) {}

// Cross-core misuse; block 1 of 2 has the fault, so that the message must name it.
TEST_KERNEL(test_bad_sync) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    const bool second = ASCEND_IS_AIC ? GetBlockIdx() == 1 : GetBlockIdx() / 2 == 1;
    switch (params.v[0]) {
        case 0:  // deadlock: nobody sets
            if ASCEND_IS_AIV {
                CrossCoreWaitFlag(3);
            }
            return;
        case 1:  // one AIV does not set, so the AIC waits for ever
            if ASCEND_IS_AIC {
                CrossCoreWaitFlag(3);
            }
            if ASCEND_IS_AIV {
                if (!(second && GetSubBlockIdx() == 1)) {
                    CrossCoreSetFlag<2, PIPE_MTE3>(3);
                }
            }
            return;
        case 2:  // the counter overflows
            if ASCEND_IS_AIC {
                for (int i = 0; second && i < 16; ++i) {
                    CrossCoreSetFlag<2, PIPE_FIX>(2);
                }
            }
            return;
        case 3:  // set, never waited for
            if ASCEND_IS_AIC {
                if (second) {
                    CrossCoreSetFlag<2, PIPE_FIX>(1);
                }
            }
            return;
        case 4:  // SyncAll's flag
            if ASCEND_IS_AIC {
                CrossCoreSetFlag<2, PIPE_FIX>(12);
            }
            return;
        case 5:  // SyncAll that one core skips
            if ASCEND_IS_AIV {
                if (GetBlockIdx() != 3) {
                    SyncAll();
                }
            }
            return;
        case 6:  // vector-only SyncAll on a cube core
            SyncAll();
            return;
        case 7:  // another mode before the flag has drained
            if ASCEND_IS_AIV {
                CrossCoreSetFlag<1, PIPE_MTE3>(5);
                CrossCoreSetFlag<2, PIPE_MTE3>(5);
            }
            return;
        case 8:  // a vector instruction on a cube core
        {
            TPipe pipe;
            if ASCEND_IS_AIC {
                LocalTensor<float> x;
                Muls(x, x, 2.0f, 64);
            }
            return;
        }
        case 9:  // a cube instruction on a vector core
            if ASCEND_IS_AIV {
                Mmad(LocalTensor<float>(), LocalTensor<half>(), LocalTensor<half>(), MmadParams());
            }
            return;
        case 10:  // a C++ exception
            throw 42;
        case 11:  // an AIV's pipe on a cube core
            if ASCEND_IS_AIC {
                CrossCoreSetFlag<2, PIPE_MTE3>(1);
            }
            return;
        case 12:  // TRACE_STOP is missing
            TRACE_START(3);
            return;
        case 13:  // in a destructor, where no exception could pass
        {
            struct Last {
                ~Last() { WaitFlag<HardEvent::MTE2_S>(EVENT_ID3); }
            };
            Last last;
            return;
        }
        default:
            return;
    }
}
