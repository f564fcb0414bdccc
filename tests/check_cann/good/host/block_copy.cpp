// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// A definition that passes.
#include "register/op_def_registry.h"

namespace ops {

class BlockCopy : public OpDef {
public:
    explicit BlockCopy(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("out").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    }
};

OP_ADD(BlockCopy);

}  // namespace ops
