// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Rule aclnn-names: operands are in snake case.
#include "register/op_def_registry.h"

namespace ops {

class OperandName : public OpDef {
public:
    explicit OperandName(const char* name) : OpDef(name) {
        // bad-next: aclnn-names
        this->Input("xRows").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("out").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    }
};

OP_ADD(OperandName);

}  // namespace ops
