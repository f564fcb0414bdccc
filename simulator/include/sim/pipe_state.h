// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_PIPE_STATE_H
#define SIM_PIPE_STATE_H

#include <cstdint>

#include "sim/core.h"

// What TPipe and its queues keep: buffers, their states, and the event ids that hand-overs take.
namespace sim {

constexpr uint32_t kPipeBuffers = 64;
constexpr uint32_t kQueueDepth = 64;

struct Buffer {
    AscendC::TBufState state = AscendC::TBufState::FREE;
    uint32_t offset = 0;  // in its memory
    uint32_t bytes = 0;
    Space space = Space::Gm;
    int8_t enQueEvent = -1;
    int8_t freeEvent = -1;
    AscendC::HardEvent enQueKind = AscendC::HardEvent::MAX;
    AscendC::HardEvent freeKind = AscendC::HardEvent::MAX;
};

struct PipeState {
    Core* core = nullptr;
    Buffer buffers[kPipeBuffers];
    uint32_t used = 0;
    uint32_t top[static_cast<size_t>(Space::Count)] = {};
    bool destroyed = false;

    void Init();
    void Destroy();
    void Reset();
    void TakeBack();
    Buffer* Add(AscendC::TPosition position, uint32_t count, uint32_t bytes, const Where& where);
};

// One queue: `first`..`first + count` are its buffers.
struct QueueState {
    Buffer* first = nullptr;
    uint32_t count = 0;
    uint32_t cursor = 0;
    uint32_t inUse = 0;
    uint32_t head = 0;
    uint32_t queued = 0;
    Buffer* ring[kQueueDepth];

    Buffer* Alloc(const Where& where);
    void Free(Buffer* buffer, AscendC::HardEvent event, const Where& where);
    void EnQue(Buffer* buffer, uint32_t depth, AscendC::HardEvent event, const Where& where);
    Buffer* DeQue(uint32_t depth, AscendC::HardEvent event, const Where& where);
};

Local LocalOf(const Buffer* buffer, AscendC::TPosition position);

int8_t TakeEvent(Core& core, AscendC::HardEvent event, bool system);
void ReleaseEvent(Core& core, AscendC::HardEvent event, int32_t id);
int8_t PeekEvent(Core& core, AscendC::HardEvent event);

// The event that orders a queue's hand-over from `source` to `destination`, or back.
constexpr AscendC::HardEvent QueueEvent(Space source, Space destination, bool forward) {
    using E = AscendC::HardEvent;
    return source == Space::Gm && destination == Space::Ub ? (forward ? E::MTE2_V : E::V_MTE2)
           : source == Space::Gm && destination == Space::L1
               ? (forward ? E::MTE2_MTE1 : E::MTE1_MTE2)
           : source == Space::Gm                             ? (forward ? E::MTE2_M : E::M_MTE2)
           : source == Space::Ub && destination == Space::Gm ? (forward ? E::V_MTE3 : E::MTE3_V)
           : source == Space::Ub && destination == Space::L1
               ? (forward ? E::MTE3_MTE1 : E::MTE1_MTE3)
           : source == Space::Ub && destination == Space::L0C ? (forward ? E::V_V : E::MAX)
           : source == Space::Ub ? (forward ? E::MTE2_MTE3 : E::MTE3_MTE2)
           : source == Space::L1 && destination == Space::FixBuf
               ? (forward ? E::MTE1_FIX : E::FIX_MTE1)
           : source == Space::L1 && destination == Space::Ub ? (forward ? E::MTE1_V : E::V_MTE1)
           : source == Space::L1                             ? (forward ? E::MTE1_M : E::M_MTE1)
           : source == Space::L0A || source == Space::L0B    ? (forward ? E::M_V : E::V_M)
           : source == Space::L0C                            ? (forward ? E::M_FIX : E::FIX_M)
                                                             : E::MAX;
}

// A position as the two ends of a TQue: where data comes from and goes to.
constexpr AscendC::TPosition QueueEnd(AscendC::TPosition position, bool source) {
    using P = AscendC::TPosition;
    switch (position) {
        case P::A1:
        case P::B1:
        case P::C1:
        case P::VECIN:
            return source ? P::GM : position;
        case P::A2:
            return source ? P::A1 : position;
        case P::B2:
            return source ? P::B1 : position;
        case P::C2:
            return source ? P::C1 : position;
        case P::C2PIPE2GM:
            return source ? P::B1 : position;
        case P::CO1:
            return source ? position : P::CO2;
        case P::CO2:
        case P::VECOUT:
            return source ? position : P::GM;
        default:
            return P::MAX;
    }
}

// The position whose memory a queue from `source` to `destination` lives in.
constexpr AscendC::TPosition QueueHome(AscendC::TPosition source, AscendC::TPosition destination) {
    using P = AscendC::TPosition;
    return destination == P::GM || destination == P::CO2 ? source : destination;
}

}  // namespace sim

#endif  // SIM_PIPE_STATE_H
