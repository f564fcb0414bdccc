// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "acl_api.h"
#include "op_library.h"

namespace kda::bridge {

// A contiguous tensor in device memory, as MindSpore holds it.
struct TensorView {
    void* data = nullptr;
    AclDataType dataType = AclDataType::kFloat;
    std::vector<int64_t> shape;
};

using OptionalTensor = std::optional<TensorView>;
using OptionalIntArray = std::optional<std::vector<int64_t>>;

// One argument of the C entry point, in its declared order: inputs, attributes, outputs.
using Argument = std::variant<OptionalTensor, OptionalIntArray, double, int64_t, bool, std::string>;

struct StageSignature;

// The two symbols of a stage in one library. Finding it throws when either is missing, so it is
// done before anything is dispatched.
class Stage {
public:
    static Stage Find(const std::string& libraryPath, const std::string& op);

    const std::string& op() const { return op_; }

private:
    friend class StageCall;
    Stage() = default;

    std::string op_;
    std::shared_ptr<OpLibrary> library_;
    const StageSignature* signature_ = nullptr;
    void* getWorkspaceSize_ = nullptr;
    LaunchFn launch_ = nullptr;
};

// One two-phase call: Prepare, then Launch with a workspace of the size that Prepare returned.
class StageCall {
public:
    StageCall(Stage stage, std::vector<Argument> arguments);
    ~StageCall();
    StageCall(const StageCall&) = delete;
    StageCall& operator=(const StageCall&) = delete;

    uint64_t Prepare();
    void Launch(void* workspace, AclStream stream);

private:
    struct Lowered;

    [[noreturn]] void Fail(const std::string& symbol, AclStatus status);

    Stage stage_;
    std::vector<Argument> arguments_;
    std::unique_ptr<Lowered> lowered_;
    uint64_t workspaceSize_ = 0;
    aclOpExecutor* executor_ = nullptr;
};

}  // namespace kda::bridge
