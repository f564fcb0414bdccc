// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule aclnn-names: the operator OpNames lives in op_names.cpp.
#include "register/op_def_registry.h"

namespace ops {

class OpNames : public OpDef {
public:
    explicit OpNames(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("out").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    }
};

OP_ADD(OpNames);  // bad: aclnn-names

}  // namespace ops
