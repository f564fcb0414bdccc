// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <string>
#include <vector>

#include "register/op_def.h"

namespace sim {

// "ChunkOpFwd" -> "chunk_op_fwd": file and entry name of an operator's kernel.
std::string SnakeCase(const std::string& opType);
// "A_log" -> "aLog": an operand's or attribute's name in the C interface.
std::string CamelCase(const std::string& snake);

enum class ParamRole { kInput, kAttr, kOutput, kRef };

// One parameter of aclnn<Op>GetWorkspaceSize.
struct CParam {
    ParamRole role = ParamRole::kInput;
    size_t index = 0;        // in the definition's inputs, attributes or outputs
    size_t outputIndex = 0;  // of a Ref: the output that shares the input's memory
    std::string type;        // with a trailing space or *
    std::string name;
};

// The documented rule: inputs, attributes, outputs; OPTIONAL tensors, strings and arrays end in
// "Optional"; an output named like an input becomes one xRef in the input's place; a single
// output is called out, several xOut.
std::vector<CParam> CSignature(const ops::OpDef& def);

// Index of the input that output `outputIndex` is a Ref of, or -1.
int RefInput(const ops::OpDef& def, size_t outputIndex);

const char* DataTypeName(ge::DataType type);

}  // namespace sim
