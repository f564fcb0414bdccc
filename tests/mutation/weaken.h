// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What a mutant calls in place of a queue's own functions: the buffer still changes hands, but no
// event orders it. Included in front of a mutated kernel, never in a kernel of the project. The
// names are others than the queue's, so that the linker cannot mix them up with the functions of
// kernels that are not mutated.
#ifndef TESTS_MUTATION_WEAKEN_H
#define TESTS_MUTATION_WEAKEN_H

#include "kernel_operator.h"

namespace weaken {

template <typename Queue>
struct Opened : Queue {
    static sim::QueueState& State(Queue& queue) { return queue.*(&Opened::state_); }
    static constexpr uint32_t kDepth = Queue::kDepth;
    static constexpr AscendC::TPosition kHome = Queue::home;
};

// The consumer waits for nothing.
template <typename Queue, typename T>
void EnQue(Queue& queue, const AscendC::LocalTensor<T>& tensor, SIM_WHERE) {
    Opened<Queue>::State(queue).EnQue(tensor.Ref().buffer, Opened<Queue>::kDepth,
                                      AscendC::HardEvent::MAX, where);
}

// Takes whatever hand-over is first in the queue, with its event or without.
template <typename T, typename Queue>
AscendC::LocalTensor<T> DeQue(Queue& queue, SIM_WHERE) {
    sim::QueueState& state = Opened<Queue>::State(queue);
    const AscendC::HardEvent event =
        state.queued > 0 ? state.ring[state.head]->enQueKind : AscendC::HardEvent::MAX;
    return AscendC::LocalTensor<T>(
        sim::LocalOf(state.DeQue(Opened<Queue>::kDepth, event, where), Opened<Queue>::kHome));
}

// The buffer's next owner waits for nothing.
template <typename Queue, typename T>
void FreeTensor(Queue& queue, AscendC::LocalTensor<T>& tensor, SIM_WHERE) {
    Opened<Queue>::State(queue).Free(tensor.Ref().buffer, AscendC::HardEvent::MAX, where);
}

// `count` buffers where the last one has no memory of its own: it lies in that of the first.
template <typename Queue>
void InitBuffer(AscendC::TPipe& pipe, Queue& queue, uint8_t count, uint32_t bytes, SIM_WHERE) {
    pipe.InitBuffer(queue, count, bytes, where);
    sim::QueueState& state = Opened<Queue>::State(queue);
    state.first[count - 1].offset = state.first[0].offset;
}

}  // namespace weaken

#endif  // TESTS_MUTATION_WEAKEN_H
