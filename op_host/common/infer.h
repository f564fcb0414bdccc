// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What the shape inference of the stages shares.
#ifndef KDA_OP_HOST_COMMON_INFER_H
#define KDA_OP_HOST_COMMON_INFER_H

#include "register/op_impl_registry.h"

#include "layout.h"

namespace kda {

// An OPTIONAL output that the caller leaves out has no shape object.
inline void Infer(gert::InferShapeContext* context, size_t output, const Dims& dims) {
    gert::Shape* shape = context->GetOutputShape(output);
    if (shape == nullptr) {
        return;
    }
    shape->SetDimNum(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
        shape->SetDim(i, dims[i]);
    }
}

// The layout that an attribute names; false when it names none.
inline bool InferLayout(gert::InferShapeContext* context, size_t attribute, Layout* layout) {
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    const char* text = attrs == nullptr ? nullptr : attrs->GetAttrPointer<char>(attribute);
    return text != nullptr && ParseLayout(text, layout);
}

// Sizes from an operand; false when its rank is not that of the layout.
inline bool InferSizes(gert::InferShapeContext* context, size_t input, const Layout& layout,
                       CallSizes* sizes) {
    const gert::Shape* shape = context->GetOptionalInputShape(input);
    if (shape == nullptr || shape->GetDimNum() != RowRank(layout)) {
        return false;
    }
    *sizes = SizesOf(layout, DimsOf(*shape));
    return true;
}
// Sizes from a head-major cache of either rank.
inline bool InferCacheSizes(gert::InferShapeContext* context, size_t input, CallSizes* sizes) {
    const gert::Shape* shape = context->GetOptionalInputShape(input);
    return shape != nullptr &&
           InferSizes(context, input, CacheLayout(shape->GetDimNum() == 3), sizes);
}

// N: cu_seqlens has one entry more than there are sequences.
inline int64_t InferSequences(gert::InferShapeContext* context, size_t cuSeqlens, int64_t batch) {
    const gert::Shape* shape = context->GetOptionalInputShape(cuSeqlens);
    return shape == nullptr ? batch : shape->GetShapeSize() - 1;
}
// Nc: chunk_indices has two numbers a chunk.
inline int64_t InferChunks(gert::InferShapeContext* context, size_t cuSeqlens, size_t chunkIndices,
                           int64_t tokens) {
    if (context->GetOptionalInputShape(cuSeqlens) == nullptr) {
        return (tokens + kChunkRows - 1) / kChunkRows;
    }
    const gert::Shape* shape = context->GetOptionalInputShape(chunkIndices);
    return shape == nullptr ? 0 : shape->GetShapeSize() / 2;
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_INFER_H
