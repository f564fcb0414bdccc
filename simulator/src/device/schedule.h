// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_SCHEDULE_H
#define SIM_SCHEDULE_H

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core.h"

// Seeded schedules. Without a seed the cores of a launch run in the plain order: a core keeps its
// thread until it must wait. With a seed, which core goes next, for how long, when a block starts
// and on which thread are drawn from a stream of random numbers, one a worker. Cores share nothing
// but global memory, so a turn can end in front of any access to it and of any cross-core flag:
// between two of these the order cannot matter.
namespace sim {

// splitmix64.
class Chance {
public:
    explicit Chance(uint64_t seed = 0) : state_(seed) {}
    uint64_t Next() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    uint32_t Below(uint32_t count) { return static_cast<uint32_t>(Next() % count); }

private:
    uint64_t state_;
};

// The blocks of each worker, in the order in which they start.
std::vector<std::vector<uint32_t>> PlanBlocks(uint64_t seed, uint32_t blocks, uint32_t workers);

// One worker's choices.
class Schedule {
public:
    Schedule() = default;
    Schedule(uint64_t seed, uint32_t worker);

    // A block starts although others can run.
    bool StartsEarly() { return chance_.Below(1u << patience_) == 0; }
    uint32_t Pick(uint32_t count) { return chance_.Below(count); }
    // Sets how many accesses the core's next turn lasts. Equal turns would keep all cores abreast;
    // so every core has a pace that seldom changes, and some run far ahead of others.
    void BeginTurn(Core& core) {
        if (core.pace == 0 || chance_.Below(16) == 0) {
            core.pace = static_cast<uint8_t>(1 + chance_.Below(kPaces));
        }
        core.turn = 1 + chance_.Below(1u << (core.pace - 1));
    }

private:
    static constexpr uint32_t kPaces = 10;

    Chance chance_;
    uint32_t patience_ = 0;
};

}  // namespace sim

#endif  // SIM_SCHEDULE_H
