// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "race_tiles.h"

using namespace races;

// Kernels that do what test_race_orders.py tells them, for random programs.
namespace {

template <HardEvent kEvent>
void Flag(bool set, int32_t id) {
    if (set) {
        SetFlag<kEvent>(id);
    } else {
        WaitFlag<kEvent>(id);
    }
}

// By the pipes' numbers in test_race_orders.py: S, V, MTE2, MTE3.
void Flag(bool set, int64_t source, int64_t target, int32_t id) {
    switch (source * 4 + target) {
        case 1:
            return Flag<HardEvent::S_V>(set, id);
        case 2:
            return Flag<HardEvent::S_MTE2>(set, id);
        case 3:
            return Flag<HardEvent::S_MTE3>(set, id);
        case 4:
            return Flag<HardEvent::V_S>(set, id);
        case 6:
            return Flag<HardEvent::V_MTE2>(set, id);
        case 7:
            return Flag<HardEvent::V_MTE3>(set, id);
        case 8:
            return Flag<HardEvent::MTE2_S>(set, id);
        case 9:
            return Flag<HardEvent::MTE2_V>(set, id);
        case 11:
            return Flag<HardEvent::MTE2_MTE3>(set, id);
        case 12:
            return Flag<HardEvent::MTE3_S>(set, id);
        case 13:
            return Flag<HardEvent::MTE3_V>(set, id);
        default:
            return Flag<HardEvent::MTE3_MTE2>(set, id);
    }
}

}  // namespace

// A program of v[0] instructions: {what, a, b, c} each from v[4] on.
TEST_KERNEL(test_race_program) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    constexpr int32_t kSmall = 8;  // floats of a tile
    Vectors t(tiling);
    GlobalTensor<float> gm = Gm<float>(out);
    for (int64_t i = 0; i < t.params.v[0]; ++i) {
        const int64_t* item = &t.params.v[4 + 4 * i];
        LocalTensor<float> a = t.all[uint32_t(item[1] * kSmall)];
        LocalTensor<float> b = t.all[uint32_t(item[2] * kSmall)];
        switch (item[0]) {
            case 0:
                DataCopy(a, gm[item[2] * kSmall], kSmall);  // load
                break;
            case 1:
                Adds(a, b, 1.0f, kSmall);  // add
                break;
            case 2:
                DataCopy(gm[item[2] * kSmall], a, kSmall);  // store
                break;
            case 3:
                a.GetValue(1);  // get
                break;
            case 4:
                a.SetValue(1, 2.0f);  // set
                break;
            case 5:
                item[1] == 0   ? PipeBarrier<PIPE_ALL>()
                : item[1] == 1 ? PipeBarrier<PIPE_V>()
                : item[1] == 2 ? PipeBarrier<PIPE_MTE2>()
                               : PipeBarrier<PIPE_MTE3>();
                break;
            default:
                Flag(item[0] == 6, item[1], item[2], int32_t(item[3]));
        }
    }
}

namespace {

template <uint8_t kMode>
void CrossSet(int64_t pipe, uint16_t id) {
    if (pipe == 1) {
        CrossCoreSetFlag<kMode, PIPE_V>(id);
    } else if (pipe == 2) {
        CrossCoreSetFlag<kMode, PIPE_MTE2>(id);
    } else {
        CrossCoreSetFlag<kMode, PIPE_MTE3>(id);
    }
}

}  // namespace

// A program for each AIV, of v[0] items {what, how} from v[1] on, packed as 16 what + how.
TEST_KERNEL(test_race_cores) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    constexpr int32_t kSmall = 8;  // floats of a tile
    if ASCEND_IS_AIV {
        Vectors t(tiling);
        GlobalTensor<float> gm = Gm<float>(workspace);
        for (int64_t i = 0; i < t.params.v[0]; ++i) {
            const int64_t item = t.params.v[1 + GetBlockIdx() * t.params.v[0] + i];
            const int64_t how = item % 16;
            switch (item / 16) {
                case 0:
                    DataCopy(t.Tile(0), gm[how * kSmall], kSmall);  // load
                    break;
                case 1:
                    DataCopy(gm[how * kSmall], t.Tile(1), kSmall);  // store
                    break;
                case 2:
                    Order<HardEvent::MTE3_MTE2>();
                    break;
                case 3:
                    PipeBarrier<PIPE_ALL>();
                    break;
                case 4:
                    CrossSet<0>(how, 3);
                    break;
                case 5:
                    CrossSet<1>(how, 4);
                    break;
                case 6:
                    CrossCoreWaitFlag(uint16_t(how));
                    break;
                default:
                    SyncAll();
            }
        }
    }
}
