// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>

#include "acl_objects.h"

namespace sim {

// Elements of a strided view into a contiguous buffer, and back.
void GatherView(const aclTensor& view, uint8_t* contiguous);
void ScatterView(const uint8_t* contiguous, const aclTensor& view);

}  // namespace sim
