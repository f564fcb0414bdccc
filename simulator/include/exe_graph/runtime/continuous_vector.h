// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <vector>

namespace gert {

template <typename T>
class TypedContinuousVector {
public:
    size_t GetSize() const { return data_.size(); }
    const T* GetData() const { return data_.data(); }
    T* MutableData() { return data_.data(); }
    void Assign(const T* values, size_t count) { data_.assign(values, values + count); }

private:
    std::vector<T> data_;
};

}  // namespace gert
