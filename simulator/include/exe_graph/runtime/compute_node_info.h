// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"

namespace gert {

// Where an operand of the op definition stands among the node's operands, and how many it has:
// none when it is OPTIONAL and absent.
class AnchorInstanceInfo {
public:
    AnchorInstanceInfo() = default;
    AnchorInstanceInfo(uint32_t start, uint32_t num) : start_(start), num_(num) {}
    size_t GetInstanceStart() const { return start_; }
    size_t GetInstanceNum() const { return num_; }

private:
    uint32_t start_ = 0;
    uint32_t num_ = 0;
};

class CompileTimeTensorDesc {
public:
    CompileTimeTensorDesc() = default;
    explicit CompileTimeTensorDesc(ge::DataType dataType) : dataType_(dataType) {}
    ge::DataType GetDataType() const { return dataType_; }
    ge::Format GetOriginFormat() const { return ge::FORMAT_ND; }
    ge::Format GetStorageFormat() const { return ge::FORMAT_ND; }

private:
    ge::DataType dataType_ = ge::DT_UNDEFINED;
};

// One node as its contexts see it. Inputs are the instances: an absent OPTIONAL input has none, so
// every later input has a smaller instance index than IR index, as in CANN.
struct ComputeNodeInfo {
    static constexpr int kAbsent = -1;

    std::string type;
    std::string name;
    std::vector<Tensor> inputs;
    std::vector<CompileTimeTensorDesc> inputDescs;
    std::vector<int> irInputToInstance;
    std::vector<Tensor> outputs;
    std::vector<CompileTimeTensorDesc> outputDescs;
    std::vector<bool> outputPresent;
    std::vector<AnchorInstanceInfo> outputInstances;
    RuntimeAttrs attrs;

    size_t GetInputsNum() const { return inputs.size(); }
    size_t GetOutputsNum() const { return outputs.size(); }
    const char* GetNodeType() const { return type.c_str(); }
    const char* GetNodeName() const { return name.c_str(); }
};

}  // namespace gert
