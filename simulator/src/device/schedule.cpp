// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "schedule.h"

namespace sim {

Schedule::Schedule(uint64_t seed, uint32_t worker) : chance_(seed) {
    // A stream of its own, far from those of the other workers and seeds.
    chance_ = Chance(chance_.Next() ^ (0xD1342543DE82EF95ull * (worker + 1)));
    patience_ = 1 + chance_.Below(8);
}

std::vector<std::vector<uint32_t>> PlanBlocks(uint64_t seed, uint32_t blocks, uint32_t workers) {
    Chance chance(~seed);
    std::vector<uint32_t> order(blocks);
    for (uint32_t i = 0; i < blocks; ++i) {
        const uint32_t at = chance.Below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    std::vector<std::vector<uint32_t>> plan(workers);
    for (uint32_t block : order) {
        plan[chance.Below(workers)].push_back(block);
    }
    return plan;
}

}  // namespace sim
