// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
//
// From a list of argument values to a call through a C function pointer of the exact type.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "acl_api.h"

namespace kda::bridge {

using CArgument = std::variant<aclTensor*, aclIntArray*, double, int64_t, bool, char*>;

struct StageSignature {
    const char* op;
    const char* kinds;  // one letter an argument: t tensor, a int array, d double, i int64, b bool,
                        // s string
    AclStatus (*invoke)(void* function, const std::vector<CArgument>& arguments,
                        uint64_t* workspaceSize, aclOpExecutor** executor);
};

template <typename... Args>
struct Invoker {
    using Function = AclStatus (*)(Args..., uint64_t*, aclOpExecutor**);

    static AclStatus Invoke(void* function, const std::vector<CArgument>& arguments,
                            uint64_t* workspaceSize, aclOpExecutor** executor) {
        return Unpack(reinterpret_cast<Function>(function), arguments, workspaceSize, executor,
                      std::index_sequence_for<Args...>{});
    }

private:
    template <size_t... I>
    static AclStatus Unpack(Function function, const std::vector<CArgument>& arguments,
                            uint64_t* workspaceSize, aclOpExecutor** executor,
                            std::index_sequence<I...>) {
        return function(std::get<Args>(arguments.at(I))..., workspaceSize, executor);
    }
};

// nullptr for an op that is not one of the nine.
const StageSignature* FindSignature(const std::string& op);

}  // namespace kda::bridge
