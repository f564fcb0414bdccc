// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_LOCAL_H
#define SIM_LOCAL_H

#include <cstdint>

#include "ascendc/types.h"

namespace sim {

struct Buffer;

// A tensor in a core's memory, without its element type: a window into one buffer that InitBuffer
// handed out. Accesses outside the buffer are violations even when the memory exists.
struct Local {
    uint8_t* base = nullptr;   // the buffer's first byte
    uint32_t capacity = 0;     // of the buffer, bytes
    uint32_t length = 0;       // what GetSize reports, bytes
    int64_t offset = 0;        // of the tensor in the buffer, bytes
    Buffer* buffer = nullptr;  // the queue's bookkeeping
    AscendC::TPosition position = AscendC::TPosition::GM;
    int32_t tag = -1;

    uint8_t* Address() const { return base + offset; }
};

// A tensor in global memory, without its element type.
struct Global {
    uint8_t* address = nullptr;
};

}  // namespace sim

#endif  // SIM_LOCAL_H
