// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>

struct SimTestMatmulTilingData {
    int32_t tasks;
    int32_t spin;
    int32_t breakRule;
    int32_t reserved;
};
