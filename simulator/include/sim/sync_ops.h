// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_SYNC_OPS_H
#define SIM_SYNC_OPS_H

#include "sim/core.h"

namespace sim {

void SetEvent(AscendC::HardEvent event, int32_t id, const Where& where);
void WaitEvent(AscendC::HardEvent event, int32_t id, const Where& where);
void Barrier(pipe_t pipe, const Where& where);
void CrossSet(uint32_t mode, pipe_t pipe, uint32_t id, const Where& where);
void CrossWait(uint32_t id, const Where& where);
void SyncAllCores(bool vectorOnly, const Where& where);

void EnterRegion(uint32_t id);
void LeaveRegion(uint32_t id);
void CopyTiling(void* dst, const void* src, size_t bytes, const Where& where);
uint8_t* UserWorkspace(uint8_t* workspace, const Where& where);
int64_t BlockIdx();
int64_t BlockNum();
int64_t SubBlockIdx();
int64_t SubBlockNum();
int64_t TaskRatio();
void CacheClean(const void* address, const Where& where);

// KERNEL_TASK_TYPE_DEFAULT leaves one of these in a section of its own, so that a launch knows the
// type before the kernel runs.
struct KernelNote {
    const char* kernel;
    KernelType type;
};

}  // namespace sim

#endif  // SIM_SYNC_OPS_H
