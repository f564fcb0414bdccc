// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include "exe_graph/runtime/shape.h"

namespace gert {

// With FORMAT_ND, the only format here, the origin and the storage shape are the same.
struct StorageShape {
public:
    StorageShape() = default;
    StorageShape(const std::initializer_list<int64_t>& originShape,
                 const std::initializer_list<int64_t>& storageShape)
        : originShape_(originShape), storageShape_(storageShape) {}

    const Shape& GetOriginShape() const { return originShape_; }
    const Shape& GetStorageShape() const { return storageShape_; }
    Shape& MutableOriginShape() { return originShape_; }
    Shape& MutableStorageShape() { return storageShape_; }
    bool operator==(const StorageShape& other) const {
        return originShape_ == other.originShape_ && storageShape_ == other.storageShape_;
    }
    bool operator!=(const StorageShape& other) const { return !(*this == other); }

private:
    Shape originShape_;
    Shape storageShape_;
};

}  // namespace gert
