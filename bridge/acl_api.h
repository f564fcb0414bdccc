// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
//
// The few names of the ACL ABI that a two-phase call needs. They are resolved at run time, so the
// bridge builds without a CANN toolkit and the same binary serves an NPU and the simulator.
#pragma once

#include <cstdint>

struct aclTensor;
struct aclIntArray;
struct aclOpExecutor;

namespace kda::bridge {

using AclStatus = int32_t;
using AclStream = void*;

// aclDataType and aclFormat are plain C enums.
enum class AclDataType : int32_t { kFloat = 0, kFloat16 = 1, kInt64 = 9, kBfloat16 = 27 };
enum class AclFormat : int32_t { kNd = 2 };

using CreateTensorFn = aclTensor* (*)(const int64_t* viewDims, uint64_t viewDimsNum,
                                      AclDataType dataType, const int64_t* stride, int64_t offset,
                                      AclFormat format, const int64_t* storageDims,
                                      uint64_t storageDimsNum, void* tensorData);
using DestroyTensorFn = AclStatus (*)(const aclTensor*);
using CreateIntArrayFn = aclIntArray* (*)(const int64_t* value, uint64_t size);
using DestroyIntArrayFn = AclStatus (*)(const aclIntArray*);
using RecentErrMsgFn = const char* (*)();
using LaunchFn = AclStatus (*)(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               AclStream stream);

}  // namespace kda::bridge
