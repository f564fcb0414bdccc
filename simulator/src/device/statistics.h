// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_STATISTICS_H
#define SIM_STATISTICS_H

#include <string>
#include <vector>

#include "sim/core.h"

namespace sim {

// Adds what a worker counted in one launch to the kernel's figures.
void Record(const std::string& kernel, const Counters& total, const std::vector<Region>& regions,
            bool newLaunch);

}  // namespace sim

#endif  // SIM_STATISTICS_H
