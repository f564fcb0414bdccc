// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/races.h"

#include <algorithm>

#include "check/race_text.h"
#include "device/block.h"

// Which accesses are ordered, after the AscendC manual:
//
// * A pipe starts its instructions in order, but the next may start before the last one has ended;
//   PipeBarrier lets all reads and writes end first. So instructions of one pipe that depend on
//   each other need a barrier: the manual asks for it between dependent vector instructions, and
//   between copies whose destinations overlap, in UB (MTE2) and in GM (MTE3). It does not say that
//   a pipe has read before the next instruction writes, so a write after a read counts as well.
// * The scalar pipe keeps its own order. What other pipes did it sees only after a flag to S, and
//   they see its accesses only after a flag from S. On the AIC there are no such flags.
// * Mmads on one part of L0C: the manual asks for a barrier where (m / 16) * (n / 16), in whole
//   numbers, is below 10; from there on the hardware keeps the order.
// * SetFlag is set when all earlier instructions of its pipe have ended, and does not hold up later
//   ones: it says nothing about these. WaitFlag holds up its own pipe only; on S, everything that S
//   issues later.
// * CrossCoreSetFlag likewise, for the pipe that it names. CrossCoreWaitFlag holds up all pipes. A
//   core's sets may take effect in any order; each stands for what its own pipe had done.
// * SyncAll and the end of a TPipe begin with a barrier of all pipes.
namespace sim {

namespace {

constexpr uint32_t kS = 0;
constexpr uint32_t kV = 1;
constexpr uint32_t kM = 2;

uint32_t Index(Pipe pipe) {
    return static_cast<uint32_t>(pipe);
}

// From pipe_t, which has gaps; kPipes for PIPE_ALL.
uint32_t IndexOf(int32_t pipe) {
    return pipe == PIPE_ALL ? kPipes : pipe == PIPE_FIX ? Index(Pipe::Fix) : uint32_t(pipe);
}

// A kernel's cores that are released together: AICs, AIVs with a mode-0 flag; SyncAll.
uint32_t GlobalGroup(uint32_t slot, uint32_t id) {
    return (slot == 0 ? 0 : 1) * kCrossFlags + id;
}
uint32_t SyncGroup(uint32_t kind) {
    return 2 * kCrossFlags + kind;
}

}  // namespace

struct RaceCheck::Step {
    RaceCore& state;
    const Core& core;
    Op op;
    uint32_t pipe;
    uint32_t number;
    uint32_t site;
    bool inOrder;  // a large Mmad
    bool atomic;
    const Clock& clock;
    std::vector<GmConflict> conflicts;
};

std::unique_ptr<Check> MakeRaceCheck(LaunchState& launch, Findings& findings) {
    return std::unique_ptr<Check>(new RaceCheck(launch, findings));
}

RaceCheck::RaceCheck(LaunchState& launch, Findings& findings)
    : launch_(launch), findings_(findings), gm_(launch.spans) {
    cores_.resize(static_cast<size_t>(launch.blocks) * kBlockCores);
    for (size_t i = 0; i < cores_.size(); ++i) {
        // Before the first core starts: one may set a flag for another that has not started.
        cores_[i].reset(new RaceCore);
        cores_[i]->block = static_cast<uint32_t>(i / kBlockCores);
        cores_[i]->slot = static_cast<uint32_t>(i % kBlockCores);
    }
}

void RaceCheck::OnEnd(LaunchState&) {
    for (std::unique_ptr<RaceCore>& core : cores_) {
        ReturnShadow(std::move(core->shadow));
    }
}

void RaceCheck::Start(Core& core) {
    RaceCore& state = *cores_[core.block * kBlockCores + (core.isCube ? 0 : 1 + core.sub)];
    core.checks[kRaces] = &state;
    state.title = core.Title();
    state.shadow = TakeShadow();
    for (EventFlag& flag : state.shadow->events) {
        flag.set = false;
        flag.setSite = flag.waitSite = kNoSite;
    }
    std::fill(std::begin(state.crossSite), std::end(state.crossSite), kNoSite);
    for (uint32_t p = 0; p < kPipes; ++p) {
        state.first[p] = state.shadow->numbers[p];
    }
    // What earlier blocks left in the memories is complete.
    for (Clock& clock : state.clocks) {
        std::copy(state.first, state.first + kPipes, clock.known + state.slot * kPipes);
    }
}

// --- Data ----------------------------------------------------------------------------------------

void RaceCheck::OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) {
    RaceCore& state = At(core);
    const uint32_t pipe = Index(PipeOf(op));
    bool inOrder = false;
    for (const Access& access : accesses) {
        inOrder |= access.inOrder;
    }
    const uint32_t site = state.shadow->cache.Number(op, inOrder, core.where);
    state.log[pipe].Append(site);
    if (state.seen[pipe] != state.issued) {
        state.seen[pipe] = state.issued;
        if (pipe != kS) {
            state.clocks[pipe].Join(state.clocks[kS], remotes_);
        }
    }
    Step step{state,
              core,
              op,
              pipe,
              ++state.shadow->numbers[pipe],
              site,
              inOrder,
              core.atomic != AtomicOp::None,
              state.clocks[pipe],
              {}};
    for (const Access& access : accesses) {
        CheckAccess(step, access);
    }
    for (const Access& access : accesses) {
        Mark(step, access);
    }
}

namespace {

// Calls function(first byte, bytes) for the stretches of an access, as few as there are.
template <typename Function>
void ForEachRow(const Access& access, const Function& function) {
    const uint8_t* base = static_cast<const uint8_t*>(access.base);
    uint64_t bytes = access.bytes;
    uint32_t inner = access.innerStride == 0 ? 1 : access.inner;
    uint32_t outer = access.outerStride == 0 ? 1 : access.outer;
    if (bytes == 0 || access.inner == 0 || access.outer == 0) {
        return;
    }
    if (inner > 1 && access.innerStride == static_cast<int64_t>(bytes)) {
        bytes *= inner;
        inner = 1;
    }
    if (inner == 1 && outer > 1 && access.outerStride == static_cast<int64_t>(bytes)) {
        bytes *= outer;
        outer = 1;
    }
    for (uint32_t o = 0; o < outer; ++o) {
        const uint8_t* row = base + o * access.outerStride;
        for (uint32_t i = 0; i < inner; ++i, row += access.innerStride) {
            function(row, bytes);
        }
    }
}

}  // namespace

void RaceCheck::CheckAccess(Step& step, const Access& access) {
    if (access.space == Space::Gm) {
        if (!gm_.Tracks(access.base, &step.state.gmHint)) {
            return;
        }
        ForEachRow(access, [&](const uint8_t* at, uint64_t bytes) {
            TouchGm(step, at, bytes, access.write);
        });
        return;
    }
    const uint8_t* memory = step.core.memory[static_cast<size_t>(access.space)];
    ForEachRow(access, [&](const uint8_t* at, uint64_t bytes) {
        const uint32_t from = static_cast<uint32_t>(at - memory);
        CheckLocal(step, access.space, from, from + static_cast<uint32_t>(bytes), access.write);
    });
}

void RaceCheck::Mark(Step& step, const Access& access) {
    if (access.space == Space::Gm) {
        return;  // TouchGm has done both
    }
    const uint8_t* memory = step.core.memory[static_cast<size_t>(access.space)];
    Plane& plane = step.state.shadow->At(access.space, access.write, step.pipe);
    ForEachRow(access, [&](const uint8_t* at, uint64_t bytes) {
        const uint32_t from = static_cast<uint32_t>(at - memory);
        plane.Mark(from, from + static_cast<uint32_t>(bytes), step.number);
    });
}

void RaceCheck::CheckLocal(Step& step, Space space, uint32_t from, uint32_t to, bool write) {
    for (uint32_t pipe = 0; pipe < kPipes; ++pipe) {
        if (!write) {
            CheckPlane(step, space, from, to, pipe, kReadAfterWrite);
            continue;
        }
        CheckPlane(step, space, from, to, pipe, kWriteAfterWrite);
        CheckPlane(step, space, from, to, pipe, kWriteAfterRead);
    }
}

inline void RaceCheck::CheckPlane(Step& step, Space space, uint32_t from, uint32_t to,
                                  uint32_t pipe, Kind kind) {
    const Plane* plane =
        step.state.shadow->planes[static_cast<size_t>(space)][kind != kWriteAfterRead][pipe].get();
    if (plane == nullptr) {
        return;
    }
    const uint32_t known = step.clock.known[step.state.slot * kPipes + pipe];
    if (plane->Last() > known && (pipe != kS || step.pipe != kS) && plane->Later(from, to, known)) {
        ReportLocal(step, space, from, to, pipe, kind);
    }
}

void RaceCheck::ReportLocal(Step& step, Space space, uint32_t from, uint32_t to, uint32_t pipe,
                            Kind kind) {
    const Plane& plane = step.state.shadow->At(space, kind != kWriteAfterRead, pipe);
    std::vector<Plane::Stretch> found;
    plane.Collect(from, to, step.clock.known[step.state.slot * kPipes + pipe], &found);
    const uint8_t* memory = step.core.memory[static_cast<size_t>(space)];
    for (const Plane::Stretch& stretch : found) {
        const uint32_t site = step.state.log[pipe].At(stretch.number - step.state.first[pipe] - 1);
        if (step.inOrder && pipe == kM && space == Space::L0C && Sites::At(site).inOrder) {
            continue;
        }
        Race(step, kind, step.state, pipe, site, space, memory + stretch.from,
             stretch.to - stretch.from);
    }
}

void RaceCheck::TouchGm(Step& step, const uint8_t* at, size_t bytes, bool write) {
    const RaceCore& state = step.state;
    const GmToucher who{
        Epoch::Of(state.block, state.slot, step.pipe, write && step.atomic, step.number),
        &step.clock, step.pipe == kS};
    gm_.Touch(who, at, bytes, write, &step.state.gmHint, &step.conflicts);
    if (step.conflicts.empty()) {
        return;
    }
    for (const GmConflict& conflict : step.conflicts) {
        const Epoch other = conflict.other;
        const RaceCore& before = *cores_[other.Block() * kBlockCores + other.Core()];
        const uint32_t site =
            before.log[other.Pipe()].At(other.Number() - before.first[other.Pipe()] - 1);
        Race(step,
             !write                 ? kReadAfterWrite
             : conflict.otherWrites ? kWriteAfterWrite
                                    : kWriteAfterRead,
             before, other.Pipe(), site, Space::Gm, conflict.from,
             static_cast<size_t>(conflict.to - conflict.from));
    }
    step.conflicts.clear();
}

void RaceCheck::Race(Step& step, Kind kind, const RaceCore& other, uint32_t otherPipe,
                     uint32_t otherSite, Space space, const void* address, size_t bytes) {
    const uint64_t key = static_cast<uint64_t>(kind) << 62 |
                         static_cast<uint64_t>(&other == &step.state) << 61 |
                         static_cast<uint64_t>(otherSite) << 31 | step.site;
    if (!step.state.reported.insert(key).second) {
        return;
    }
    static const char* const kinds[] = {"race: read after write", "race: write after read",
                                        "race: write after write"};
    Finding finding;
    finding.kind = kinds[kind];
    const Sites::Entry entry = Sites::At(otherSite);
    finding.first.op = entry.op;
    finding.first.where = entry.where;
    finding.first.pipe = static_cast<Pipe>(otherPipe);
    finding.second.op = step.op;
    finding.second.where = step.core.where;
    finding.second.pipe = static_cast<Pipe>(step.pipe);
    finding.memory = Place(step.core, space, address, bytes);
    if (&other != &step.state) {
        finding.first.core = other.title;
    }
    finding.missing =
        MissingOrder(CorePipe{other.block, other.slot, finding.first.pipe},
                     CorePipe{step.state.block, step.state.slot, finding.second.pipe});
    findings_.Add(step.core, std::move(finding));
}

// --- Order ---------------------------------------------------------------------------------------

// What is complete when a flag behind everything issued so far on the pipe is set.
Clock RaceCheck::Fire(RaceCore& core, uint32_t pipe) {
    Clock clock = core.clocks[pipe];
    clock.Join(core.clocks[kS], remotes_);
    clock.known[core.slot * kPipes + pipe] = core.shadow->numbers[pipe];
    return clock;
}

void RaceCheck::Learn(RaceCore& core, uint32_t pipe, const Clock& clock) {
    core.clocks[pipe].Join(clock, remotes_);
    if (pipe == kS) {
        ++core.issued;
    }
}

void RaceCheck::CompleteAll(RaceCore& core) {
    for (uint32_t pipe = 0; pipe < kPipes; ++pipe) {
        core.clocks[kS].Join(core.clocks[pipe], remotes_);
    }
    std::copy(core.shadow->numbers, core.shadow->numbers + kPipes,
              core.clocks[kS].known + core.slot * kPipes);
    ++core.issued;
}

void RaceCheck::OnOrdering(Core& core, Op op, const Ordering& ordering) {
    if (op == Op::Kernel && ordering.event == 0) {
        Start(core);
        return;
    }
    RaceCore& state = At(core);
    const uint32_t id = static_cast<uint32_t>(ordering.id);
    EventFlag* flag = ordering.id >= 0 && ordering.event >= 0 && op != Op::SyncAll
                          ? &state.shadow->events[ordering.event * kEventIds + id % kEventIds]
                          : nullptr;
    switch (op) {
        case Op::SetFlag:
        case Op::EnQue:
        case Op::FreeTensor:
            if (flag != nullptr) {
                flag->clock = Fire(state, EventPipes(ordering.event).source);
                flag->set = true;
                flag->setSite = state.shadow->cache.Number(op, false, core.where);
            } else if (ordering.event == static_cast<int32_t>(AscendC::HardEvent::V_V)) {
                // Vector to vector, a queue orders by a barrier.
                state.clocks[kV].known[state.slot * kPipes + kV] = state.shadow->numbers[kV];
            }
            break;
        case Op::WaitFlag:
        case Op::DeQue:
        case Op::AllocTensor:
            if (flag != nullptr && flag->set) {
                Learn(state, EventPipes(ordering.event).target, flag->clock);
                flag->set = false;
                flag->waitSite = state.shadow->cache.Number(op, false, core.where);
            }
            break;
        case Op::PipeBarrier: {
            const uint32_t pipe = IndexOf(ordering.event);
            if (pipe == kPipes) {
                CompleteAll(state);
            } else {
                state.clocks[pipe].known[state.slot * kPipes + pipe] = state.shadow->numbers[pipe];
            }
            break;
        }
        case Op::CrossCoreSetFlag:
            CrossSetFlag(core, state, ordering);
            break;
        case Op::CrossCoreWaitFlag:
            CrossWaitFlag(state, id);
            break;
        case Op::SyncAll:
            if (ordering.id == 0) {
                CompleteAll(state);
                Arrive(state, SyncGroup(ordering.event), state.syncs[ordering.event],
                       state.clocks[kS]);
            } else {
                Leave(state, SyncGroup(ordering.event), state.syncs[ordering.event]++);
            }
            break;
        case Op::Kernel:
            ReturnShadow(std::move(state.shadow));
            break;
        default:
            break;
    }
}

void RaceCheck::CrossSetFlag(Core& core, RaceCore& state, const Ordering& ordering) {
    const uint32_t mode = static_cast<uint32_t>(ordering.event);
    const uint32_t id = static_cast<uint32_t>(ordering.id);
    const CrossSet set{Fire(state, IndexOf(ordering.pipe)), IndexOf(ordering.pipe)};
    state.crossSite[id] = state.shadow->cache.Number(Op::CrossCoreSetFlag, false, core.where);
    if (mode == 0) {
        Arrive(state, GlobalGroup(state.slot, id), state.globalSets[id]++, set.clock);
        return;
    }
    const uint32_t vectors = core.owner->VectorCount();
    if (mode == 2 && state.slot != 0) {
        Peer(state, 0).crossed[state.slot][id].push_back(set);
        return;
    }
    for (uint32_t sub = 0; sub < vectors; ++sub) {
        Peer(state, 1 + sub).crossed[state.slot][id].push_back(set);
    }
}

void RaceCheck::CrossWaitFlag(RaceCore& state, uint32_t id) {
    bool any = false;
    for (std::vector<CrossSet>(&flags)[kCrossFlags] : state.crossed) {
        std::vector<CrossSet>& sets = flags[id];
        if (sets.empty()) {
            continue;
        }
        any = true;
        // The counter does not tell which set has counted: between sets behind different pipes
        // only what all of them say is certain, until the last of them has been waited for.
        const CrossSet taken = sets.front();
        Clock certain = taken.clock;
        bool mixed = false;
        for (const CrossSet& set : sets) {
            if (set.pipe != taken.pipe) {
                certain.Meet(set.clock);
                mixed = true;
            }
        }
        sets.erase(sets.begin());
        if (mixed) {
            sets.back().clock.Join(taken.clock, remotes_);
        }
        Learn(state, kS, certain);
    }
    if (!any) {
        Leave(state, GlobalGroup(state.slot, id), state.globalWaits[id]++);
    }
}

void RaceCheck::Arrive(RaceCore& state, uint32_t group, uint32_t generation, const Clock& clock) {
    std::lock_guard<std::mutex> lock(mutex_);
    Gathering& gathering = gatherings_[{group, generation}];
    gathering.known.resize(cores_.size() * kPipes);
    const auto raise = [&](size_t at, const uint32_t* known, size_t count) {
        for (size_t i = 0; i < count; ++i) {
            gathering.known[at + i] = std::max(gathering.known[at + i], known[i]);
        }
    };
    raise(static_cast<size_t>(state.block) * kBlockPipes, clock.known, kBlockPipes);
    if (clock.remote != nullptr) {
        raise(0, clock.remote->known.data(), clock.remote->known.size());
    }
}

void RaceCheck::Leave(RaceCore& state, uint32_t group, uint32_t generation) {
    Clock clock;
    {
        // Everybody has arrived: nobody leaves before.
        std::lock_guard<std::mutex> lock(mutex_);
        Gathering& gathering = gatherings_[{group, generation}];
        if (gathering.done == nullptr) {
            gathering.known.resize(cores_.size() * kPipes);
            gathering.done = remotes_.Add(std::move(gathering.known));
        }
        clock.remote = gathering.done;
    }
    const uint32_t* own = clock.remote->known.data() + state.block * kBlockPipes;
    std::copy(own, own + kBlockPipes, clock.known);
    Learn(state, kS, clock);
}

// --- For messages --------------------------------------------------------------------------------

std::string RaceCheck::EventHistory(const Core& core, int32_t event, int32_t id) {
    const EventFlag& flag = At(core).shadow->events[event * kEventIds + id];
    std::string text;
    if (flag.setSite != kNoSite) {
        text += std::string(flag.set ? ", set by " : ", last set by ") + SiteText(flag.setSite);
    }
    if (!flag.set && flag.waitSite != kNoSite) {
        text += ", waited for by " + SiteText(flag.waitSite);
    }
    return text;
}

std::string RaceCheck::CrossHistory(const Core& core, uint32_t id) {
    std::string text;
    const RaceCore& state = At(core);
    for (uint32_t slot = 0; slot < kBlockCores; ++slot) {
        const RaceCore& peer = Peer(state, slot);
        if (peer.title.empty() || peer.crossSite[id] == kNoSite) {
            continue;
        }
        text += (text.empty() ? ", last set by " : " and by ") + SiteText(peer.crossSite[id]) +
                " on " + peer.title;
    }
    return text;
}

std::string RaceCheck::QueueHistory(const Core& core) {
    std::string text;
    for (const EventFlag& flag : At(core).shadow->events) {
        if (flag.set && Sites::At(flag.setSite).op == Op::EnQue) {
            text += ", " + SiteText(flag.setSite);
        }
    }
    return text;
}

}  // namespace sim
