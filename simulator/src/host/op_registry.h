// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "register/op_def_registry.h"

namespace sim {

// An operator as the library knows it: its definition and the functions registered for it.
struct Operator {
    explicit Operator(const ops::OpDef& definition) : def(definition) {}
    ops::OpDef def;
    gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    size_t maxTilingDataSize = 2048;
    gert::OpImplRegisterV2::InferShapeKernelFunc inferShape = nullptr;
    gert::OpImplRegisterV2::InferDataTypeKernelFunc inferDataType = nullptr;
};

// Sorted by type. The definitions are built on first use: static initialisers only register.
const std::vector<std::unique_ptr<Operator>>& AllOperators();
const Operator& FindOperator(const std::string& type);

}  // namespace sim
