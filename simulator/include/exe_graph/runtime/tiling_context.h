// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/tiling_data.h"

namespace fe {
class PlatFormInfos;
}  // namespace fe

namespace gert {

// Everything a tiling function decides.
struct TilingResult {
    explicit TilingResult(size_t capacity) : data(capacity) {}
    TilingData data;
    uint64_t tilingKey = 0;
    uint32_t blockDim = 0;
    uint32_t scheduleMode = 0;
    uint32_t localMemorySize = 0;
    bool needAtomic = false;
    std::vector<size_t> workspaceSizes;
};

class TilingContext : public ExtendedKernelContext {
public:
    TilingContext(const ComputeNodeInfo* node, fe::PlatFormInfos* platform, TilingResult* result)
        : ExtendedKernelContext(node), platform_(platform), result_(result) {}

    const StorageShape* GetInputShape(const size_t index) const {
        return ShapeOf(InputByInstance(index));
    }
    const StorageShape* GetOptionalInputShape(const size_t irIndex) const {
        return ShapeOf(InputByIr(irIndex));
    }
    const StorageShape* GetRequiredInputShape(const size_t irIndex) const {
        return ShapeOf(InputByIr(irIndex));
    }
    const Tensor* GetInputTensor(const size_t index) const { return InputByInstance(index); }
    const Tensor* GetOptionalInputTensor(const size_t irIndex) const { return InputByIr(irIndex); }
    const Tensor* GetRequiredInputTensor(const size_t irIndex) const { return InputByIr(irIndex); }
    // Null for an absent OPTIONAL output; outputs are counted as in the op definition.
    const StorageShape* GetOutputShape(const size_t index) const {
        return HasOutput(index) ? &node_->outputs[index].GetShape() : nullptr;
    }

    ge::graphStatus SetTilingKey(const uint64_t tilingKey) {
        result_->tilingKey = tilingKey;
        return ge::GRAPH_SUCCESS;
    }
    uint64_t GetTilingKey() const { return result_->tilingKey; }
    ge::graphStatus SetScheduleMode(const uint32_t scheduleMode) {
        result_->scheduleMode = scheduleMode;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetScheduleMode() const { return result_->scheduleMode; }
    ge::graphStatus SetBlockDim(const uint32_t blockDim) {
        result_->blockDim = blockDim;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetBlockDim() const { return result_->blockDim; }
    ge::graphStatus SetNeedAtomic(const bool atomic) {
        result_->needAtomic = atomic;
        return ge::GRAPH_SUCCESS;
    }
    bool NeedAtomic() const { return result_->needAtomic; }
    ge::graphStatus SetLocalMemorySize(const uint32_t size) {
        result_->localMemorySize = size;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetLocalMemorySize() const { return result_->localMemorySize; }
    // Null when the struct is larger than the registered maximum (2048 bytes by default).
    template <typename T>
    auto GetTilingData() -> T* {
        if (result_->data.GetCapacity() < sizeof(T)) {
            return nullptr;
        }
        result_->data.SetDataSize(sizeof(T));
        return static_cast<T*>(result_->data.GetData());
    }
    TilingData* GetRawTilingData() { return &result_->data; }
    size_t* GetWorkspaceSizes(const size_t workspaceCount) {
        result_->workspaceSizes.assign(workspaceCount, 0);
        return result_->workspaceSizes.data();
    }
    size_t GetWorkspaceNum() const { return result_->workspaceSizes.size(); }
    fe::PlatFormInfos* GetPlatformInfo() const { return platform_; }
    int32_t GetDeterministic() const { return 1; }

private:
    static const StorageShape* ShapeOf(const Tensor* tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetShape();
    }

    fe::PlatFormInfos* platform_;
    TilingResult* result_;
};

}  // namespace gert
