// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KERNEL_OPERATOR_H
#define KERNEL_OPERATOR_H

// The header that AscendC kernels include. Its parts live in ascendc/, one concept a file.
#include "ascendc/copy.h"
#include "ascendc/cube.h"
#include "ascendc/pipe.h"
#include "ascendc/sync.h"
#include "ascendc/system.h"
#include "ascendc/tensor.h"
#include "ascendc/types.h"
#include "ascendc/vector_arith.h"
#include "ascendc/vector_compare.h"
#include "ascendc/vector_data.h"
#include "ascendc/vector_reduce.h"

#endif  // KERNEL_OPERATOR_H
