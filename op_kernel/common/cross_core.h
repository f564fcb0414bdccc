// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Hand-overs between the cube core (AIC) and the two vector cores (AIV) of a block. Data crosses
// through GM workspace (or through an output); a cross-core flag in mode 2 says that it is there.
// The AIC is released after both AIVs have set, an AIC's set reaches both AIVs: so both AIVs take
// part in every hand-over, with or without rows of their own.
//
// Flag ids: one an edge (producer to consumer), never one a ring slot: a flag counts up to 15.
// Ids 11..14 belong to SyncAll. Every set must be waited for before the kernel ends.
#ifndef KDA_OP_KERNEL_COMMON_CROSS_CORE_H
#define KDA_OP_KERNEL_COMMON_CROSS_CORE_H

#include "kernel_operator.h"

namespace kda {

constexpr uint8_t kBlockScope = 2;  // CrossCoreSetFlag mode: the AIC and the AIVs of one block

// One direction of a hand-over without a ring, for edges whose slot is free again by construction.
template <uint16_t kFlag>
struct CubeToVectorFlag {
    __aicore__ static inline void Set() { AscendC::CrossCoreSetFlag<kBlockScope, PIPE_FIX>(kFlag); }
    __aicore__ static inline void Wait() { AscendC::CrossCoreWaitFlag(kFlag); }
};
template <uint16_t kFlag>
struct VectorToCubeFlag {
    __aicore__ static inline void Set() {
        AscendC::CrossCoreSetFlag<kBlockScope, PIPE_MTE3>(kFlag);
    }
    __aicore__ static inline void Wait() { AscendC::CrossCoreWaitFlag(kFlag); }
};

// A ring of kDepth workspace slots between a producer and a consumer that both walk the same
// sequence of items. The producer starts with kDepth credits; every Release gives one back.
//   producer:  slot = ring.Acquire();  write slot;  ring.Publish();   ...   ring.Drain();
//   consumer:  slot = ring.Wait();     read slot;   ring.Release();
// kWritten/kRead are the pipes that write and read the slot: the flag is set behind them.
// kReady and kFree are the two flag ids of this ring.
template <uint16_t kReady, uint16_t kFree, uint32_t kDepth, pipe_t kWritten, pipe_t kRead>
class WorkspaceRing {
public:
    static_assert(kDepth >= 2 && kDepth <= 15, "a flag counts up to 15");

    __aicore__ inline WorkspaceRing() {}
    __aicore__ inline uint32_t Acquire() {
        if (produced_ >= kDepth) {
            AscendC::CrossCoreWaitFlag(kFree);
        }
        return produced_ % kDepth;
    }
    __aicore__ inline void Publish() {
        AscendC::CrossCoreSetFlag<kBlockScope, kWritten>(kReady);
        ++produced_;
    }
    // Takes the credits that are still out, so that the flag is back at zero.
    __aicore__ inline void Drain() {
        const uint32_t out = produced_ < kDepth ? produced_ : kDepth;
        for (uint32_t i = 0; i < out; ++i) {
            AscendC::CrossCoreWaitFlag(kFree);
        }
        produced_ = 0;
    }

    __aicore__ inline uint32_t Wait() {
        AscendC::CrossCoreWaitFlag(kReady);
        return consumed_ % kDepth;
    }
    __aicore__ inline void Release() {
        AscendC::CrossCoreSetFlag<kBlockScope, kRead>(kFree);
        ++consumed_;
    }

private:
    uint32_t produced_ = 0;
    uint32_t consumed_ = 0;
};

// The AIVs write with MTE3 and the AIC reads into L1 with MTE2; the AIC writes with Fixpipe and the
// AIVs read into UB with MTE2.
template <uint16_t kReady, uint16_t kFree, uint32_t kDepth>
using VectorToCubeRing = WorkspaceRing<kReady, kFree, kDepth, PIPE_MTE3, PIPE_MTE2>;
template <uint16_t kReady, uint16_t kFree, uint32_t kDepth>
using CubeToVectorRing = WorkspaceRing<kReady, kFree, kDepth, PIPE_FIX, PIPE_MTE2>;

// Set and wait in one place: later instructions of the second pipe start after everything issued
// so far on the first. For single hand-overs; loops should set early and wait late.
template <AscendC::HardEvent kEvent>
__aicore__ inline void SyncPipes() {
    const event_t event = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
    AscendC::SetFlag<kEvent>(event);
    AscendC::WaitFlag<kEvent>(event);
}

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_CROSS_CORE_H
