// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>

struct SimTestRowUpdateTilingData {
    int64_t rows;
    int64_t columns;
    int64_t rowBytes;
    float scale;
    float offset;
    int32_t hasBias;
    int32_t hasCopy;
    int32_t isHalf;
    int32_t reserved;
};
