// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "sim/sync_ops.h"

#include <cstring>

#include "block.h"
#include "launch_state.h"

namespace sim {

namespace {

using AscendC::HardEvent;

constexpr uint32_t kFirstReserved = 11;  // SyncAll's flags
constexpr uint32_t kLastReserved = 14;

bool VectorEvent(HardEvent event) {
    switch (event) {
        case HardEvent::MTE2_V:
        case HardEvent::V_MTE2:
        case HardEvent::MTE3_V:
        case HardEvent::V_MTE3:
        case HardEvent::V_V:
        case HardEvent::S_V:
        case HardEvent::V_S:
        case HardEvent::MTE3_MTE2:
        case HardEvent::MTE2_MTE3:
        case HardEvent::S_MTE3:
        case HardEvent::MTE3_S:
            return true;
        default:
            return false;
    }
}

bool CubeEvent(HardEvent event) {
    switch (event) {
        case HardEvent::MTE2_S:
        case HardEvent::S_MTE2:
            return false;
        default:
            return !VectorEvent(event);
    }
}

void CheckEvent(Core& core, HardEvent event, int32_t id) {
    if (core.isCube ? VectorEvent(event) : CubeEvent(event)) {
        core.WrongCore();
    }
    if (id < 0 || id >= static_cast<int32_t>(kEventIds)) {
        core.Fail("event id %d of %s: it must be in 0..7", id, Name(event));
    }
    const size_t e = static_cast<size_t>(event);
    if ((core.eventSystem[e] >> id) & 1) {
        core.Fail("event id %d of %s belongs to a queue or to the pipe; take one with AllocEventID",
                  id, Name(event));
    }
    if (id >= 6 && !(((core.eventTaken[e] | core.eventFetched[e]) >> id) & 1)) {
        core.Fail("event id %d of %s is the system's; take one with AllocEventID", id, Name(event));
    }
}

uint32_t Kind(const Core& core) {
    return core.isCube ? 0 : 1;
}

uint32_t Peers(const Core& core) {
    return core.isCube ? core.launch->cubes : core.launch->vectors;
}

bool GlobalReady(const Core& core, uint32_t id) {
    const uint32_t generation = core.globalWaits[id];
    const uint32_t needed = Peers(core) * (generation / kGenerations + 1);
    return core.launch->arrivals[Kind(core)][id][generation % kGenerations] >= needed;
}

uint32_t SyncTotal(const LaunchState& launch, bool vectorOnly) {
    return launch.vectors + (vectorOnly ? 0 : launch.cubes);
}

void NeedResident(Core& core) {
    if (!core.launch->spec->allResident && core.launch->blocks > 1) {
        core.Fail("it needs all blocks at once: SetScheduleMode(1) is missing on the host");
    }
}

void Increment(Core& setter, Core& target, uint32_t id) {
    if (target.crossCount[id] >= kCrossMax) {
        setter.Fail("the counter of cross-core flag %u on %s would exceed %u%s", id,
                    target.Title().c_str(), kCrossMax, CrossHistory(setter, id).c_str());
    }
    ++target.crossCount[id];
}

}  // namespace

bool Ready(const Core& core) {
    switch (core.wait) {
        case Wait::CrossFlag:
            return core.crossCount[core.waitFlag] > 0 || GlobalReady(core, core.waitFlag);
        case Wait::SyncAll: {
            const uint32_t kind = core.vectorSync ? 1 : 0;
            return core.launch->syncArrivals[kind] >=
                   SyncTotal(*core.launch, core.vectorSync) * core.syncAlls[kind];
        }
        default:
            return true;
    }
}

std::string WaitText(const Core& core) {
    if (core.wait == Wait::SyncAll) {
        return "SyncAll" + AtPlace(core.where);
    }
    return "cross-core flag " + std::to_string(core.waitFlag) + AtPlace(core.where) +
           CrossHistory(core, core.waitFlag);
}

void Yield(Core& core) {
    core.fiber->Suspend();
    if (core.launch->aborted) {
        core.fiber->Abandon();
    }
    core.wait = Wait::None;
}

void SetEvent(HardEvent event, int32_t id, const Where& where) {
    Core& core = This();
    core.Begin(Op::SetFlag, where);
    CheckEvent(core, event, id);
    uint8_t& set = core.eventSet[static_cast<size_t>(event)];
    if ((set >> id) & 1) {
        core.Fail("event id %d of %s is already set%s", id, Name(event),
                  EventHistory(core, static_cast<int32_t>(event), id).c_str());
    }
    set |= static_cast<uint8_t>(1u << id);
    Report(core, Op::SetFlag, Ordering{static_cast<int32_t>(event), id});
}

void WaitEvent(HardEvent event, int32_t id, const Where& where) {
    Core& core = This();
    core.Begin(Op::WaitFlag, where);
    CheckEvent(core, event, id);
    uint8_t& set = core.eventSet[static_cast<size_t>(event)];
    if (!((set >> id) & 1)) {
        core.Fail("event id %d of %s was not set before%s", id, Name(event),
                  EventHistory(core, static_cast<int32_t>(event), id).c_str());
    }
    set &= static_cast<uint8_t>(~(1u << id));
    Report(core, Op::WaitFlag, Ordering{static_cast<int32_t>(event), id});
}

void Barrier(pipe_t pipe, const Where& where) {
    Core& core = This();
    core.Begin(Op::PipeBarrier, where);
    if (core.isCube ? pipe == PIPE_V : (pipe == PIPE_M || pipe == PIPE_FIX || pipe == PIPE_MTE1)) {
        core.WrongCore();
    }
    Report(core, Op::PipeBarrier, Ordering{static_cast<int32_t>(pipe)});
}

void CrossSet(uint32_t mode, pipe_t pipe, uint32_t id, const Where& where) {
    Core& core = This();
    core.Begin(Op::CrossCoreSetFlag, where);
    core.MayEndTurn();
    const KernelType type = core.launch->type;
    if (type != KernelType::Mix11 && type != KernelType::Mix12) {
        core.Fail("cross-core flags need a KERNEL_TYPE_MIX kernel");
    }
    if (id >= kCrossFlags || (id >= kFirstReserved && id <= kLastReserved)) {
        core.Fail("flag %u: the flags are 0..10 and 15 (11..14 are SyncAll's)", id);
    }
    if (core.isCube ? (pipe == PIPE_V || pipe == PIPE_MTE3)
                    : (pipe == PIPE_M || pipe == PIPE_FIX || pipe == PIPE_MTE1)) {
        core.WrongCore();
    }
    if (core.crossMode[id] != 0 && core.crossMode[id] != mode + 1) {
        const bool drained =
            core.crossCount[id] == 0 && core.globalSets[id] == core.globalWaits[id];
        if (!drained) {
            core.Fail("flag %u goes from mode %d to mode %u before it has drained", id,
                      core.crossMode[id] - 1, mode);
        }
    }
    core.crossMode[id] = static_cast<uint8_t>(mode + 1);
    Report(
        core, Op::CrossCoreSetFlag,
        Ordering{static_cast<int32_t>(mode), static_cast<int32_t>(id), static_cast<int32_t>(pipe)});

    Block& block = *core.owner;
    if (mode == 0) {
        NeedResident(core);
        if (core.globalSets[id] - core.globalWaits[id] >= kCrossMax) {
            core.Fail("the counter of cross-core flag %u would exceed %u%s", id, kCrossMax,
                      CrossHistory(core, id).c_str());
        }
        const uint32_t generation = core.globalSets[id]++;
        const uint32_t needed = Peers(core) * (generation / kGenerations + 1);
        if (++core.launch->arrivals[Kind(core)][id][generation % kGenerations] == needed) {
            core.launch->Announce();
        }
        return;
    }
    if (mode == 2 && core.isCube) {
        for (uint32_t sub = 0; sub < block.VectorCount(); ++sub) {
            Increment(core, *block.Vector(sub), id);
        }
        return;
    }
    if (core.isCube) {
        core.WrongCore();
    }
    // Both AIVs must have set before anybody is released.
    if (mode == 1 && block.VectorCount() != 2) {
        core.Fail("mode 1 needs two AIVs a block");
    }
    const uint32_t own = ++core.crossPartial[id];
    uint32_t others = own;
    for (uint32_t sub = 0; sub < block.VectorCount(); ++sub) {
        others = std::min(others, block.Vector(sub)->crossPartial[id]);
    }
    Core& target = mode == 2 ? *block.Cube() : core;
    const uint32_t consumed = others - target.crossCount[id];
    if (own - std::min(own, consumed) > kCrossMax) {
        core.Fail("the counter of cross-core flag %u would exceed %u%s", id, kCrossMax,
                  CrossHistory(core, id).c_str());
    }
    if (others == own) {
        if (mode == 2) {
            Increment(core, target, id);
        } else {
            Increment(core, *block.Vector(0), id);
            Increment(core, *block.Vector(1), id);
        }
    }
}

void CrossWait(uint32_t id, const Where& where) {
    Core& core = This();
    core.Begin(Op::CrossCoreWaitFlag, where);
    core.MayEndTurn();
    if (id >= kCrossFlags || (id >= kFirstReserved && id <= kLastReserved)) {
        core.Fail("flag %u: the flags are 0..10 and 15 (11..14 are SyncAll's)", id);
    }
    while (!(core.crossCount[id] > 0 || GlobalReady(core, id))) {
        core.wait = Wait::CrossFlag;
        core.waitFlag = static_cast<uint16_t>(id);
        Yield(core);
    }
    if (core.crossCount[id] > 0) {
        --core.crossCount[id];
    } else {
        ++core.globalWaits[id];
    }
    Report(core, Op::CrossCoreWaitFlag, Ordering{-1, static_cast<int32_t>(id)});
}

void SyncAllCores(bool vectorOnly, const Where& where) {
    Core& core = This();
    core.Begin(Op::SyncAll, where);
    core.MayEndTurn();
    if (vectorOnly) {
        core.NeedVector();
    }
    NeedResident(core);
    const uint32_t kind = vectorOnly ? 1 : 0;
    Report(core, Op::SyncAll, Ordering{static_cast<int32_t>(kind), 0});
    const uint32_t needed = SyncTotal(*core.launch, vectorOnly) * ++core.syncAlls[kind];
    if (++core.launch->syncArrivals[kind] == needed) {
        core.launch->Announce();
    }
    core.vectorSync = vectorOnly;
    core.wait = Wait::SyncAll;
    if (!Ready(core)) {
        Yield(core);
    }
    core.wait = Wait::None;
    Report(core, Op::SyncAll, Ordering{static_cast<int32_t>(kind), 1});
}

void CheckEnd(Core& core) {
    core.op = Op::Kernel;
    core.where = Where{"", 0};
    for (size_t event = 0; event < static_cast<size_t>(HardEvent::MAX); ++event) {
        const unsigned left = core.eventSet[event];
        if (left != 0) {
            const int id = __builtin_ctz(left);
            core.Fail("event id %d of %s was set but never waited for%s", id,
                      Name(static_cast<HardEvent>(event)),
                      EventHistory(core, static_cast<int32_t>(event), id).c_str());
        }
    }
    for (uint32_t id = 0; id < kCrossFlags; ++id) {
        if (core.globalSets[id] != core.globalWaits[id]) {
            core.Fail("cross-core flag %u (mode 0) was set %u times and waited for %u times%s", id,
                      core.globalSets[id], core.globalWaits[id], CrossHistory(core, id).c_str());
        }
    }
    if (core.openEnQue != 0) {
        core.Fail("%u tensors were put into a queue (EnQue) and never taken out%s", core.openEnQue,
                  QueueHistory(core).c_str());
    }
    if (core.atomic != AtomicOp::None) {
        core.Fail("an atomic mode is still on: SetAtomicNone is missing");
    }
    if (core.regionDepth != 0) {
        core.Fail("TRACE_START(%u) without TRACE_STOP",
                  core.regions[core.regionStack[core.regionDepth - 1]].id);
    }
}

void EnterRegion(uint32_t id) {
    Core& core = This();
    uint32_t slot = 1;
    while (slot < core.regionCount && core.regions[slot].id != id) {
        ++slot;
    }
    if (slot == kRegions || core.regionDepth == kRegions) {
        core.Fail("TRACE_START(%u): more than %u different or nested regions", id, kRegions - 1);
    }
    if (slot == core.regionCount) {
        std::memset(&core.regions[slot], 0, sizeof(Region));
        core.regions[slot].id = id;
        ++core.regionCount;
    }
    core.regionStack[core.regionDepth++] = slot;
    core.region = &core.regions[slot];
}

void LeaveRegion(uint32_t id) {
    Core& core = This();
    if (core.regionDepth == 0 || core.regions[core.regionStack[core.regionDepth - 1]].id != id) {
        core.Fail("TRACE_STOP(%u) does not close the last TRACE_START", id);
    }
    --core.regionDepth;
    core.region = core.regionDepth == 0 ? &core.regions[0]
                                        : &core.regions[core.regionStack[core.regionDepth - 1]];
}

void CopyTiling(void* dst, const void* src, size_t bytes, const Where& where) {
    Core& core = This();
    core.Begin(Op::GetTilingData, where);
    core.CheckGm(src, static_cast<int64_t>(bytes), false, "the tiling data");
    // On an AIV it goes through UB address 0, so nothing may live there yet.
    if (!core.isCube && core.pipe != nullptr) {
        core.Fail("it must come before the TPipe: it overwrites the start of UB");
    }
    std::memcpy(dst, src, bytes);
}

uint8_t* UserWorkspace(uint8_t* workspace, const Where& where) {
    if (workspace == nullptr) {
        Core& core = This();
        core.Begin(Op::GetTilingData, where);
        core.Fail("GetUserWorkspace: the workspace is null");
    }
    return workspace + kReservedWorkspaceBytes;
}

int64_t BlockIdx() {
    return This().blockIdx;
}
int64_t BlockNum() {
    return This().launch->blocks;
}
int64_t SubBlockIdx() {
    return This().isCube ? 0 : This().sub;
}
int64_t SubBlockNum() {
    return This().launch->type == KernelType::Mix12 ? 2 : 1;
}
int64_t TaskRatio() {
    return SubBlockNum();
}

void CacheClean(const void* address, const Where& where) {
    Core& core = This();
    core.Begin(Op::DataCacheCleanAndInvalid, where);
    core.CheckGm(address, 1, false, "the tensor");
}

}  // namespace sim
