// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/ge_error_codes.h"
#include "graph/types.h"

namespace gert {

class OpImplRegisterV2 {
public:
    using InferShapeKernelFunc = uint32_t (*)(InferShapeContext*);
    using TilingKernelFunc = uint32_t (*)(TilingContext*);
    using InferDataTypeKernelFunc = uint32_t (*)(InferDataTypeContext*);
    using TilingParseFunc = uint32_t (*)(TilingParseContext*);

    explicit OpImplRegisterV2(const ge::char_t* opType) : opType_(opType) {}
    OpImplRegisterV2& InferShape(InferShapeKernelFunc function);
    OpImplRegisterV2& InferDataType(InferDataTypeKernelFunc function);
    OpImplRegisterV2& Tiling(TilingKernelFunc function, size_t maxTilingDataSize = 2048);
    template <typename T>
    OpImplRegisterV2& TilingParse(TilingParseFunc) {
        return *this;
    }
    // The op definition's ValueDepend already says which inputs these are.
    OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t>) { return *this; }
    OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t>) { return *this; }

private:
    const char* opType_;
};

}  // namespace gert

#define SIM_UNUSED_VARIABLE __attribute__((unused))
#define IMPL_OP_COUNTER(opType, name, counter)                        \
    static gert::OpImplRegisterV2 SIM_UNUSED_VARIABLE name##counter = \
        gert::OpImplRegisterV2(#opType)
#define IMPL_OP_COUNTER_NUMBER(opType, name, counter) IMPL_OP_COUNTER(opType, name, counter)
#define IMPL_OP(opType) IMPL_OP_COUNTER_NUMBER(opType, op_impl_register_##opType, __COUNTER__)
#define IMPL_OP_INFERSHAPE(opType)                                                    \
    gert::OpImplRegisterV2 SIM_UNUSED_VARIABLE op_impl_register_infershape_##opType = \
        gert::OpImplRegisterV2(#opType)
#define IMPL_OP_OPTILING(opType)                                                    \
    gert::OpImplRegisterV2 SIM_UNUSED_VARIABLE op_impl_register_optiling_##opType = \
        gert::OpImplRegisterV2(#opType)
