// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

namespace {

// One 32 B block a core, so that no two cores touch the same bytes.
void Post(GM_ADDR out, int64_t slot, int32_t value) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 32);
    LocalTensor<int32_t> block = buffer.Get<int32_t>();
    Duplicate(block, value, 8);
    Settle();
    DataCopy(Gm<int32_t>(out)[slot * 8], block, 8);
    Settle();
}

int32_t Read(GM_ADDR out, int64_t slot) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 32);
    LocalTensor<int32_t> block = buffer.Get<int32_t>();
    DataCopy(block, Gm<int32_t>(out)[slot * 8], 8);
    Settle();
    return block.GetValue(0);
}

}  // namespace

// Who am I: {block index, sub-block index, block count} of every core.
TEST_KERNEL(test_identity) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        const int32_t value =
            static_cast<int32_t>(GetBlockIdx() * 10000 + GetSubBlockIdx() * 1000 + GetBlockNum());
        Post(out, GetBlockIdx(), value);
    }
    if ASCEND_IS_AIC {
        Gm<int32_t>(out).SetValue(4096 + GetBlockIdx(), static_cast<int32_t>(GetBlockIdx()));
    }
}

// AIC -> AIV -> AIC ping-pong, `rounds` times, with `ahead` flags in flight.
TEST_KERNEL(test_ping_pong) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    const int64_t rounds = params.v[0];
    const int64_t ahead = params.v[1];
    if ASCEND_IS_AIC {
        for (int64_t i = 0; i < rounds; ++i) {
            if (i >= ahead) {
                CrossCoreWaitFlag(4);
            }
            Gm<int32_t>(workspace).SetValue(GetBlockIdx() * 8 + i % ahead,
                                            static_cast<int32_t>(i + 1));
            Settle();
            CrossCoreSetFlag<2, PIPE_FIX>(3);
        }
        for (int64_t i = 0; i < (rounds < ahead ? rounds : ahead); ++i) {
            CrossCoreWaitFlag(4);
        }
    }
    if ASCEND_IS_AIV {
        int32_t sum = 0;
        for (int64_t i = 0; i < rounds; ++i) {
            CrossCoreWaitFlag(3);
            sum += Gm<int32_t>(workspace).GetValue(GetBlockIdx() / 2 * 8 + i % ahead);
            Settle();
            CrossCoreSetFlag<2, PIPE_MTE2>(4);
        }
        Post(out, GetBlockIdx(), sum);
    }
}

// Mode 1: the two AIVs of a block exchange values, in rounds.
TEST_KERNEL(test_neighbours) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        int32_t value = static_cast<int32_t>(GetBlockIdx()) + 1;
        for (int32_t i = 0; i < 5; ++i) {
            Post(out, GetBlockIdx(), value);
            CrossCoreSetFlag<1, PIPE_MTE3>(5);
            CrossCoreWaitFlag(5);
            value += Read(out, GetBlockIdx() ^ 1);
            CrossCoreSetFlag<1, PIPE_MTE2>(6);
            CrossCoreWaitFlag(6);
        }
        Post(out, GetBlockIdx(), value);
    }
}

// A sum over all AIVs in rounds: mode-0 flags, SyncAll of the AIVs, or SyncAll of every core.
TEST_KERNEL(test_all_sum) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    const int64_t how = params.v[0];
    for (int32_t round = 0; round < 3; ++round) {
        if ASCEND_IS_AIV {
            const int32_t old = round == 0 ? static_cast<int32_t>(GetBlockIdx())
                                           : Read(out, (round - 1) * 64 + GetBlockIdx());
            Post(workspace, round * 64 + GetBlockIdx(), old + 1);
        }
        if (how == 2) {
            SyncAll<false>();
        } else if ASCEND_IS_AIV {
            if (how == 1) {
                SyncAll();
            } else {
                CrossCoreSetFlag<0, PIPE_MTE3>(7);
                CrossCoreWaitFlag(7);
            }
        }
        if ASCEND_IS_AIV {
            int32_t sum = 0;
            for (int64_t i = 0; i < GetBlockNum() * 2; ++i) {
                sum += Read(workspace, round * 64 + i);
            }
            Post(out, round * 64 + GetBlockIdx(), sum);
        }
    }
}

// Queues hand a tile over and over; the counters see every instruction.
TEST_KERNEL(test_queues) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TQue<TPosition::VECIN, 2> in;
    TQue<TPosition::VECOUT, 2> outQueue;
    pipe.InitBuffer(in, 2, 1024);
    pipe.InitBuffer(outQueue, 2, 1024);
    for (int32_t i = 0; i < 6; ++i) {
        LocalTensor<float> x = in.AllocTensor<float>();
        DataCopy(x, Gm<float>(in0)[i * 256], 256);
        in.EnQue(x);
        x = in.DeQue<float>();
        LocalTensor<float> y = outQueue.AllocTensor<float>();
        TRACE_START(1);
        Muls(y, x, 2.0f, 256);
        TRACE_STOP(1);
        PipeBarrier<PIPE_V>();
        Adds(y, y, 1.0f, 64, 4, UnaryRepeatParams());
        outQueue.EnQue(y);
        in.FreeTensor(x);
        y = outQueue.DeQue<float>();
        DataCopy(Gm<float>(out)[i * 256], y, 256);
        outQueue.FreeTensor(y);
    }
}

// Flags between pipes by hand, with ids from the pipe.
TEST_KERNEL(test_flags) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> x = buffer.Get<float>();
    const TEventID loaded = pipe.AllocEventID<HardEvent::MTE2_V>();
    DataCopy(x, Gm<float>(in0), 256);
    SetFlag<HardEvent::MTE2_V>(loaded);
    WaitFlag<HardEvent::MTE2_V>(loaded);
    pipe.ReleaseEventID<HardEvent::MTE2_V>(loaded);
    Muls(x, x, 3.0f, 256);
    // With six ids taken, the next free one is of those that kernels may not just pick.
    TEventID taken[6];
    for (TEventID& id : taken) {
        id = pipe.AllocEventID<HardEvent::V_MTE3>();
    }
    const int32_t done = static_cast<int32_t>(GetTPipePtr()->FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(done);
    WaitFlag<HardEvent::V_MTE3>(done);
    for (TEventID id : taken) {
        pipe.ReleaseEventID<HardEvent::V_MTE3>(id);
    }
    DataCopy(Gm<float>(out), x, 256);
}

// Races that the plain order hides. 0: every AIV draws a number from a counter in GM and signs the
// place it got, without any order among the AIVs. 1: the AIC fills a table that its AIVs read
// without waiting for it. 2: the same with the flag.
TEST_KERNEL(test_races) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    const int64_t how = params.v[0];
    constexpr int64_t kRows = 8;
    if (how == 0) {
        if ASCEND_IS_AIV {
            GlobalTensor<int32_t> counter = Gm<int32_t>(workspace);
            for (int32_t round = 0; round < 2; ++round) {
                const int32_t place = counter.GetValue(0);
                counter.SetValue(0, place + 1);
                Gm<int32_t>(out).SetValue(place, static_cast<int32_t>(GetBlockIdx()) + 1);
            }
        }
        return;
    }
    if ASCEND_IS_AIC {
        for (int64_t i = 0; i < kRows; ++i) {
            Gm<int32_t>(workspace).SetValue(GetBlockIdx() * kRows + i, static_cast<int32_t>(i + 1));
        }
        if (how == 2) {
            Settle();
            CrossCoreSetFlag<2, PIPE_FIX>(3);
        }
    }
    if ASCEND_IS_AIV {
        if (how == 2) {
            CrossCoreWaitFlag(3);
        }
        int32_t sum = 0;
        for (int64_t i = 0; i < kRows; ++i) {
            sum = sum * 10 + Gm<int32_t>(workspace).GetValue(GetBlockIdx() / 2 * kRows + i);
        }
        Gm<int32_t>(out).SetValue(GetBlockIdx() * 8, sum);
    }
}
