// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "stage_call.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "stage_signature.h"

namespace kda::bridge {
namespace {

char KindOf(const Argument& argument) {
    constexpr char kKinds[] = "tadibs";
    return kKinds[argument.index()];
}

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i > 1; --i) {
        strides[i - 2] = strides[i - 1] * shape[i - 1];
    }
    return strides;
}

// What an ACLNN status family means for the caller.
std::string WayOut(AclStatus status) {
    if (status >= 161000 && status < 162000) {
        return "The op library refuses these arguments: docs/stages.md says what each stage takes, "
               "and a library of another version may take less (./build.sh build makes it new).";
    }
    return "The kernel or its runtime failed. The message says where; on Ascend see also the plog "
           "files under ~/ascend/log. Nothing was written that a next call would depend on.";
}

}  // namespace

Stage Stage::Find(const std::string& libraryPath, const std::string& op) {
    Stage stage;
    stage.op_ = op;
    stage.signature_ = FindSignature(op);
    if (stage.signature_ == nullptr) {
        throw std::invalid_argument("op: expected one of the nine Chunk KDA ops, got '" + op + "'");
    }
    stage.library_ = OpLibrary::Open(libraryPath);
    stage.getWorkspaceSize_ = stage.library_->StageSymbol("aclnn" + op + "GetWorkspaceSize");
    stage.launch_ = reinterpret_cast<LaunchFn>(stage.library_->StageSymbol("aclnn" + op));
    return stage;
}

// The arguments as ACL objects, which live from Prepare until after Launch.
struct StageCall::Lowered {
    explicit Lowered(OpLibrary& library) : library(library) {}

    ~Lowered() {
        for (const CArgument& argument : arguments) {
            if (auto* tensor = std::get_if<aclTensor*>(&argument); tensor && *tensor != nullptr) {
                library.destroyTensor()(*tensor);
            }
            if (auto* array = std::get_if<aclIntArray*>(&argument); array && *array != nullptr) {
                library.destroyIntArray()(*array);
            }
        }
    }

    void Add(Argument& argument) {
        if (auto* tensor = std::get_if<OptionalTensor>(&argument)) {
            arguments.emplace_back(*tensor ? Create(**tensor) : nullptr);
        } else if (auto* array = std::get_if<OptionalIntArray>(&argument)) {
            arguments.emplace_back(*array ? Create(**array) : nullptr);
        } else if (auto* text = std::get_if<std::string>(&argument)) {
            arguments.emplace_back(text->data());
        } else if (auto* real = std::get_if<double>(&argument)) {
            arguments.emplace_back(*real);
        } else if (auto* integer = std::get_if<int64_t>(&argument)) {
            arguments.emplace_back(*integer);
        } else {
            arguments.emplace_back(std::get<bool>(argument));
        }
    }

    aclTensor* Create(const TensorView& view) {
        const std::vector<int64_t> strides = ContiguousStrides(view.shape);
        aclTensor* tensor = library.createTensor()(view.shape.data(), view.shape.size(),
                                                   view.dataType, strides.data(), 0, AclFormat::kNd,
                                                   view.shape.data(), view.shape.size(), view.data);
        if (tensor == nullptr) {
            throw std::runtime_error("aclCreateTensor failed in " + library.path() + ": " +
                                     library.RecentError());
        }
        return tensor;
    }

    aclIntArray* Create(const std::vector<int64_t>& values) {
        aclIntArray* array = library.createIntArray()(values.data(), values.size());
        if (array == nullptr) {
            throw std::runtime_error("aclCreateIntArray failed in " + library.path() + ": " +
                                     library.RecentError());
        }
        return array;
    }

    OpLibrary& library;
    std::vector<CArgument> arguments;
};

StageCall::StageCall(Stage stage, std::vector<Argument> arguments)
    : stage_(std::move(stage)), arguments_(std::move(arguments)) {
    const char* kinds = stage_.signature_->kinds;
    const size_t count = std::strlen(kinds);
    if (arguments_.size() != count) {
        throw std::invalid_argument(stage_.op_ + ": expected " + std::to_string(count) +
                                    " arguments, got " + std::to_string(arguments_.size()));
    }
    for (size_t i = 0; i < count; ++i) {
        if (KindOf(arguments_[i]) != kinds[i]) {
            throw std::invalid_argument(stage_.op_ + ": argument " + std::to_string(i) +
                                        ": expected kind '" + kinds[i] + "', got '" +
                                        KindOf(arguments_[i]) + "'");
        }
    }
}

StageCall::~StageCall() = default;

uint64_t StageCall::Prepare() {
    lowered_ = std::make_unique<Lowered>(*stage_.library_);
    for (Argument& argument : arguments_) {
        lowered_->Add(argument);
    }
    const AclStatus status = stage_.signature_->invoke(
        stage_.getWorkspaceSize_, lowered_->arguments, &workspaceSize_, &executor_);
    if (status != 0) {
        Fail("aclnn" + stage_.op_ + "GetWorkspaceSize", status);
    }
    return workspaceSize_;
}

void StageCall::Launch(void* workspace, AclStream stream) {
    const AclStatus status = stage_.launch_(workspace, workspaceSize_, executor_, stream);
    if (status != 0) {
        Fail("aclnn" + stage_.op_, status);
    }
    lowered_.reset();
}

void StageCall::Fail(const std::string& symbol, AclStatus status) {
    std::string reason = stage_.library_->RecentError();
    if (reason.empty()) {
        reason = "no error text";
    }
    throw std::runtime_error(symbol + " failed with status " + std::to_string(status) + ": " +
                             reason + "\nOp library: " + stage_.library_->path() + ". " +
                             WayOut(status));
}

}  // namespace kda::bridge
