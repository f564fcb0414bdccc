// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "call.h"
#include "platform.h"
#include "sim/launch.h"
#include "status.h"
#include "strided_copy.h"

namespace {

constexpr uint64_t kCopyAlignment = 512;

// An operand that the kernel works on through a contiguous copy in the workspace.
struct ContiguousCopy {
    aclTensor view;
    size_t input = SIZE_MAX;  // entry parameters that take the copy's address
    size_t output = SIZE_MAX;
    uint64_t offset = 0;
    bool gather = false;
    bool scatter = false;
};

struct OperandRange {
    std::string name;
    size_t bytes = 0;
    bool writable = false;
    size_t address = 0;  // index of the entry parameter
    sim::GmRole role = sim::GmRole::Given;
};

uint64_t AlignUp(uint64_t value) {
    return (value + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
}

}  // namespace

// All that the second phase needs. It owns copies of the host-side arguments.
struct aclOpExecutor {
    std::string opType;
    std::string kernel;
    sim::KernelEntry entry = nullptr;
    std::vector<std::vector<uint8_t>> arrays;
    std::vector<uint8_t*> addresses;  // inputs, outputs, workspace, tiling
    std::vector<OperandRange> ranges;
    std::vector<ContiguousCopy> copies;
    std::vector<uint64_t> tiling;  // 8-byte aligned
    size_t tilingBytes = 0;
    uint64_t kernelWorkspace = 0;
    uint64_t workspaceSize = 0;
    uint32_t blockDim = 0;
    bool allResident = false;
};

namespace sim {
namespace {

size_t BytesOf(const aclTensor& tensor) {
    return static_cast<size_t>(tensor.ElementCount()) * tensor.ElementBytes();
}

gert::TilingResult RunTiling(const Operator& op, const Call& call) {
    if (op.tiling == nullptr) {
        throw StatusError(ACLNN_ERR_INNER_TILING_ERROR, "no tiling function is registered");
    }
    gert::TilingResult result(op.maxTilingDataSize);
    gert::TilingContext context(&call.node, CurrentPlatform(), &result);
    TakeReportedText();
    ge::graphStatus status = ge::GRAPH_FAILED;
    try {
        status = op.tiling(&context);
    } catch (const std::exception& error) {
        throw StatusError(ACLNN_ERR_INNER_TILING_ERROR,
                          std::string("tiling threw an exception: ") + error.what());
    }
    const std::string reported = TakeReportedText();
    if (status != ge::GRAPH_SUCCESS) {
        throw StatusError(
            ACLNN_ERR_INNER_TILING_ERROR,
            "tiling failed: " + (reported.empty()
                                     ? "status " + std::to_string(status) + ", no message"
                                     : reported));
    }
    if (result.blockDim == 0) {
        throw StatusError(ACLNN_ERR_INNER_TILING_ERROR,
                          "tiling set block dim 0, expected at least 1");
    }
    return result;
}

uint64_t KernelWorkspace(const gert::TilingResult& result, const std::string& kernel) {
    uint64_t total = 0;
    for (size_t size : result.workspaceSizes) {
        if (__builtin_add_overflow(total, static_cast<uint64_t>(size), &total)) {
            throw StatusError(ACLNN_ERR_INNER_TILING_ERROR,
                              "tiling asks for more workspace than 64 bits can say");
        }
    }
    const KernelType type = RegisteredKernelType(kernel);
    const bool mixed = type == KernelType::Mix11 || type == KernelType::Mix12;
    if (mixed && total < kReservedWorkspaceBytes) {
        throw StatusError(ACLNN_ERR_INNER_TILING_ERROR,
                          "tiling asks for " + std::to_string(total) +
                              " bytes of workspace, expected at least GetLibApiWorkSpaceSize() = " +
                              std::to_string(kReservedWorkspaceBytes) + " for a mixed kernel");
    }
    return total;
}

bool AnyAutoContiguous(const ops::OpDef& def) {
    for (size_t i = 0; i < def.inputs.size(); ++i) {
        if (def.inputs[i].autoContiguous) {
            return true;
        }
    }
    for (size_t i = 0; i < def.outputs.size(); ++i) {
        if (def.outputs[i].autoContiguous) {
            return true;
        }
    }
    return false;
}

// Entry parameters of a prepared call: filled by the first phase, completed by the second.
class ExecutorBuilder {
public:
    ExecutorBuilder(const Call& call, aclOpExecutor& executor)
        : call_(call), executor_(executor), auto_(AnyAutoContiguous(call.op->def)) {}

    void AddOperands() {
        const ops::OpDef& def = call_.op->def;
        for (size_t i = 0; i < def.inputs.size(); ++i) {
            AddInput(i, def.inputs[i]);
        }
        for (size_t i = 0; i < def.outputs.size(); ++i) {
            AddOutput(i, def.outputs[i]);
        }
    }

private:
    void AddInput(size_t index, const ops::OpParamDef& def) {
        const Call::Input& input = call_.inputs[index];
        if (input.isArray) {
            executor_.arrays.push_back(input.values);
            executor_.arrays.back().reserve(1);
            AddAddress(executor_.arrays.back().data());
            AddRange(def.name, input.values.size(), false);
            return;
        }
        if (input.tensor == nullptr) {
            AddAddress(nullptr);
            return;
        }
        AddAddress(input.tensor->First());
        bool ref = false;
        for (const aclTensor* output : call_.outputs) {
            ref = ref || output == input.tensor;
        }
        if (MustCopy(*input.tensor, def)) {
            ContiguousCopy copy;
            copy.view = *input.tensor;
            copy.input = executor_.addresses.size() - 1;
            copy.gather = true;
            executor_.copies.push_back(copy);
            return;
        }
        AddRange(def.name, RangeBytes(*input.tensor), ref);
    }

    void AddOutput(size_t index, const ops::OpParamDef& def) {
        const aclTensor* tensor = call_.outputs[index];
        if (tensor == nullptr) {
            AddAddress(nullptr);
            return;
        }
        AddAddress(tensor->First());
        const int ref = RefInput(call_.op->def, index);
        if (MustCopy(*tensor, def)) {
            CheckScatter(*tensor, def.name);
            ContiguousCopy* shared = ref >= 0 ? CopyOfInput(static_cast<size_t>(ref)) : nullptr;
            if (shared == nullptr) {
                ContiguousCopy copy;
                copy.view = *tensor;
                executor_.copies.push_back(copy);
                shared = &executor_.copies.back();
            }
            shared->output = executor_.addresses.size() - 1;
            shared->scatter = true;
            return;
        }
        if (ref < 0) {
            // What lies between the elements of a strided view is not the kernel's to write.
            AddRange(def.name, RangeBytes(*tensor), true,
                     tensor->IsContiguous() ? GmRole::Result : GmRole::Given);
        }
    }

    // A strided view of an operand that the kernel reads with its own strides: its whole reach.
    static size_t RangeBytes(const aclTensor& tensor) {
        if (tensor.ElementCount() == 0) {
            return 0;
        }
        int64_t last = 0;
        for (size_t i = 0; i < tensor.viewDims.size(); ++i) {
            last += tensor.strides[i] * (tensor.viewDims[i] - 1);
        }
        return static_cast<size_t>(last + 1) * tensor.ElementBytes();
    }

    bool MustCopy(const aclTensor& tensor, const ops::OpParamDef& def) const {
        if (tensor.IsContiguous() || def.ignoreContiguous) {
            return false;
        }
        if (!auto_) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              CamelCase(def.name) +
                                  " is not contiguous, and no operand of the op definition has "
                                  "AutoContiguous");
        }
        return true;
    }

    static void CheckScatter(const aclTensor& tensor, const std::string& name) {
        for (size_t i = 0; i < tensor.viewDims.size(); ++i) {
            if (tensor.strides[i] == 0 && tensor.viewDims[i] > 1) {
                throw StatusError(ACLNN_ERR_PARAM_INVALID,
                                  CamelCase(name) + " is an output with stride 0 in dimension " +
                                      std::to_string(i));
            }
        }
    }

    ContiguousCopy* CopyOfInput(size_t address) {
        for (ContiguousCopy& copy : executor_.copies) {
            if (copy.input == address) {
                return &copy;
            }
        }
        return nullptr;
    }

    void AddAddress(uint8_t* address) { executor_.addresses.push_back(address); }
    void AddRange(const std::string& name, size_t bytes, bool writable,
                  GmRole role = GmRole::Given) {
        if (bytes != 0) {
            executor_.ranges.push_back(
                {name, bytes, writable, executor_.addresses.size() - 1, role});
        }
    }

    const Call& call_;
    aclOpExecutor& executor_;
    bool auto_;
};

void TakeTiling(gert::TilingResult& result, aclOpExecutor& executor) {
    executor.tilingBytes = result.data.GetDataSize();
    executor.tiling.assign((executor.tilingBytes + 7) / 8 + 1, 0);
    std::memcpy(executor.tiling.data(), result.data.GetData(), executor.tilingBytes);
    executor.blockDim = result.blockDim;
    executor.allResident = result.scheduleMode == 1;
}

LaunchSpec BuildLaunch(aclOpExecutor& executor, uint8_t* workspace) {
    LaunchSpec spec;
    spec.kernel = executor.kernel;
    spec.blockDim = executor.blockDim;
    spec.allResident = executor.allResident;
    executor.addresses.push_back(workspace);
    executor.addresses.push_back(reinterpret_cast<uint8_t*>(executor.tiling.data()));
    spec.entry = [entry = executor.entry, addresses = executor.addresses.data()] {
        entry(addresses);
    };
    for (const OperandRange& range : executor.ranges) {
        spec.ranges.push_back({executor.addresses[range.address], range.bytes, range.name,
                               range.writable, range.role});
    }
    for (const ContiguousCopy& copy : executor.copies) {
        const size_t address = copy.input != SIZE_MAX ? copy.input : copy.output;
        spec.ranges.push_back({executor.addresses[address], BytesOf(copy.view),
                               "contiguous copy of operand " + std::to_string(address),
                               copy.scatter, copy.gather ? GmRole::Given : GmRole::Result});
    }
    if (executor.kernelWorkspace != 0) {
        spec.ranges.push_back(
            {workspace, executor.kernelWorkspace, "workspace", true, GmRole::Scratch});
    }
    if (executor.tilingBytes != 0) {
        spec.ranges.push_back(
            {executor.tiling.data(), executor.tilingBytes, "tiling", false, GmRole::Given});
    }
    return spec;
}

void RunExecutor(aclOpExecutor& executor, uint8_t* workspace) {
    for (const ContiguousCopy& copy : executor.copies) {
        uint8_t* address = workspace + copy.offset;
        if (copy.gather) {
            GatherView(copy.view, address);
        }
        if (copy.input != SIZE_MAX) {
            executor.addresses[copy.input] = address;
        }
        if (copy.output != SIZE_MAX) {
            executor.addresses[copy.output] = address;
        }
    }
    const LaunchResult result = Launch(BuildLaunch(executor, workspace));
    if (result.status != 0) {
        throw StatusError(ACLNN_ERR_RUNTIME_ERROR, result.error);
    }
    for (const ContiguousCopy& copy : executor.copies) {
        if (copy.scatter) {
            ScatterView(workspace + copy.offset, copy.view);
        }
    }
}

}  // namespace

aclnnStatus PrepareOp(const char* opType, KernelEntry entry, const Argument* arguments,
                      size_t count, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept {
    const std::string function = std::string("aclnn") + opType + "GetWorkspaceSize";
    return GuardStatus(function.c_str(), [&] {
        if (workspaceSize == nullptr || executor == nullptr) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR,
                              std::string(workspaceSize == nullptr ? "workspaceSize" : "executor") +
                                  " is null but required");
        }
        *workspaceSize = 0;
        *executor = nullptr;
        // The tiling below depends on them already.
        const std::string settings = SettingsProblem();
        if (!settings.empty()) {
            throw StatusError(ACLNN_ERR_RUNTIME_ERROR, settings);
        }
        Call call;
        FillCall(FindOperator(opType), arguments, count, true, call);
        auto prepared = std::make_unique<aclOpExecutor>();
        prepared->opType = opType;
        prepared->kernel = SnakeCase(opType);
        prepared->entry = entry;
        prepared->arrays.reserve(call.inputs.size());
        ExecutorBuilder(call, *prepared).AddOperands();
        gert::TilingResult result = RunTiling(*call.op, call);
        prepared->kernelWorkspace = KernelWorkspace(result, prepared->kernel);
        TakeTiling(result, *prepared);
        prepared->workspaceSize = prepared->kernelWorkspace;
        for (ContiguousCopy& copy : prepared->copies) {
            copy.offset = AlignUp(prepared->workspaceSize);
            prepared->workspaceSize = copy.offset + BytesOf(copy.view);
        }
        prepared->addresses.reserve(prepared->addresses.size() + 2);
        *workspaceSize = prepared->workspaceSize;
        *executor = LiveSet<aclOpExecutor>::Get().Add(std::move(prepared));
    });
}

aclnnStatus RunOp(const char* opType, void* workspace, uint64_t workspaceSize,
                  aclOpExecutor* executor, aclrtStream) noexcept {
    const std::string function = std::string("aclnn") + opType;
    return GuardStatus(function.c_str(), [&] {
        if (executor == nullptr) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR, "executor is null but required");
        }
        LiveSet<aclOpExecutor>& live = LiveSet<aclOpExecutor>::Get();
        if (!live.Contains(executor)) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              "executor is not alive: it was already run, destroyed, or never "
                              "returned by " +
                                  function + "GetWorkspaceSize");
        }
        std::unique_ptr<aclOpExecutor> owned = live.Take(executor);
        if (owned == nullptr) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID, "executor is in use by another thread");
        }
        if (owned->opType != opType) {
            const std::string other = owned->opType;
            live.Add(std::move(owned));
            throw StatusError(ACLNN_ERR_PARAM_INVALID, "executor belongs to aclnn" + other +
                                                           ", expected one of " + function);
        }
        if (workspaceSize < owned->workspaceSize) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              "workspaceSize is " + std::to_string(workspaceSize) +
                                  ", expected at least " + std::to_string(owned->workspaceSize));
        }
        if (workspace == nullptr && owned->workspaceSize != 0) {
            throw StatusError(
                ACLNN_ERR_PARAM_NULLPTR,
                "workspace is null, expected " + std::to_string(owned->workspaceSize) + " bytes");
        }
        RunExecutor(*owned, static_cast<uint8_t*>(workspace));
    });
}

}  // namespace sim

extern "C" aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    return sim::GuardStatus("aclDestroyAclOpExecutor", [&] {
        if (executor == nullptr) {
            throw sim::StatusError(ACLNN_ERR_PARAM_NULLPTR, "executor is null");
        }
        if (sim::LiveSet<aclOpExecutor>::Get().Take(executor) == nullptr) {
            throw sim::StatusError(ACLNN_ERR_PARAM_INVALID,
                                   "executor is not alive: it was already run or destroyed");
        }
    });
}
