// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What a mutant calls in place of a queue's own functions. Included in front of a mutated kernel,
// never in a kernel of the project.
#ifndef TESTS_MUTATION_WEAKEN_H
#define TESTS_MUTATION_WEAKEN_H

#include "kernel_operator.h"

namespace weaken {

// In the queue before anything is in the buffer: whatever DeQue waits for, it is not the data.
template <typename T, typename Queue>
AscendC::LocalTensor<T> AllocEnQue(Queue& queue, SIM_WHERE) {
    AscendC::LocalTensor<T> tensor = queue.template AllocTensor<T>(where);
    queue.EnQue(tensor, where);
    return tensor;
}

// Free before anything has been done with the buffer.
template <typename T, typename Queue>
AscendC::LocalTensor<T> DeQueFree(Queue& queue, SIM_WHERE) {
    AscendC::LocalTensor<T> tensor = queue.template DeQue<T>(where);
    queue.FreeTensor(tensor, where);
    return tensor;
}

template <typename Queue>
struct Opened : Queue {
    static sim::QueueState& State(Queue& queue) { return queue.*(&Opened::state_); }
};

// `count` buffers where the last one has no memory of its own: it lies in that of the first.
template <typename Queue>
void InitBuffer(AscendC::TPipe& pipe, Queue& queue, uint8_t count, uint32_t bytes, SIM_WHERE) {
    pipe.InitBuffer(queue, count, bytes, where);
    sim::QueueState& state = Opened<Queue>::State(queue);
    state.first[count - 1].offset = state.first[0].offset;
}

}  // namespace weaken

#endif  // TESTS_MUTATION_WEAKEN_H
