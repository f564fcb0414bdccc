// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <vector>

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
public:
    InferDataTypeContext(const ComputeNodeInfo* node, std::vector<ge::DataType>* outputs,
                         const std::vector<bool>* present)
        : ExtendedKernelContext(node), outputs_(outputs), present_(present) {}

    ge::DataType GetInputDataType(const size_t index) const {
        return TypeOf(InputByInstance(index));
    }
    ge::DataType GetOptionalInputDataType(const size_t irIndex) const {
        return TypeOf(InputByIr(irIndex));
    }
    ge::DataType GetRequiredInputDataType(const size_t irIndex) const {
        return TypeOf(InputByIr(irIndex));
    }
    ge::DataType GetOutputDataType(const size_t index) const {
        return index < outputs_->size() ? (*outputs_)[index] : ge::DT_UNDEFINED;
    }
    ge::graphStatus SetOutputDataType(const size_t index, const ge::DataType dataType) {
        if (index >= outputs_->size() || !(*present_)[index]) {
            return ge::GRAPH_FAILED;
        }
        (*outputs_)[index] = dataType;
        return ge::GRAPH_SUCCESS;
    }

private:
    static ge::DataType TypeOf(const Tensor* tensor) {
        return tensor == nullptr ? ge::DT_UNDEFINED : tensor->GetDataType();
    }

    std::vector<ge::DataType>* outputs_;
    const std::vector<bool>* present_;
};

}  // namespace gert
