// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_RACE_TEXT_H
#define SIM_CHECK_RACE_TEXT_H

#include <cstdint>
#include <string>

#include "check/sites.h"

namespace sim {

// The pipes that a HardEvent orders, by index.
struct PipePair {
    uint32_t source;
    uint32_t target;
};
PipePair EventPipes(int32_t event);

struct CorePipe {
    uint32_t block;
    uint32_t slot;  // 0: AIC, 1, 2: AIVs
    Pipe pipe;
};

// What a kernel would add so that `second` starts after `first` has ended.
std::string MissingOrder(const CorePipe& first, const CorePipe& second);

// "SetFlag at file.cpp:12"
std::string SiteText(uint32_t site);

}  // namespace sim

#endif  // SIM_CHECK_RACE_TEXT_H
