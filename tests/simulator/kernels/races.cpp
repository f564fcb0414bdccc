// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "race_tiles.h"

using namespace races;

// One race a kernel, for test_races.py. With v[0] set, the order that is missing is there. The two
// instructions of a race end in the comments "first" and "second": the tests look for their lines.
TEST_KERNEL(test_race_mte2_v) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    DataCopy(t.Tile(0), Gm<float>(in0), kCount);  // first
    if (t.ordered) {
        Order<HardEvent::MTE2_V>();
    }
    Muls(t.Tile(1), t.Tile(0), 2.0f, kCount);  // second
}

TEST_KERNEL(test_race_v_mte3) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);  // first
    if (t.ordered) {
        Order<HardEvent::V_MTE3>();
    }
    DataCopy(Gm<float>(out), t.Tile(0), kCount);  // second
}

TEST_KERNEL(test_race_write_after_read) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    PipeBarrier<PIPE_V>();
    Order<HardEvent::V_MTE3>();
    DataCopy(Gm<float>(out), t.Tile(0), kCount);  // first
    if (t.ordered) {
        Order<HardEvent::MTE3_V>();
    }
    Duplicate(t.Tile(0), 2.0f, kCount);  // second
}

TEST_KERNEL(test_race_write_after_write) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);  // first
    if (t.ordered) {
        Order<HardEvent::V_MTE2>();
    }
    DataCopy(t.Tile(0), Gm<float>(in0), kCount);  // second
}

TEST_KERNEL(test_race_vector) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);  // first
    if (t.ordered) {
        PipeBarrier<PIPE_V>();
    }
    Adds(t.Tile(1), t.Tile(0), 1.0f, kCount);  // second
}

TEST_KERNEL(test_race_vector_overwrite) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    PipeBarrier<PIPE_V>();
    Adds(t.Tile(1), t.Tile(0), 1.0f, kCount);  // first
    if (t.ordered) {
        PipeBarrier<PIPE_V>();
    }
    Duplicate(t.Tile(0), 3.0f, kCount);  // second
}

// Two readers, and an instruction that works in place: neither needs a barrier.
TEST_KERNEL(test_no_race_vector) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    Duplicate(t.Tile(2), 1.0f, kCount);
    PipeBarrier<PIPE_V>();
    Adds(t.Tile(1), t.Tile(0), 1.0f, kCount);
    Adds(t.Tile(3), t.Tile(0), 1.0f, kCount);
    Adds(t.Tile(2), t.Tile(2), 1.0f, kCount);
}

// Writes of 20 bytes next to each other in one granule are no race; the same bytes are.
TEST_KERNEL(test_race_partial) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    const int64_t at = t.ordered ? 5 : 4;
    Duplicate(t.Tile(0), 1.0f, 5);           // first
    t.Tile(0).SetValue(uint32_t(at), 2.0f);  // second
}

TEST_KERNEL(test_race_v_s) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);  // first
    if (t.ordered) {
        Order<HardEvent::V_S>();
    }
    const float value = t.Tile(0).GetValue(3);  // second
    Duplicate(t.Tile(1), value, kCount);
}

TEST_KERNEL(test_race_s_v) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    t.Tile(0).SetValue(0, 2.0f);  // first
    if (t.ordered) {
        Order<HardEvent::S_V>();
    }
    Adds(t.Tile(1), t.Tile(0), 1.0f, 8);  // second
}

TEST_KERNEL(test_race_mte2) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    DataCopy(t.Tile(0), Gm<float>(in0), kCount);  // first
    if (t.ordered) {
        PipeBarrier<PIPE_MTE2>();
    }
    DataCopy(t.all[8], Gm<float>(in0), kCount);  // second
}

TEST_KERNEL(test_race_mte3) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    Order<HardEvent::V_MTE3>();
    DataCopy(Gm<float>(out), t.Tile(0), kCount);  // first
    if (t.ordered) {
        PipeBarrier<PIPE_MTE3>();
    }
    DataCopy(Gm<float>(out)[kCount - 1], t.Tile(0), kCount);  // second
}

TEST_KERNEL(test_race_mte3_mte2) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    Order<HardEvent::V_MTE3>();
    DataCopy(Gm<float>(out), t.Tile(0), kCount);  // first
    if (t.ordered) {
        Order<HardEvent::MTE3_MTE2>();
    }
    DataCopy(t.Tile(1), Gm<float>(out), kCount);  // second
}

// The flag was set before the copy that it should stand for.
TEST_KERNEL(test_race_early_flag) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    if (!t.ordered) {
        SetFlag<HardEvent::MTE2_V>(0);
    }
    DataCopy(t.Tile(0), Gm<float>(in0), kCount);  // first
    if (t.ordered) {
        SetFlag<HardEvent::MTE2_V>(0);
    }
    WaitFlag<HardEvent::MTE2_V>(0);
    Muls(t.Tile(1), t.Tile(0), 2.0f, kCount);  // second
}

// Two sets with a copy behind each: the first one's id says nothing about the second copy.
TEST_KERNEL(test_race_other_id) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    DataCopy(t.Tile(0), Gm<float>(in0), kCount);
    SetFlag<HardEvent::MTE2_V>(0);
    DataCopy(t.Tile(1), Gm<float>(in0), kCount);  // first
    SetFlag<HardEvent::MTE2_V>(1);
    WaitFlag<HardEvent::MTE2_V>(t.ordered ? 1 : 0);
    Muls(t.Tile(2), t.Tile(1), 2.0f, kCount);  // second
    WaitFlag<HardEvent::MTE2_V>(t.ordered ? 0 : 1);
}

// A queue's buffer comes back from FreeTensor too early when its last reader is elsewhere.
TEST_KERNEL(test_race_queue) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    TQue<TPosition::VECIN, 1> queue;
    t.pipe.InitBuffer(queue, 1, kBytes);
    for (int32_t i = 0; i < 2; ++i) {
        LocalTensor<float> x = queue.AllocTensor<float>();
        DataCopy(x, Gm<float>(in0), kCount);  // second
        queue.EnQue(x);
        x = queue.DeQue<float>();
        Muls(t.Tile(0), x, 2.0f, kCount);
        Order<HardEvent::MTE2_MTE3>();
        DataCopy(Gm<float>(out)[i * kCount], x, kCount);  // first
        if (t.ordered) {
            Order<HardEvent::MTE3_V>();
        }
        queue.FreeTensor(x);
        PipeBarrier<PIPE_V>();
    }
}

// A queue is given the buffer before the copy into it, whatever else orders the copy.
TEST_KERNEL(test_hand_over_enque) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    TQue<TPosition::VECIN, 1> queue;
    t.pipe.InitBuffer(queue, 1, kBytes);
    LocalTensor<float> x = queue.AllocTensor<float>();
    if (!t.ordered) {
        queue.EnQue(x);  // first
    }
    DataCopy(x, Gm<float>(in0), kCount);  // second
    if (t.ordered) {
        queue.EnQue(x);
    }
    Order<HardEvent::MTE2_V>(1);
    x = queue.DeQue<float>();
    Muls(t.Tile(0), x, 2.0f, kCount);
    queue.FreeTensor(x);
}

// A buffer goes back to its queue before its last use, though nobody takes it again.
TEST_KERNEL(test_hand_over_free) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    TQue<TPosition::VECIN, 1> queue;
    t.pipe.InitBuffer(queue, 1, kBytes);
    LocalTensor<float> x = queue.AllocTensor<float>();
    DataCopy(x, Gm<float>(in0), kCount);
    queue.EnQue(x);
    x = queue.DeQue<float>();
    if (!t.ordered) {
        queue.FreeTensor(x);  // first
    }
    Muls(t.Tile(0), x, 2.0f, kCount);  // second
    if (t.ordered) {
        queue.FreeTensor(x);
    }
}

// Block 1 reads or writes what block 0 wrote; between them mode 0, SyncAll, or nothing.
TEST_KERNEL(test_race_blocks) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        Vectors t(tiling);
        Duplicate(t.Tile(0), 1.0f, kCount);
        Order<HardEvent::V_MTE3>();
        if (GetBlockIdx() == 0) {
            DataCopy(Gm<float>(workspace), t.Tile(0), kCount);  // first
        }
        if (t.params.v[0] == 1) {
            CrossCoreSetFlag<0, PIPE_MTE3>(3);
            CrossCoreWaitFlag(3);
        } else if (t.params.v[0] == 2) {
            SyncAll();
        } else if (t.params.v[0] == 3) {
            // The flag stands for what the vector pipe has done, not for the copy.
            CrossCoreSetFlag<0, PIPE_V>(3);
            CrossCoreWaitFlag(3);
        }
        if (GetBlockIdx() == 2) {
            DataCopy(t.Tile(1), Gm<float>(workspace)[8], kCount);  // second
        }
    }
}

// Both AIVs of a block add to the same bytes, which is no race; then one reads, in mode 1 order.
TEST_KERNEL(test_race_atomic) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        Vectors t(tiling);
        Duplicate(t.Tile(0), 1.0f, kCount);
        Order<HardEvent::V_MTE3>();
        if (t.params.v[0] != 2 || GetSubBlockIdx() == 0) {
            SetAtomicAdd<float>();
        }
        DataCopy(Gm<float>(out), t.Tile(0), kCount);  // first
        SetAtomicNone();
        if (t.params.v[0] == 1) {
            CrossCoreSetFlag<1, PIPE_MTE3>(4);
            CrossCoreWaitFlag(4);
        }
        if (t.params.v[0] != 2 && GetSubBlockIdx() == 1) {
            DataCopy(t.Tile(1), Gm<float>(out), kCount);  // second
        }
    }
}

// The AIC reads into L1 what the AIVs wrote, behind a flag of the pipe in v[1].
TEST_KERNEL(test_race_aiv_aic) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIV {
        Vectors t(tiling);
        Duplicate(t.Tile(0), 1.0f, kCount);
        Order<HardEvent::V_MTE3>();
        DataCopy(Gm<float>(workspace)[GetSubBlockIdx() * kCount], t.Tile(0), kCount);  // first
        if (t.ordered) {
            CrossCoreSetFlag<2, PIPE_MTE3>(5);
        } else {
            CrossCoreSetFlag<2, PIPE_V>(5);
        }
    }
    if ASCEND_IS_AIC {
        TPipe pipe;
        TBuf<TPosition::A1> buffer;
        pipe.InitBuffer(buffer, kBytes);
        CrossCoreWaitFlag(5);
        DataCopy(buffer.Get<float>(), Gm<float>(workspace)[kCount], kCount);  // second
    }
}

// A cube core's chain from L1 to GM. v[0] counts the order that is there, from the front.
TEST_KERNEL(test_race_cube) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const int64_t order = reinterpret_cast<__gm__ TestParams*>(tiling)->v[0];
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    pipe.InitBuffer(l1, kBytes);
    pipe.InitBuffer(l0a, kBytes);
    pipe.InitBuffer(l0b, kBytes);
    pipe.InitBuffer(l0c, kBytes);
    LocalTensor<half> x = l1.Get<half>();
    LocalTensor<float> c = l0c.Get<float>();
    DataCopy(x, Gm<half>(in0), 256);  // loaded
    if (order > 0) {
        Order<HardEvent::MTE2_MTE1>();
    }
    LoadData(l0a.Get<half>(), x, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
    LoadData(l0b.Get<half>(), x, LoadData2DParams(0, 1, 0, 0, 0, false, 0));  // split
    if (order > 1) {
        Order<HardEvent::MTE1_M>(3);
    }
    MmadParams params;
    params.m = params.n = params.k = 16;
    params.cmatrixInitVal = true;
    Mmad(c, l0a.Get<half>(), l0b.Get<half>(), params);  // started
    if (order > 2) {
        PipeBarrier<PIPE_M>();
    }
    params.cmatrixInitVal = false;
    Mmad(c, l0a.Get<half>(), l0b.Get<half>(), params);  // added
    if (order > 3) {
        Order<HardEvent::M_FIX>();
    }
    FixpipeParamsV220 fix;
    fix.nSize = fix.mSize = fix.srcStride = fix.dstStride = 16;
    Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);  // stored
    if (order > 4) {
        PipeBarrier<PIPE_FIX>();
    }
    Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(out), c, fix);  // stored again
    if (order > 5) {
        Order<HardEvent::M_MTE1>(3);
    }
    LoadData(l0a.Get<half>(), x, LoadData2DParams(0, 1, 0, 0, 0, false, 0));  // reloaded
}

// Two products of v[0] rows and v[1] columns on one result; with v[2], a barrier between them.
TEST_KERNEL(test_race_accumulate) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const int64_t* v = reinterpret_cast<__gm__ TestParams*>(tiling)->v;
    TPipe pipe;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    pipe.InitBuffer(l0a, 8 * kBytes);
    pipe.InitBuffer(l0b, 8 * kBytes);
    pipe.InitBuffer(l0c, 32 * kBytes);
    TBuf<TPosition::A1> l1;
    pipe.InitBuffer(l1, 8 * kBytes);
    LoadData(l0a.Get<half>(), l1.Get<half>(), LoadData2DParams(0, 16, 1, 0, 0, false, 0));
    LoadData(l0b.Get<half>(), l1.Get<half>(), LoadData2DParams(0, 16, 1, 0, 0, false, 0));
    Order<HardEvent::MTE1_M>(3);
    MmadParams params;
    params.m = static_cast<uint16_t>(v[0]);
    params.n = static_cast<uint16_t>(v[1]);
    params.k = 16;
    params.cmatrixInitVal = true;
    Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(), params);  // first
    if (v[2] != 0) {
        PipeBarrier<PIPE_M>();
    }
    params.cmatrixInitVal = false;
    Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(), params);  // second
}

// Flags used wrongly; the simulator says both lines.
TEST_KERNEL(test_flag_twice) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    SetFlag<HardEvent::MTE2_V>(0);  // first
    if (reinterpret_cast<__gm__ TestParams*>(tiling)->v[0] != 0) {
        WaitFlag<HardEvent::MTE2_V>(0);
    }
    SetFlag<HardEvent::MTE2_V>(0);  // second
    WaitFlag<HardEvent::MTE2_V>(0);
}

TEST_KERNEL(test_flag_not_set) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    SetFlag<HardEvent::MTE2_V>(0);   // first
    WaitFlag<HardEvent::MTE2_V>(0);  // taken
    if (reinterpret_cast<__gm__ TestParams*>(tiling)->v[0] != 0) {
        SetFlag<HardEvent::MTE2_V>(0);
    }
    WaitFlag<HardEvent::MTE2_V>(0);  // second
}

TEST_KERNEL(test_flag_left) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    SetFlag<HardEvent::V_MTE3>(1);  // first
    if (reinterpret_cast<__gm__ TestParams*>(tiling)->v[0] != 0) {
        WaitFlag<HardEvent::V_MTE3>(1);
    }
}

// Cross-core flags: v[0] = 0 waited for on the AIVs, 1 one set too many, 2 one wait too many.
TEST_KERNEL(test_flag_cross) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    const int64_t how = reinterpret_cast<__gm__ TestParams*>(tiling)->v[0];
    if ASCEND_IS_AIC {
        for (int64_t i = 0; i < (how == 1 ? 2 : 1); ++i) {
            CrossCoreSetFlag<2, PIPE_FIX>(6);  // first
        }
    }
    if ASCEND_IS_AIV {
        for (int64_t i = 0; i < (how == 2 ? 2 : 1); ++i) {
            CrossCoreWaitFlag(6);  // second
        }
    }
}

// Flags of one id behind different pipes, v[0] of them waited for before the read: the counter does
// not tell which of them has counted, so the first wait promises nothing about the copy.
TEST_KERNEL(test_race_mixed_sets) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    const int64_t waits = reinterpret_cast<__gm__ TestParams*>(tiling)->v[0];
    TPipe pipe;
    if ASCEND_IS_AIC {
        TBuf<TPosition::A1> l1;
        TBuf<TPosition::CO1> l0c;
        pipe.InitBuffer(l1, kBytes);
        pipe.InitBuffer(l0c, kBytes);
        FixpipeParamsV220 fix(16, 16, 16, 16, false);
        Fixpipe<float, float, CFG_ROW_MAJOR>(Gm<float>(workspace), l0c.Get<float>(), fix);  // first
        CrossCoreSetFlag<2, PIPE_FIX>(7);
        CrossCoreSetFlag<2, PIPE_MTE2>(7);
    }
    if ASCEND_IS_AIV {
        TBuf<TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, kBytes);
        for (int64_t i = 0; i < waits; ++i) {
            CrossCoreWaitFlag(7);
        }
        DataCopy(buffer.Get<float>(), Gm<float>(workspace), kCount);  // second
        for (int64_t i = waits; i < 2; ++i) {
            CrossCoreWaitFlag(7);
        }
    }
}

// Every AIV writes v[1] bytes, 20 bytes from the next AIV's: several share a granule, none a byte
// unless they write more than 20.
TEST_KERNEL(test_race_neighbours) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    Vectors t(tiling);
    Duplicate(t.Tile(0), 1.0f, kCount);
    Order<HardEvent::V_MTE3>();
    DataCopyPad(Gm<half>(out)[GetBlockIdx() * 10], t.Tile(0).ReinterpretCast<half>(),
                DataCopyExtParams(1, uint32_t(t.params.v[1]), 0, 0, 0));  // written
}
