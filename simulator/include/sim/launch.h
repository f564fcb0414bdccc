// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// What the host runtime needs of the core model. Implemented in simulator/src/device.
namespace sim {

enum class KernelType : uint8_t {
    Unset,    // take it from KERNEL_TASK_TYPE_DEFAULT in the kernel of this name
    AicOnly,  // one cube core a block
    AivOnly,  // one vector core a block
    Mix11,    // one cube and one vector core a block
    Mix12,    // one cube and two vector cores a block
};

// What a stretch of global memory holds: data from the start; nothing at the start and a result at
// the end; nothing at either.
enum class GmRole : uint8_t { Given, Result, Scratch };

// One stretch of global memory that the kernel may touch. Every GM access of a launch lies inside
// one of them; messages name it.
struct GmRange {
    const void* data = nullptr;
    size_t bytes = 0;
    std::string name;
    bool writable = true;
    GmRole role = GmRole::Given;
};

struct LaunchSpec {
    std::string kernel;           // entry name, e.g. "my_op"
    std::function<void()> entry;  // calls the kernel entry with its arguments; runs once a core
    uint32_t blockDim = 1;
    KernelType type = KernelType::Unset;
    std::vector<GmRange> ranges;  // tensors, workspace (user and reserved part), tiling
    uint64_t tilingKey = 0;       // what TILING_KEY_IS compares with
    bool allResident = false;     // SetScheduleMode(1): needed by SyncAll and mode-0 flags
    uint32_t cores = 0;           // AI cores of the platform; 0 = CoreCount()
    uint32_t threads = 0;         // worker threads; 0 = ThreadCount()
};

struct LaunchResult {
    int status = 0;     // 0 = success
    std::string error;  // kernel, core, instruction, value
};

// Runs the kernel to its end on the calling thread and, when threads > 1, on persistent workers.
// Never throws; launches from several threads are serialised.
LaunchResult Launch(const LaunchSpec& spec);

// The type that KERNEL_TASK_TYPE_DEFAULT in kernel `name` states, Unset when there is none.
KernelType RegisteredKernelType(const std::string& name);

// Defaults: ASCEND_SIM_THREADS or the hardware threads; ASCEND_SIM_CORES or 24.
uint32_t ThreadCount();
uint32_t CoreCount();
// What is wrong with the simulator's environment variables; empty when nothing is. While something
// is, every launch fails with this text.
std::string SettingsProblem();

// Bytes that PlatformAscendC::GetLibApiWorkSpaceSize returns: the part of a kernel's workspace
// argument in front of what GetUserWorkspace gives.
constexpr size_t kReservedWorkspaceBytes = 16 * 1024 * 1024;

}  // namespace sim

// Control interface of the simulator library (defined by the device runtime, exported as is).
extern "C" {
int ascendSimSetThreads(int threads);
int ascendSimSetCores(int cores);
// The order in which a launch's cores take turns: 0 the plain one, else one made from the seed.
int ascendSimSetSchedule(uint64_t seed);
// 1: launches compute with subnormal floats; 0, the default: they count as zero.
int ascendSimSetSubnormals(int keep);
void ascendSimResetCounters();
// JSON text; returns the length needed (without the final zero), writes at most cap bytes.
size_t ascendSimReadCounters(char* buffer, size_t cap);
}

#endif  // SIM_LAUNCH_H
