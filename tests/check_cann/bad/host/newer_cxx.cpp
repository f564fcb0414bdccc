// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
// Only the compiler sees it: op projects compile op_host as C++11.
#include "register/op_def_registry.h"

static auto Twice(int value) {  // bad: type-check
    return 2 * value;
}

namespace ops {

class NewerCxx : public OpDef {
public:
    explicit NewerCxx(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("out").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    }
};

OP_ADD(NewerCxx);

}  // namespace ops
