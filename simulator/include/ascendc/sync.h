// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_SYNC_H
#define ASCENDC_SYNC_H

#include "ascendc/tensor.h"
#include "sim/sync_ops.h"

namespace AscendC {

template <HardEvent event>
void SetFlag(int32_t eventID, SIM_WHERE) {
    static_assert(event != HardEvent::MAX, "SetFlag: not an event");
    sim::SetEvent(event, eventID, where);
}
template <HardEvent event>
void WaitFlag(int32_t eventID, SIM_WHERE) {
    static_assert(event != HardEvent::MAX, "WaitFlag: not an event");
    sim::WaitEvent(event, eventID, where);
}
template <pipe_t pipe>
void PipeBarrier(SIM_WHERE) {
    static_assert(pipe != PIPE_S, "PipeBarrier: the scalar pipe has none");
    sim::Barrier(pipe, where);
}

template <uint8_t modeId, pipe_t pipe>
void CrossCoreSetFlag(uint16_t flagId, SIM_WHERE) {
    static_assert(modeId <= 2, "CrossCoreSetFlag: mode 0, 1 or 2");
    static_assert(pipe != PIPE_S && pipe != PIPE_ALL,
                  "CrossCoreSetFlag: not on PIPE_S or PIPE_ALL");
    sim::CrossSet(modeId, pipe, flagId, where);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t flagId, SIM_WHERE) {
    sim::CrossWait(flagId, where);
}

template <bool isAIVOnly = true>
void SyncAll(SIM_WHERE) {
    sim::SyncAllCores(isAIVOnly, where);
}
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>&, const LocalTensor<int32_t>&, const int32_t usedCores = 0,
             SIM_WHERE) {
    (void)usedCores;
    sim::SyncAllCores(isAIVOnly, where);
}

template <typename T, CacheLine entireType, DcciDst dcciDst>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& dstTensor, SIM_WHERE) {
    sim::CacheClean(dstTensor.GetPhyAddr(), where);
}
template <typename T, CacheLine entireType>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& dstTensor, SIM_WHERE) {
    sim::CacheClean(dstTensor.GetPhyAddr(), where);
}
template <MemDsbT arg0>
void DataSyncBarrier() {}

}  // namespace AscendC

#endif  // ASCENDC_SYNC_H
