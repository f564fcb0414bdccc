// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "op_registry.h"

#include <map>
#include <stdexcept>

namespace sim {
namespace {

struct Implementation {
    gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    size_t maxTilingDataSize = 2048;
    gert::OpImplRegisterV2::InferShapeKernelFunc inferShape = nullptr;
    gert::OpImplRegisterV2::InferDataTypeKernelFunc inferDataType = nullptr;
};

std::map<std::string, ops::OpDefCreator>& Creators() {
    static std::map<std::string, ops::OpDefCreator> creators;
    return creators;
}

std::map<std::string, Implementation>& Implementations() {
    static std::map<std::string, Implementation> implementations;
    return implementations;
}

std::vector<std::unique_ptr<Operator>> BuildOperators() {
    std::vector<std::unique_ptr<Operator>> operators;
    for (const auto& entry : Creators()) {
        auto op = std::make_unique<Operator>(entry.second(entry.first.c_str()));
        // IMPL_OP wins over the definition's own functions.
        op->tiling = op->def.aiCore.tiling;
        op->inferShape = op->def.inferShape;
        op->inferDataType = op->def.inferDataType;
        const auto found = Implementations().find(entry.first);
        if (found != Implementations().end()) {
            const Implementation& extra = found->second;
            op->tiling = extra.tiling != nullptr ? extra.tiling : op->tiling;
            op->maxTilingDataSize = extra.maxTilingDataSize;
            op->inferShape = extra.inferShape != nullptr ? extra.inferShape : op->inferShape;
            op->inferDataType =
                extra.inferDataType != nullptr ? extra.inferDataType : op->inferDataType;
        }
        operators.push_back(std::move(op));
    }
    return operators;
}

}  // namespace

const std::vector<std::unique_ptr<Operator>>& AllOperators() {
    static const std::vector<std::unique_ptr<Operator>> operators = BuildOperators();
    return operators;
}

const Operator& FindOperator(const std::string& type) {
    for (const auto& op : AllOperators()) {
        if (op->def.type == type) {
            return *op;
        }
    }
    throw std::runtime_error("no operator of type " + type + " in this library");
}

}  // namespace sim

namespace ops {

int RegisterOpDef(const char* opType, OpDefCreator creator) {
    sim::Creators()[opType] = creator;
    return 0;
}

}  // namespace ops

namespace gert {

OpImplRegisterV2& OpImplRegisterV2::InferShape(InferShapeKernelFunc function) {
    sim::Implementations()[opType_].inferShape = function;
    return *this;
}

OpImplRegisterV2& OpImplRegisterV2::InferDataType(InferDataTypeKernelFunc function) {
    sim::Implementations()[opType_].inferDataType = function;
    return *this;
}

OpImplRegisterV2& OpImplRegisterV2::Tiling(TilingKernelFunc function, size_t maxTilingDataSize) {
    sim::Implementations()[opType_].tiling = function;
    sim::Implementations()[opType_].maxTilingDataSize = maxTilingDataSize;
    return *this;
}

}  // namespace gert
