// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include <cstdint>
#include <string>

namespace sim {

// ASCEND_SIM_SCHEDULE: the seed of the order in which a launch's cores take turns; 0 = the plain
// order.
uint64_t ScheduleSeed();

// ASCEND_SIM_POISON: fresh memories hold NaN in every floating format.
bool Poison();

// ASCEND_SIM_SUBNORMALS: launches compute with subnormal floats rather than take them for zero. The
// manual does not say what the chip does, so kernels must be right either way; many processors are
// slow with subnormal operands, so zero is the default.
bool KeepSubnormals();

// ASCEND_SIM_CHECK: whether the checked library makes this check, "races" or "memory".
bool CheckSelected(const std::string& name);

}  // namespace sim

#endif  // SIM_SETTINGS_H
