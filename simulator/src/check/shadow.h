// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_SHADOW_H
#define SIM_CHECK_SHADOW_H

#include <cstdint>
#include <memory>
#include <vector>

#include "check/clocks.h"
#include "check/sites.h"

// The shadow of a core's own memories: for every pipe, which of its instructions last read and last
// wrote a granule. A pipe's marks only grow, and a write that is ordered behind a read or a write
// orders everything behind it too: so nothing is ever erased, and a check is one maximum.
namespace sim {

constexpr uint32_t kGranule = 32;

// One pipe's reads, or its writes, in one memory.
class Plane {
public:
    explicit Plane(uint32_t bytes);
    ~Plane();
    Plane(const Plane&) = delete;
    Plane& operator=(const Plane&) = delete;

    // The last instruction that touched this memory anywhere.
    uint32_t Last() const { return last_; }
    void Mark(uint32_t from, uint32_t to, uint32_t number);

    // Bytes of [from, to) whose last instruction is later than `known`, as stretches of one
    // instruction each.
    struct Stretch {
        uint32_t from;
        uint32_t to;
        uint32_t number;
    };
    bool Later(uint32_t from, uint32_t to, uint32_t known) const {
        const uint32_t end = (to + kGranule - 1) / kGranule;
        uint32_t last = 0;
        for (uint32_t i = from / kGranule; i < end; ++i) {
            last = last > marks_[i] ? last : marks_[i];
        }
        return last > known;
    }
    // The same byte by byte, for when Later says so.
    void Collect(uint32_t from, uint32_t to, uint32_t known, std::vector<Stretch>* found) const;

private:
    void MarkPart(uint32_t granule, uint32_t from, uint32_t to, uint32_t number);

    // A granule that was touched in part has a mark a byte. They are valid while `split` equals the
    // granule's mark: an instruction that covers the whole granule changes only the mark.
    void* mapping_;
    size_t mapped_;
    uint32_t* marks_;
    uint32_t* split_;
    uint32_t* bytes_;
    uint32_t last_ = 0;
};

// One event id of a core.
struct EventFlag {
    Clock clock;
    bool set;
    uint32_t setSite;
    uint32_t waitSite;
};

// What the race check needs while a core runs. Reused block to block and from launch
// to launch: `numbers` count on, so what an earlier block left is known to be complete.
struct Shadow {
    uint32_t numbers[kPipes] = {};
    std::unique_ptr<Plane> planes[static_cast<size_t>(Space::Count)][2][kPipes];  // reads, writes

    EventFlag events[static_cast<size_t>(AscendC::HardEvent::MAX) * kEventIds];
    SiteCache cache;

    Plane& At(Space space, bool write, uint32_t pipe);
};

std::unique_ptr<Shadow> TakeShadow();
void ReturnShadow(std::unique_ptr<Shadow> shadow);

}  // namespace sim

#endif  // SIM_CHECK_SHADOW_H
