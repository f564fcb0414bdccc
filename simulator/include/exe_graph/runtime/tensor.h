// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"

namespace gert {

// What tiling sees of an operand. Only ValueDepend inputs carry host data: for all others the
// address is null, because tiling runs on the host and the data are in device memory.
class Tensor {
public:
    Tensor() = default;
    Tensor(const StorageShape& shape, ge::DataType dataType, const void* hostData)
        : shape_(shape), dataType_(dataType), hostData_(hostData) {}

    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    template <class T>
    const T* GetData() const {
        return static_cast<const T*>(hostData_);
    }
    const void* GetAddr() const { return hostData_; }
    size_t GetSize() const {
        const int64_t count = GetShapeSize();
        const int bytes = ge::GetSizeByDataType(dataType_);
        return count > 0 && bytes > 0 ? static_cast<size_t>(count) * static_cast<size_t>(bytes) : 0;
    }
    ge::DataType GetDataType() const { return dataType_; }
    const Shape& GetStorageShape() const { return shape_.GetStorageShape(); }
    const Shape& GetOriginShape() const { return shape_.GetOriginShape(); }
    const StorageShape& GetShape() const { return shape_; }
    ge::Format GetStorageFormat() const { return ge::FORMAT_ND; }
    ge::Format GetOriginFormat() const { return ge::FORMAT_ND; }

private:
    StorageShape shape_;
    ge::DataType dataType_ = ge::DT_UNDEFINED;
    const void* hostData_ = nullptr;
};

}  // namespace gert
