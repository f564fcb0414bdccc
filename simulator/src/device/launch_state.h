// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_LAUNCH_STATE_H
#define SIM_LAUNCH_STATE_H

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/core.h"

namespace sim {

// A range of global memory, sorted by address.
struct GmSpan {
    const uint8_t* begin;
    const uint8_t* end;
    const GmRange* range;
};

// The blocks that a worker has still to start.
struct BlockShare {
    uint32_t next;
    uint32_t end;
};

constexpr uint32_t kGenerations = 64;  // mode-0 sets a core may be ahead, bounded by kCrossMax

struct LaunchState {
    const LaunchSpec* spec = nullptr;
    KernelType type = KernelType::Unset;
    uint32_t blocks = 0;
    uint32_t cubes = 0;  // cores of each kind in the launch
    uint32_t vectors = 0;
    std::vector<GmSpan> spans;

    // Joint releases over the whole launch: arrivals[kind][flag][generation] counts without end;
    // generation g is complete when it reached cores * (g / kGenerations + 1).
    std::atomic<uint32_t> arrivals[2][kCrossFlags][kGenerations] = {};
    std::atomic<uint32_t> syncArrivals[2] = {};  // SyncAll: every core, vector cores only

    // With a seed the workers' blocks are settled beforehand, else TakeBlock gives them out.
    uint64_t seed = 0;
    std::vector<std::vector<uint32_t>> plan;
    uint32_t activeLimit = 0;  // blocks that a worker starts while others can run

    std::atomic<bool> aborted{false};

    // Sleeping and waking of workers, and the deadlock check.
    std::mutex mutex;
    std::condition_variable wake;
    uint64_t version = 0;  // of the joint releases
    uint32_t idle = 0;     // workers with nothing to do at this version
    uint32_t workers = 0;
    std::vector<Block*> running;
    std::string error;
    void* checker = nullptr;  // a hook's

    // Neighbouring blocks go to one worker, so that a block of the next launch finds in its
    // thread's cache what the same block of this launch wrote. Who runs out takes from the fullest.
    std::vector<BlockShare> shares;
    void ShareBlocks(uint32_t count);
    bool TakeBlock(uint32_t worker, uint32_t* block);

    void Announce();                         // a joint release may have completed
    void Abort(const std::string& message);  // the first message stays
    void Deadlock();                         // with the mutex held
};

// Guards read-modify-write of global memory in atomic mode.
std::mutex& AtomicMutex();

// True when the core's wait condition holds.
bool Ready(const Core& core);
std::string WaitText(const Core& core);
// Problems that show only at a core's end.
void CheckEnd(Core& core);

}  // namespace sim

#endif  // SIM_LAUNCH_STATE_H
