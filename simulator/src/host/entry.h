// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "aclnn/acl_meta.h"

// What the generated C functions call: one for each phase, the same for all operators.
namespace sim {

// One argument of a C function, as it came. The signature says how to read it.
struct Argument {
    Argument(const aclTensor* value) : pointer(value) {}
    Argument(const aclIntArray* value) : pointer(value) {}
    Argument(const aclFloatArray* value) : pointer(value) {}
    Argument(const aclBoolArray* value) : pointer(value) {}
    Argument(const char* value) : pointer(value) {}
    Argument(double value) : real(value) {}
    Argument(int64_t value) : integer(value) {}
    Argument(bool value) : boolean(value) {}
    struct Raw {};
    Argument(Raw, const void* value) : pointer(value) {}

    const void* pointer = nullptr;
    double real = 0.0;
    int64_t integer = 0;
    bool boolean = false;
};

// Calls the kernel entry with its GM addresses: inputs, outputs, workspace, tiling.
using KernelEntry = void (*)(uint8_t* const* addresses);

aclnnStatus PrepareOp(const char* opType, KernelEntry entry, const Argument* arguments,
                      size_t count, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept;
aclnnStatus RunOp(const char* opType, void* workspace, uint64_t workspaceSize,
                  aclOpExecutor* executor, aclrtStream stream) noexcept;

}  // namespace sim
