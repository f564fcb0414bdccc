// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_HOOK_H
#define SIM_CHECK_HOOK_H

// The checked library's hook: included by sim/hook.h in the place of the empty one.
#define SIM_TRACKS_DEFINED  // device/defined.h

namespace sim {

void Report(Core& core, Op op, std::initializer_list<Access> accesses);
void Report(Core& core, Op op, const Ordering& ordering);
void LaunchBegin(LaunchState& launch);
void LaunchEnd(LaunchState& launch);
std::string EventHistory(const Core& core, int32_t event, int32_t id);
std::string CrossHistory(const Core& core, uint32_t id);
std::string QueueHistory(const Core& core);

}  // namespace sim

#endif  // SIM_CHECK_HOOK_H
