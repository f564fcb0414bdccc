// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
//
// The only translation unit that sees MindSpore: its headers cost a minute and 1.5 GB to compile.
#include "ms_extension/api.h"
#include "include/runtime/pipeline/pipeline.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "stage_call.h"
#include "stage_signature.h"

namespace kda::bridge {
namespace {

using OptionalMsTensor = std::optional<ms::Tensor>;
using Attribute = std::variant<bool, int64_t, double, std::string>;
using OutputSpec = std::optional<std::tuple<std::string, std::vector<int64_t>>>;

// All of a call except its tensors; copied into the task that MindSpore queues.
struct Plan {
    Stage stage;
    std::string kinds;
    std::vector<OptionalIntArray> hostArrays;
    std::vector<Attribute> attributes;
    std::vector<OutputSpec> outputs;
    int inPlace = -1;  // index of the input that is also the output
};

struct DtypeEntry {
    const char* name;
    ms::TypeId typeId;
    AclDataType aclType;
};

constexpr DtypeEntry kDtypes[] = {
    {"float32", ms::TypeId::kNumberTypeFloat32, AclDataType::kFloat},
    {"bfloat16", ms::TypeId::kNumberTypeBFloat16, AclDataType::kBfloat16},
    {"float16", ms::TypeId::kNumberTypeFloat16, AclDataType::kFloat16},
};

ms::TypeId TypeIdOf(const std::string& name) {
    for (const DtypeEntry& entry : kDtypes) {
        if (name == entry.name) {
            return entry.typeId;
        }
    }
    throw std::invalid_argument("output dtype: expected float32, bfloat16 or float16, got " + name);
}

TensorView ViewOf(const ms::Tensor& tensor) {
    if (!tensor.is_contiguous()) {
        throw std::logic_error("the bridge met a strided tensor in a launch");
    }
    TensorView view;
    view.data = tensor.GetDataPtr();
    view.shape = tensor.shape();
    for (const DtypeEntry& entry : kDtypes) {
        if (tensor.data_type() == entry.typeId) {
            view.dataType = entry.aclType;
            return view;
        }
    }
    throw std::invalid_argument(
        "tensor dtype: expected float32, bfloat16 or float16, got type id " +
        std::to_string(static_cast<int>(tensor.data_type())));
}

// Scratch for kernels on the CPU. MindSpore frees a runner's workspace before the CPU launch runs,
// so the launch owns it; one block a launch thread, grown as needed, since launches repeat.
class HostScratch {
public:
    void* Reserve(size_t bytes) {
        if (bytes > capacity_) {
            block_.reset();
            const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
            block_.reset(std::aligned_alloc(kAlignment, rounded));
            if (block_ == nullptr) {
                capacity_ = 0;
                throw std::runtime_error("out of memory: " + std::to_string(rounded) +
                                         " bytes of kernel workspace");
            }
            capacity_ = rounded;
        }
        return block_.get();
    }

private:
    static constexpr size_t kAlignment = 512;  // what device memory has

    struct Free {
        void operator()(void* block) const { std::free(block); }
    };
    std::unique_ptr<void, Free> block_;
    size_t capacity_ = 0;
};

// Tells the caller that the launch is over, also when it never came about: whoever holds the last
// reference, a queued task or the runner, then breaks the promise.
using Completion = std::shared_ptr<std::promise<void>>;

// The launches of one Python thread that nobody has waited for yet. After a failure the rest of
// them is skipped: their inputs were not written.
struct Batch {
    std::vector<std::future<void>> launches;
    std::shared_ptr<std::atomic<bool>> hasFailed = std::make_shared<std::atomic<bool>>(false);
};

class StageRunner : public ms::pynative::PyboostRunner {
public:
    StageRunner(const std::string& name, std::shared_ptr<const Plan> plan,
                std::vector<bool> isInputGiven, Completion completion,
                std::shared_ptr<std::atomic<bool>> hasFailed)
        : PyboostRunner(name),
          plan_(std::move(plan)),
          isInputGiven_(std::move(isInputGiven)),
          completion_(std::move(completion)),
          hasFailed_(std::move(hasFailed)) {}

    size_t CalcWorkspace() override {
        if (stream() == nullptr) {
            return 0;
        }
        call_ = MakeCall();
        return call_->Prepare();
    }

    void LaunchKernel() override {
        if (stream() != nullptr) {
            call_->Launch(workspace_ptr(), stream());
            return;
        }
        // To the caller only: MindSpore would give the error to whichever thread waits next.
        try {
            if (!*hasFailed_) {
                LaunchOnHost();
            }
            completion_->set_value();
        } catch (...) {
            call_.reset();
            *hasFailed_ = true;
            completion_->set_exception(std::current_exception());
        }
    }

private:
    void LaunchOnHost() {
        thread_local HostScratch scratch;
        call_ = MakeCall();
        const uint64_t bytes = call_->Prepare();
        call_->Launch(bytes == 0 ? nullptr : scratch.Reserve(bytes), nullptr);
    }

    // The arguments in the order of the C signature: tensors are the inputs, then the outputs.
    std::unique_ptr<StageCall> MakeCall() const {
        std::vector<OptionalTensor> tensors;
        size_t given = 0;
        for (const bool isGiven : isInputGiven_) {
            tensors.push_back(isGiven ? OptionalTensor(ViewOf(inputs()[given++])) : std::nullopt);
        }
        if (plan_->inPlace < 0) {
            given = 0;
            for (const OutputSpec& spec : plan_->outputs) {
                tensors.push_back(spec ? OptionalTensor(ViewOf(outputs()[given++])) : std::nullopt);
            }
        }
        std::vector<Argument> arguments;
        size_t tensor = 0;
        size_t hostArray = 0;
        size_t attribute = 0;
        for (const char kind : plan_->kinds) {
            if (kind == 't') {
                arguments.emplace_back(tensors.at(tensor++));
            } else if (kind == 'a') {
                arguments.emplace_back(plan_->hostArrays.at(hostArray++));
            } else {
                std::visit([&](const auto& value) { arguments.emplace_back(value); },
                           plan_->attributes.at(attribute++));
            }
        }
        return std::make_unique<StageCall>(plan_->stage, std::move(arguments));
    }

    std::shared_ptr<const Plan> plan_;
    std::vector<bool> isInputGiven_;
    Completion completion_;
    std::shared_ptr<std::atomic<bool>> hasFailed_;
    std::unique_ptr<StageCall> call_;
};

std::vector<ms::Tensor> RunStage(const std::shared_ptr<const Plan>& plan,
                                 const std::vector<OptionalMsTensor>& inputs,
                                 const Completion& completion,
                                 const std::shared_ptr<std::atomic<bool>>& hasFailed) {
    std::vector<ms::Tensor> given;
    std::vector<bool> isInputGiven;
    for (const OptionalMsTensor& input : inputs) {
        isInputGiven.push_back(input.has_value());
        if (input.has_value()) {
            given.push_back(input->is_contiguous() ? *input : input->contiguous());
        }
    }
    std::vector<ms::Tensor> outputs;
    if (plan->inPlace >= 0) {
        outputs.push_back(*inputs.at(plan->inPlace));
    }
    for (const OutputSpec& spec : plan->outputs) {
        if (spec.has_value() && plan->inPlace < 0) {
            outputs.emplace_back(TypeIdOf(std::get<0>(*spec)), std::get<1>(*spec));
        }
    }
    auto runner = std::make_shared<StageRunner>(plan->stage.op(), plan, std::move(isInputGiven),
                                                completion, hasFailed);
    runner->Run(given, outputs);
    return outputs;
}

template <int Count>
py::object Dispatch(const std::shared_ptr<const Plan>& plan,
                    const std::vector<OptionalMsTensor>& inputs, const Completion& completion,
                    const std::shared_ptr<std::atomic<bool>>& hasFailed) {
    auto run = [plan, completion, hasFailed](const std::vector<OptionalMsTensor>& tensors) {
        return RunStage(plan, tensors, completion, hasFailed);
    };
    return ms::pynative::PyboostRunner::Call<Count>(std::string(plan->stage.op()), run, inputs);
}

template <int... Counts>
py::object DispatchByCount(std::integer_sequence<int, Counts...>, size_t count,
                           const std::shared_ptr<const Plan>& plan,
                           const std::vector<OptionalMsTensor>& inputs,
                           const Completion& completion,
                           const std::shared_ptr<std::atomic<bool>>& hasFailed) {
    py::object result;
    bool isFound = false;
    ((static_cast<size_t>(Counts) == count
          ? (result = Dispatch<Counts>(plan, inputs, completion, hasFailed), isFound = true)
          : false),
     ...);
    if (!isFound) {
        throw std::invalid_argument("outputs: expected at most 15, got " + std::to_string(count));
    }
    return result;
}

Batch& PendingLaunches() {
    thread_local Batch batch;
    return batch;
}

// Blocks until this thread's launches are over; throws what the first failed one threw.
void WaitForLaunches() {
    Batch batch = std::exchange(PendingLaunches(), Batch());
    if (batch.launches.empty()) {
        return;
    }
    for (const std::future<void>& launch : batch.launches) {
        launch.wait();
    }
    // MindSpore's own wait spins, which takes a core from the kernels; so it comes second.
    mindspore::runtime::Pipeline::Get().WaitForward();
    for (std::future<void>& launch : batch.launches) {
        try {
            launch.get();
        } catch (const std::future_error&) {
            throw std::runtime_error(
                "MindSpore dropped this call from its queue after an earlier operation failed; "
                "call again");
        }
    }
}

// Returns the outputs that are present: None, one tensor or a tuple. On the CPU, where a launch is
// synchronous work, wait_for_launches must follow: then a failing stage raises from its own call,
// not from whatever synchronises next.
py::object CallStage(const std::string& libraryPath, const std::string& op,
                     const std::vector<OptionalMsTensor>& inputs,
                     const std::vector<OptionalIntArray>& hostArrays,
                     const std::vector<Attribute>& attributes,
                     const std::vector<OutputSpec>& outputs, int inPlace, bool isOnHost) {
    auto plan = std::make_shared<Plan>(Plan{Stage::Find(libraryPath, op), FindSignature(op)->kinds,
                                            hostArrays, attributes, outputs, inPlace});
    size_t count = 0;
    for (const OutputSpec& spec : outputs) {
        count += spec.has_value() && inPlace < 0;
    }
    Batch& pending = PendingLaunches();
    auto completion = std::make_shared<std::promise<void>>();
    std::future<void> launch = completion->get_future();
    py::object result = DispatchByCount(std::make_integer_sequence<int, 16>{}, count, plan, inputs,
                                        completion, pending.hasFailed);
    if (isOnHost) {
        pending.launches.push_back(std::move(launch));
    }
    return result;
}

}  // namespace
}  // namespace kda::bridge

PYBIND11_MODULE(MS_EXTENSION_NAME, module) {
    module.doc() = "Calls the ACLNN entry points of the Chunk KDA stages on MindSpore tensors.";
    module.def("call_stage", &kda::bridge::CallStage, py::arg("library_path"), py::arg("op"),
               py::arg("inputs"), py::arg("host_arrays"), py::arg("attributes"), py::arg("outputs"),
               py::arg("in_place"), py::arg("is_on_host"));
    module.def("wait_for_launches", &kda::bridge::WaitForLaunches,
               py::call_guard<py::gil_scoped_release>(),
               "Blocks until the calling thread's launches are over; raises what the first failure "
               "threw.");
    module.def(
        "has_symbol",
        [](const std::string& path, const std::string& name) {
            return kda::bridge::OpLibrary::Open(path)->Has(name);
        },
        py::arg("library_path"), py::arg("name"));
    module.def(
        "find_stage",
        [](const std::string& path, const std::string& op) { kda::bridge::Stage::Find(path, op); },
        py::arg("library_path"), py::arg("op"),
        "Raises unless the library has both symbols of the op.");
}
