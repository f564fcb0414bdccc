// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_RACES_H
#define SIM_CHECK_RACES_H

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "check/checker.h"
#include "check/clocks.h"
#include "check/gm_shadow.h"
#include "check/shadow.h"

namespace sim {

// A cross-core set on its way to the core that waits for it.
struct CrossSet {
    Clock clock;
    uint32_t pipe;
};

// What the race check knows about one core of the launch; it lives as long as the launch, because
// reports about other cores name its instructions.
struct RaceCore {
    uint32_t block = 0;
    uint32_t slot = 0;  // 0: AIC, 1, 2: AIVs
    std::string title;
    std::unique_ptr<Shadow> shadow;  // while the core runs
    uint32_t first[kPipes] = {};     // number of the last instruction before this core's first
    InstructionLog log[kPipes];

    // What is complete when a pipe starts its next instruction. The scalar pipe issues all of them,
    // so every instruction starts after what the scalar pipe has waited for.
    Clock clocks[kPipes];
    uint32_t issued = 1;  // counts the changes of the scalar pipe's clock
    uint32_t seen[kPipes] = {};

    std::vector<CrossSet> crossed[kBlockCores][kCrossFlags];  // sets for this core, by setter
    uint32_t crossSite[kCrossFlags];                          // this core's last set
    uint32_t globalSets[kCrossFlags] = {};                    // mode 0
    uint32_t globalWaits[kCrossFlags] = {};
    uint32_t syncs[2] = {};

    uint32_t gmHint = 0;
    std::unordered_set<uint64_t> reported;  // kind and both sites
};

class RaceCheck : public Check {
public:
    RaceCheck(LaunchState& launch, Findings& findings);
    void OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) override;
    void OnOrdering(Core& core, Op op, const Ordering& ordering) override;
    void OnEnd(LaunchState& launch) override;

    std::string EventHistory(const Core& core, int32_t event, int32_t id) override;
    std::string CrossHistory(const Core& core, uint32_t id) override;
    std::string QueueHistory(const Core& core) override;

private:
    enum Kind : uint64_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };
    struct Step;  // one instruction being checked

    void Start(Core& core);
    RaceCore& At(const Core& core) const { return *static_cast<RaceCore*>(core.checks[kRaces]); }
    RaceCore& Peer(const RaceCore& core, uint32_t slot) const {
        return *cores_[core.block * kBlockCores + slot];
    }

    Clock Fire(RaceCore& core, uint32_t pipe);
    void Learn(RaceCore& core, uint32_t pipe, const Clock& clock);
    void CompleteAll(RaceCore& core);
    void CrossSetFlag(Core& core, RaceCore& state, const Ordering& ordering);
    void CrossWaitFlag(RaceCore& state, uint32_t id);
    void Arrive(RaceCore& state, uint32_t group, uint32_t generation, const Clock& clock);
    void Leave(RaceCore& state, uint32_t group, uint32_t generation);

    void CheckAccess(Step& step, const Access& access);
    void Mark(Step& step, const Access& access);
    void CheckLocal(Step& step, Space space, uint32_t from, uint32_t to, bool write);
    void CheckPlane(Step& step, Space space, uint32_t from, uint32_t to, uint32_t pipe, Kind kind);
    void ReportLocal(Step& step, Space space, uint32_t from, uint32_t to, uint32_t pipe, Kind kind);
    void TouchGm(Step& step, const uint8_t* at, size_t bytes, bool write);
    void Race(Step& step, Kind kind, const RaceCore& other, uint32_t otherPipe, uint32_t otherSite,
              Space space, const void* address, size_t bytes);

    LaunchState& launch_;
    Findings& findings_;
    Remotes remotes_;
    GmShadow gm_;
    std::vector<std::unique_ptr<RaceCore>> cores_;  // [block][slot]

    // What the cores brought to a joint release of the launch.
    struct Gathering {
        std::vector<uint32_t> known;
        const Remote* done = nullptr;
    };
    std::mutex mutex_;
    std::map<std::pair<uint32_t, uint32_t>, Gathering> gatherings_;  // by group, generation
};

}  // namespace sim

#endif  // SIM_CHECK_RACES_H
