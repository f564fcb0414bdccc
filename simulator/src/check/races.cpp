// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/checker.h"

namespace sim {

std::unique_ptr<Check> MakeRaceCheck(LaunchState&, Findings&) {
    return nullptr;
}

}  // namespace sim
