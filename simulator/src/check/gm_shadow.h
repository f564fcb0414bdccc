// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_GM_SHADOW_H
#define SIM_CHECK_GM_SHADOW_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "check/clocks.h"
#include "device/launch_state.h"

// The shadow of the global memory that a launch may write: for every granule its last writer and
// the readers since then, of whatever core. Inputs have none, nobody can write them.
namespace sim {

// The instruction that touches the memory.
struct GmToucher {
    Epoch me;
    const Clock* clock;
    bool inOrder;  // its own pipe completes one instruction before it starts the next
};

struct GmConflict {
    const uint8_t* from;
    const uint8_t* to;
    Epoch other;
    bool otherWrites;
};

struct GmPage;

class GmShadow {
public:
    explicit GmShadow(const std::vector<GmSpan>& spans);
    ~GmShadow();
    GmShadow(const GmShadow&) = delete;
    GmShadow& operator=(const GmShadow&) = delete;

    // False for an input. `hint` is the caller's memory of where it was last.
    bool Tracks(const void* address, uint32_t* hint) {
        return Find(static_cast<const uint8_t*>(address), hint) != nullptr;
    }
    // Conflicts are appended.
    void Touch(const GmToucher& who, const void* address, size_t bytes, bool write, uint32_t* hint,
               std::vector<GmConflict>* conflicts);

private:
    struct Segment {
        const uint8_t* begin;
        const uint8_t* end;
        const uint8_t* base;  // begin, aligned to a granule
        std::unique_ptr<std::atomic<GmPage*>[], decltype(&std::free)> pages;
    };
    Segment* Find(const uint8_t* address, uint32_t* hint);
    GmPage* PageAt(Segment& segment, size_t index);

    std::vector<Segment> segments_;
    std::mutex mutex_;
    std::vector<GmPage*> used_;
};

}  // namespace sim

#endif  // SIM_CHECK_GM_SHADOW_H
