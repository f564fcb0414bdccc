// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_SITES_H
#define SIM_CHECK_SITES_H

#include <cstdint>

#include "sim/core.h"

namespace sim {

constexpr uint32_t kNoSite = ~0u;

// The places in kernel sources that instructions come from, by small numbers: 4 bytes for every
// instruction that ran are enough to name it in a report. Numbers stay valid in all launches.
class Sites {
public:
    struct Entry {
        Op op;
        bool inOrder;  // a large Mmad, see RaceCheck
        Where where;
    };
    static uint32_t Number(const Entry& entry);
    static Entry At(uint32_t number);
};

// A core's memory of the numbers it used last: most need no lock.
class SiteCache {
public:
    uint32_t Number(Op op, bool inOrder, const Where& where) {
        const uintptr_t hash = reinterpret_cast<uintptr_t>(where.file) * 31 +
                               static_cast<uintptr_t>(where.line) * 7 + static_cast<uintptr_t>(op) +
                               inOrder;
        Slot& slot = slots_[hash % kSlots];
        if (slot.entry.where.file != where.file || slot.entry.where.line != where.line ||
            slot.entry.op != op || slot.entry.inOrder != inOrder) {
            slot.entry = Sites::Entry{op, inOrder, where};
            slot.number = Sites::Number(slot.entry);
        }
        return slot.number;
    }

private:
    static constexpr size_t kSlots = 256;
    struct Slot {
        Sites::Entry entry{Op::Count, false, {nullptr, 0}};
        uint32_t number = 0;
    };
    Slot slots_[kSlots];
};

}  // namespace sim

#endif  // SIM_CHECK_SITES_H
