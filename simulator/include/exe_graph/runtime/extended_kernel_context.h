// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include "exe_graph/runtime/compute_node_info.h"
#include "graph/ge_error_codes.h"

namespace gert {

// Two index spaces, as in CANN: `index` counts the inputs that are present, `irIndex` counts the
// inputs of the op definition. After an OPTIONAL input only the IR index is safe.
class ExtendedKernelContext {
public:
    explicit ExtendedKernelContext(const ComputeNodeInfo* node) : node_(node) {}

    const CompileTimeTensorDesc* GetInputDesc(const size_t index) const {
        return index < node_->inputDescs.size() ? &node_->inputDescs[index] : nullptr;
    }
    const CompileTimeTensorDesc* GetOptionalInputDesc(const size_t irIndex) const {
        const int instance = Instance(irIndex);
        return instance >= 0 ? &node_->inputDescs[static_cast<size_t>(instance)] : nullptr;
    }
    const CompileTimeTensorDesc* GetRequiredInputDesc(const size_t irIndex) const {
        return GetOptionalInputDesc(irIndex);
    }
    const CompileTimeTensorDesc* GetOutputDesc(const size_t index) const {
        return HasOutput(index) ? &node_->outputDescs[index] : nullptr;
    }
    const AnchorInstanceInfo* GetIrOutputInstanceInfo(const size_t irIndex) const {
        return irIndex < node_->outputInstances.size() ? &node_->outputInstances[irIndex] : nullptr;
    }
    size_t GetComputeNodeInputNum() const { return node_->GetInputsNum(); }
    size_t GetComputeNodeOutputNum() const { return node_->GetOutputsNum(); }
    const RuntimeAttrs* GetAttrs() const { return &node_->attrs; }
    const ge::char_t* GetNodeType() const { return node_->GetNodeType(); }
    const ge::char_t* GetNodeName() const { return node_->GetNodeName(); }
    const ComputeNodeInfo* GetComputeNodeInfo() const { return node_; }

protected:
    int Instance(size_t irIndex) const {
        return irIndex < node_->irInputToInstance.size() ? node_->irInputToInstance[irIndex]
                                                         : ComputeNodeInfo::kAbsent;
    }
    bool HasOutput(size_t index) const {
        return index < node_->outputs.size() && node_->outputPresent[index];
    }
    const Tensor* InputByInstance(size_t index) const {
        return index < node_->inputs.size() ? &node_->inputs[index] : nullptr;
    }
    const Tensor* InputByIr(size_t irIndex) const {
        const int instance = Instance(irIndex);
        return instance >= 0 ? &node_->inputs[static_cast<size_t>(instance)] : nullptr;
    }

    const ComputeNodeInfo* node_;
};

}  // namespace gert
