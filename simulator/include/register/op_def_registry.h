// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include "register/op_def.h"

namespace ops {

using OpDefCreator = OpDef (*)(const char* opType);
int RegisterOpDef(const char* opType, OpDefCreator creator);

}  // namespace ops

#define OP_ADD(opType, ...)         \
    static int g_##opType##_added = \
        ops::RegisterOpDef(#opType, [](const char* name) -> ops::OpDef { return opType(name); })
