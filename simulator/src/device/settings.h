// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include <cstdint>

namespace sim {

// ASCEND_SIM_SCHEDULE: the seed of the order in which a launch's cores take turns; 0 = the plain
// order.
uint64_t ScheduleSeed();

// ASCEND_SIM_POISON: fresh memories hold NaN in every floating format.
bool Poison();

}  // namespace sim

#endif  // SIM_SETTINGS_H
