// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Short forms for op definitions. CANN reads dtype and format lists column by column: every operand
// of an op lists one entry a supported combination, all lists equally long.
#ifndef KDA_OP_HOST_COMMON_OP_PARAMS_H
#define KDA_OP_HOST_COMMON_OP_PARAMS_H

#include <vector>

#include "register/op_def_registry.h"

namespace kda {

inline void Describe(ops::OpParamDef& operand, ops::Option kind,
                     const std::vector<ge::DataType>& types) {
    operand.ParamType(kind).DataType(types).Format(
        std::vector<ge::Format>(types.size(), ge::FORMAT_ND));
    operand.AutoContiguous();  // tiling does not see strides: CANN copies a strided operand first
}
inline void Required(ops::OpParamDef& operand, const std::vector<ge::DataType>& types) {
    Describe(operand, ops::REQUIRED, types);
}
inline void Optional(ops::OpParamDef& operand, const std::vector<ge::DataType>& types) {
    Describe(operand, ops::OPTIONAL, types);
}
// A list of columns, and all of them once more with float16 in the place of bfloat16.
inline std::vector<ge::DataType> WithHalf(const std::vector<ge::DataType>& types) {
    std::vector<ge::DataType> both = types;
    for (size_t i = 0; i < types.size(); ++i) {
        both.push_back(types[i] == ge::DT_BF16 ? ge::DT_FLOAT16 : types[i]);
    }
    return both;
}
// cu_seqlens and chunk_indices: the tiling reads their values.
inline void OptionalIndices(ops::OpParamDef& operand, size_t columns) {
    Describe(operand, ops::OPTIONAL, std::vector<ge::DataType>(columns, ge::DT_INT64));
    operand.ValueDepend(ops::OPTIONAL);
}

// The chips these kernels are written for: one AIC with two AIVs a core.
inline void ForAscend910B(ops::OpAICoreDef& core) {
    core.AddConfig("ascend910b");
    core.AddConfig("ascend910_93");
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_OP_PARAMS_H
