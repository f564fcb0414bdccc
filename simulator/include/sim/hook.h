// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_HOOK_H
#define SIM_HOOK_H

#include <cstdint>
#include <initializer_list>
#include <string>

#include "sim/machine.h"

// The hook point. Every instruction reports what it touches through Report, once, after its checks
// and before its effect. The plain library defines nothing and the call vanishes; a build with
// SIM_HOOK_HEADER supplies its own functions in that header (a race checker, a cost model). Kernels
// are compiled once for all such libraries: what their headers hold inline must not call the hook.
namespace sim {

struct Core;
struct LaunchState;

// Bytes [base + i*outerStride + j*innerStride, + bytes) for i < outer, j < inner.
struct Access {
    const void* base;
    uint32_t bytes;
    bool write;
    Space space;
    uint32_t inner = 1;
    int64_t innerStride = 0;
    uint32_t outer = 1;
    int64_t outerStride = 0;
    bool inOrder = false;  // an Mmad's result that the next Mmad sees without a barrier
};

// Ordering rather than data: flags, barriers, queue hand-overs. SyncAll reports twice, with id 0 on
// arrival and 1 on release; Kernel reports event 0 at a core's start and 1 at its end.
struct Ordering {
    int32_t event = -1;  // HardEvent, cross-core mode or pipe, by instruction
    int32_t id = -1;
    int32_t pipe = -1;  // of a cross-core set
    const void* buffer = nullptr;
};

#ifdef SIM_HOOK_HEADER
constexpr bool kHooked = true;  // for what only a report needs
}  // namespace sim
#include SIM_HOOK_HEADER
namespace sim {
#else
constexpr bool kHooked = false;
inline void Report(Core&, Op, std::initializer_list<Access>) {}
inline void Report(Core&, Op, const Ordering&) {}
// Around all cores of a launch, on the launching thread. LaunchEnd may still fail the launch.
inline void LaunchBegin(LaunchState&) {}
inline void LaunchEnd(LaunchState&) {}
// What messages about flags add, when somebody keeps it: ", set by SetFlag at file.cpp:12".
inline std::string EventHistory(const Core&, int32_t, int32_t) {
    return std::string();
}
inline std::string CrossHistory(const Core&, uint32_t) {
    return std::string();
}
inline std::string QueueHistory(const Core&) {
    return std::string();
}
#endif

}  // namespace sim

#endif  // SIM_HOOK_H
