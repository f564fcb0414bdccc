// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KERNEL_OPERATOR_H
#define KERNEL_OPERATOR_H

// The header that AscendC kernels include. Its parts live in ascendc/, one concept a file.

#endif    // KERNEL_OPERATOR_H
