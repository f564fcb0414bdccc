// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <vector>

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
public:
    // `present` says which OPTIONAL outputs the caller wants; the others have no shape.
    InferShapeContext(const ComputeNodeInfo* node, std::vector<Shape>* outputs,
                      const std::vector<bool>* present)
        : ExtendedKernelContext(node), outputs_(outputs), present_(present) {}

    const Shape* GetInputShape(const size_t index) const { return ShapeOf(InputByInstance(index)); }
    const Shape* GetOptionalInputShape(const size_t irIndex) const {
        return ShapeOf(InputByIr(irIndex));
    }
    const Shape* GetRequiredInputShape(const size_t irIndex) const {
        return ShapeOf(InputByIr(irIndex));
    }
    const Tensor* GetInputTensor(const size_t index) const { return InputByInstance(index); }
    const Tensor* GetOptionalInputTensor(const size_t irIndex) const { return InputByIr(irIndex); }
    const Tensor* GetRequiredInputTensor(const size_t irIndex) const { return InputByIr(irIndex); }
    Shape* GetOutputShape(const size_t index) {
        return index < outputs_->size() && (*present_)[index] ? &(*outputs_)[index] : nullptr;
    }

private:
    static const Shape* ShapeOf(const Tensor* tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetOriginShape();
    }

    std::vector<Shape>* outputs_;
    const std::vector<bool>* present_;
};

}  // namespace gert
