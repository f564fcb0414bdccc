// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_CHECKER_H
#define SIM_CHECK_CHECKER_H

#include <initializer_list>
#include <memory>

#include "check/findings.h"
#include "sim/core.h"

namespace sim {

// One check over one launch. Calls come from all worker threads, those for one core never at the
// same time; what a check keeps for a core hangs at core.checks[slot].
class Check {
public:
    virtual ~Check() = default;
    virtual void OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) = 0;
    virtual void OnOrdering(Core& core, Op op, const Ordering& ordering) = 0;
    // For messages about flags, see sim/hook.h.
    virtual std::string EventHistory(const Core&, int32_t, int32_t) { return std::string(); }
    virtual std::string CrossHistory(const Core&, uint32_t) { return std::string(); }
    virtual std::string QueueHistory(const Core&) { return std::string(); }
    // After the last core's end, also when the launch failed.
    virtual void OnEnd(LaunchState& launch) = 0;
};

enum CheckSlot { kRaces, kMemory, kHandOvers, kCheckSlots };

// Hangs at LaunchState::checker.
struct Checker {
    Findings findings;
    std::unique_ptr<Check> checks[kCheckSlots];  // null: not selected
};

std::unique_ptr<Check> MakeRaceCheck(LaunchState& launch, Findings& findings);
std::unique_ptr<Check> MakeMemoryCheck(LaunchState& launch, Findings& findings);
std::unique_ptr<Check> MakeHandOverCheck(LaunchState& launch, Findings& findings);

}  // namespace sim

#endif  // SIM_CHECK_CHECKER_H
