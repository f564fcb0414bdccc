// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/clocks.h"

#include <algorithm>

namespace sim {

const Remote* Remotes::Join(const Remote* a, const Remote* b) {
    if (a == nullptr || b == nullptr || a == b) {
        return a != nullptr ? a : b;
    }
    bool more = false;  // a knows something that b does not
    bool less = false;
    for (size_t i = 0; i < a->known.size(); ++i) {
        more |= a->known[i] > b->known[i];
        less |= a->known[i] < b->known[i];
    }
    if (!more || !less) {
        return less ? b : a;
    }
    std::vector<uint32_t> known(a->known);
    for (size_t i = 0; i < known.size(); ++i) {
        known[i] = std::max(known[i], b->known[i]);
    }
    return Add(std::move(known));
}

const Remote* Remotes::Add(std::vector<uint32_t> known) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_.emplace_back(new Remote{std::move(known)});
    return all_.back().get();
}

}  // namespace sim
