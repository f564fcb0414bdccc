// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <algorithm>

#include "defined.h"
#include "sim/pipe_state.h"

namespace sim {

using AscendC::HardEvent;
using AscendC::TBufState;
using AscendC::TPosition;

void PipeState::Init() {
    core = &This();
    if (core->pipe != nullptr && core->pipe != this) {
        core->op = Op::InitBuffer;
        core->Fail("a second TPipe while the first one lives: they share the same memory");
    }
    // The first member of TPipe, so the addresses agree.
    core->pipe = this;
    destroyed = false;
    Reset();
    if (core->isCube) {
        // The framework's matrix code keeps three ids for itself.
        const size_t event = static_cast<size_t>(HardEvent::M_MTE1);
        core->eventTaken[event] |= 7;
        core->eventSystem[event] |= 7;
    }
}

void PipeState::Destroy() {
    if (destroyed || core == nullptr) {
        return;
    }
    destroyed = true;
    TakeBack();
    Report(*core, Op::PipeBarrier, Ordering{static_cast<int32_t>(PIPE_ALL)});
    if (core->pipe == this) {
        core->pipe = nullptr;
    }
}

// Waits until the buffers are free and gives their events back.
void PipeState::TakeBack() {
    for (uint32_t i = 0; i < used; ++i) {
        Buffer& buffer = buffers[i];
        if (buffer.freeEvent >= 0) {
            ReleaseEvent(*core, buffer.freeKind, buffer.freeEvent);
            Report(*core, Op::AllocTensor,
                   Ordering{static_cast<int32_t>(buffer.freeKind), buffer.freeEvent, -1, &buffer});
            buffer.freeEvent = -1;
        }
    }
}

void PipeState::Reset() {
    TakeBack();
    used = 0;
    std::fill(std::begin(top), std::end(top), 0u);
}

Buffer* PipeState::Add(TPosition position, uint32_t count, uint32_t bytes, const Where& where) {
    core->Begin(Op::InitBuffer, where);
    const Space space = SpaceOf(position);
    if (space == Space::Gm) {
        core->Fail("position %s has no buffers", Name(position));
    }
    if (core->memory[static_cast<size_t>(space)] == nullptr) {
        core->Fail("position %s (%s) belongs to an %s, this is an %s", Name(position), Name(space),
                   core->isCube ? "AIV" : "AIC", core->isCube ? "AIC" : "AIV");
    }
    if (count == 0 || bytes == 0) {
        core->Fail("%u buffers of %u bytes at %s", count, bytes, Name(position));
    }
    const uint32_t rounded = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    const uint32_t align = space == Space::L0A || space == Space::L0B ? 512
                           : space == Space::L0C                      ? 1024
                                                                      : kBlockBytes;
    if (rounded % align != 0) {
        core->Fail("%u bytes at %s: buffers in %s must be multiples of %u bytes", bytes,
                   Name(position), Name(space), align);
    }
    uint32_t& next = top[static_cast<size_t>(space)];
    const uint64_t end = next + static_cast<uint64_t>(rounded) * count;
    const uint32_t limit = kPipeBytes[static_cast<size_t>(space)];
    if (end > limit) {
        core->Fail("%u buffers of %u bytes at %s: %llu bytes of %s in all, TPipe has %u", count,
                   bytes, Name(position), static_cast<unsigned long long>(end), Name(space), limit);
    }
    if (used + count > kPipeBuffers) {
        core->Fail("%u buffers in all, a TPipe has %u", used + count, kPipeBuffers);
    }
    Buffer* first = &buffers[used];
    for (uint32_t i = 0; i < count; ++i) {
        Buffer& buffer = buffers[used++];
        buffer = Buffer();
        buffer.offset = next;
        buffer.bytes = rounded;
        buffer.space = space;
        next += rounded;
        if constexpr (kTracksDefined) {
            TrackBuffer(*core, &buffer, space, buffer.offset, rounded);
        }
    }
    return first;
}

Local LocalOf(const Buffer* buffer, TPosition position) {
    Local local;
    local.base = This().memory[static_cast<size_t>(SpaceOf(position))] + buffer->offset;
    local.capacity = buffer->bytes;
    local.length = buffer->bytes;
    local.buffer = const_cast<Buffer*>(buffer);
    local.position = position;
    return local;
}

int8_t TakeEvent(Core& core, HardEvent event, bool system) {
    const size_t e = static_cast<size_t>(event);
    const unsigned free = static_cast<uint8_t>(~core.eventTaken[e]);
    if (free == 0) {
        core.Fail("all %u event ids of %s are taken", kEventIds, Name(event));
    }
    const int id = __builtin_ctz(free);
    core.eventTaken[e] |= static_cast<uint8_t>(1u << id);
    if (system) {
        core.eventSystem[e] |= static_cast<uint8_t>(1u << id);
    }
    return static_cast<int8_t>(id);
}

void ReleaseEvent(Core& core, HardEvent event, int32_t id) {
    if (id < 0 || id >= static_cast<int32_t>(kEventIds)) {
        core.op = Op::ReleaseEventID;
        core.Fail("event id %d of %s: it must be in 0..7", id, Name(event));
    }
    const size_t e = static_cast<size_t>(event);
    const uint8_t keep = static_cast<uint8_t>(~(1u << id));
    core.eventTaken[e] &= keep;
    core.eventSystem[e] &= keep;
}

int8_t PeekEvent(Core& core, HardEvent event) {
    const unsigned free = static_cast<uint8_t>(~core.eventTaken[static_cast<size_t>(event)]);
    if (free == 0) {
        core.op = Op::AllocEventID;
        core.Fail("all %u event ids of %s are taken", kEventIds, Name(event));
    }
    const int id = __builtin_ctz(free);
    core.eventFetched[static_cast<size_t>(event)] |= static_cast<uint8_t>(1u << id);
    return static_cast<int8_t>(id);
}

namespace {

void CheckMember(Core& core, const QueueState& queue, const Buffer* buffer) {
    if (queue.first == nullptr) {
        core.Fail("the queue was not initialised with InitBuffer");
    }
    if (buffer < queue.first || buffer >= queue.first + queue.count) {
        core.Fail("the tensor does not come from this queue");
    }
}

const char* StateName(TBufState state) {
    return state == TBufState::FREE       ? "free"
           : state == TBufState::OCCUPIED ? "allocated"
           : state == TBufState::ENQUE    ? "in the queue"
                                          : "taken from the queue";
}

}  // namespace

Buffer* QueueState::Alloc(const Where& where) {
    Core& core = This();
    core.Begin(Op::AllocTensor, where);
    if (first == nullptr) {
        core.Fail("the queue was not initialised with InitBuffer");
    }
    if (inUse >= count) {
        core.Fail("all %u buffers of the queue are in use", count);
    }
    while (first[cursor].state != TBufState::FREE) {
        cursor = cursor + 1 == count ? 0 : cursor + 1;
    }
    Buffer* buffer = &first[cursor];
    cursor = cursor + 1 == count ? 0 : cursor + 1;
    if (buffer->freeEvent >= 0) {
        ReleaseEvent(core, buffer->freeKind, buffer->freeEvent);
    }
    Report(core, Op::AllocTensor,
           Ordering{static_cast<int32_t>(buffer->freeKind), buffer->freeEvent, -1, buffer});
    buffer->freeEvent = -1;
    buffer->state = TBufState::OCCUPIED;
    ++inUse;
    return buffer;
}

void QueueState::Free(Buffer* buffer, HardEvent event, const Where& where) {
    Core& core = This();
    core.Begin(Op::FreeTensor, where);
    CheckMember(core, *this, buffer);
    if (buffer->state == TBufState::FREE || buffer->state == TBufState::ENQUE) {
        core.Fail("the buffer is %s", StateName(buffer->state));
    }
    buffer->state = TBufState::FREE;
    buffer->freeKind = event;
    if (event != HardEvent::MAX && event != HardEvent::V_V) {
        buffer->freeEvent = TakeEvent(core, event, true);
    }
    --inUse;
    Report(core, Op::FreeTensor,
           Ordering{static_cast<int32_t>(event), buffer->freeEvent, -1, buffer});
}

void QueueState::EnQue(Buffer* buffer, uint32_t depth, HardEvent event, const Where& where) {
    Core& core = This();
    core.Begin(Op::EnQue, where);
    CheckMember(core, *this, buffer);
    if (queued >= depth) {
        core.Fail("the queue is full: its depth is %u", depth);
    }
    if (buffer->state != TBufState::OCCUPIED && buffer->state != TBufState::DEQUE) {
        core.Fail("the buffer is %s", StateName(buffer->state));
    }
    buffer->state = TBufState::ENQUE;
    buffer->enQueKind = event;
    buffer->enQueEvent =
        event == HardEvent::V_V || event == HardEvent::MAX ? -1 : TakeEvent(core, event, true);
    ring[(head + queued) % kQueueDepth] = buffer;
    ++queued;
    ++core.openEnQue;
    Report(core, Op::EnQue, Ordering{static_cast<int32_t>(event), buffer->enQueEvent, -1, buffer});
}

Buffer* QueueState::DeQue(uint32_t, HardEvent event, const Where& where) {
    Core& core = This();
    core.Begin(Op::DeQue, where);
    if (first == nullptr) {
        core.Fail("the queue was not initialised with InitBuffer");
    }
    if (queued == 0) {
        core.Fail("the queue is empty");
    }
    Buffer* buffer = ring[head];
    head = (head + 1) % kQueueDepth;
    --queued;
    --core.openEnQue;
    if (buffer->enQueKind != event) {
        core.Fail("EnQue ordered %s, DeQue waits for %s", Name(buffer->enQueKind), Name(event));
    }
    if (buffer->enQueEvent >= 0) {
        ReleaseEvent(core, event, buffer->enQueEvent);
    }
    Report(core, Op::DeQue, Ordering{static_cast<int32_t>(event), buffer->enQueEvent, -1, buffer});
    buffer->enQueEvent = -1;
    buffer->state = TBufState::DEQUE;
    return buffer;
}

}  // namespace sim
