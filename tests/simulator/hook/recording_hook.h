// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef TESTS_SIMULATOR_HOOK_RECORDING_HOOK_H
#define TESTS_SIMULATOR_HOOK_RECORDING_HOOK_H

// What a checker or a cost model would put in the place of the plain library's empty hook.
namespace sim {

void Report(Core& core, Op op, std::initializer_list<Access> accesses);
void Report(Core& core, Op op, const Ordering& ordering);
inline void LaunchBegin(LaunchState&) {}
inline void LaunchEnd(LaunchState&) {}
inline std::string EventHistory(const Core&, int32_t, int32_t) {
    return std::string();
}
inline std::string CrossHistory(const Core&, uint32_t) {
    return std::string();
}
inline std::string QueueHistory(const Core&) {
    return std::string();
}

}  // namespace sim

#endif  // TESTS_SIMULATOR_HOOK_RECORDING_HOOK_H
