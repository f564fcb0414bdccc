// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/checker.h"

#include "device/launch_state.h"
#include "device/settings.h"

namespace sim {

namespace {

Checker* Of(const LaunchState& launch) {
    return static_cast<Checker*>(launch.checker);
}

template <typename Function>
std::string History(const Core& core, const Function& function) {
    std::string text;
    for (const std::unique_ptr<Check>& check : Of(*core.launch)->checks) {
        if (check) {
            text += function(*check);
        }
    }
    return text;
}

}  // namespace

std::string EventHistory(const Core& core, int32_t event, int32_t id) {
    return History(core, [&](Check& check) { return check.EventHistory(core, event, id); });
}
std::string CrossHistory(const Core& core, uint32_t id) {
    return History(core, [&](Check& check) { return check.CrossHistory(core, id); });
}
std::string QueueHistory(const Core& core) {
    return History(core, [&](Check& check) { return check.QueueHistory(core); });
}

void Report(Core& core, Op op, std::initializer_list<Access> accesses) {
    for (const std::unique_ptr<Check>& check : Of(*core.launch)->checks) {
        if (check) {
            check->OnAccess(core, op, accesses);
        }
    }
}

void Report(Core& core, Op op, const Ordering& ordering) {
    for (const std::unique_ptr<Check>& check : Of(*core.launch)->checks) {
        if (check) {
            check->OnOrdering(core, op, ordering);
        }
    }
}

void LaunchBegin(LaunchState& launch) {
    auto checker = std::make_unique<Checker>();
    if (CheckSelected("races")) {
        checker->checks[kRaces] = MakeRaceCheck(launch, checker->findings);
        checker->checks[kHandOvers] = MakeHandOverCheck(launch, checker->findings);
    }
    if (CheckSelected("memory")) {
        checker->checks[kMemory] = MakeMemoryCheck(launch, checker->findings);
    }
    launch.checker = checker.release();
}

void LaunchEnd(LaunchState& launch) {
    const std::unique_ptr<Checker> checker(Of(launch));
    launch.checker = nullptr;
    for (const std::unique_ptr<Check>& check : checker->checks) {
        if (check) {
            check->OnEnd(launch);
        }
    }
    if (checker->findings.Empty()) {
        return;
    }
    const std::string text = checker->findings.Text(launch.spec->kernel);
    if (launch.aborted) {
        // What the checks found may be why the launch failed.
        launch.error += "\n" + text;
    } else {
        launch.Abort(text);
    }
}

}  // namespace sim
