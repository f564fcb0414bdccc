// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef KDA_OP_HOST_COMMON_INFER_H
#define KDA_OP_HOST_COMMON_INFER_H

#include "register/op_impl_registry.h"

namespace kda {

// An OPTIONAL output that the caller leaves out has no shape object.
inline void InferOptional(gert::InferShapeContext* context, size_t output,
                          const gert::Shape& shape) {
    gert::Shape* place = context->GetOutputShape(output);
    if (place != nullptr) {
        *place = shape;
    }
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_INFER_H
