// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <string>
#include <vector>

#include "acl_objects.h"
#include "entry.h"
#include "exe_graph/runtime/compute_node_info.h"
#include "op_registry.h"
#include "signature.h"

namespace sim {

// The operands and attributes of one call, checked against the op definition.
struct Call {
    const Operator* op = nullptr;
    // Per IR input: one of the two pointers, or neither for an absent OPTIONAL input.
    struct Input {
        const aclTensor* tensor = nullptr;
        // A ValueDepend array's bytes; kept by the call because the caller may destroy the array.
        std::vector<uint8_t> values;
        bool isArray = false;
        int64_t count = 0;
        ge::DataType dataType = ge::DT_UNDEFINED;
        bool Present() const { return tensor != nullptr || isArray; }
    };
    std::vector<Input> inputs;
    // Per IR output; a Ref output is the input's tensor; null for an absent OPTIONAL output.
    std::vector<const aclTensor*> outputs;
    gert::ComputeNodeInfo node;
};

// Throws StatusError naming the argument, what was expected and what came. Without `withOutputs`
// the arguments end before the outputs (shape inference).
void FillCall(const Operator& op, const Argument* arguments, size_t count, bool withOutputs,
              Call& call);

}  // namespace sim
