// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "graph/ge_error_codes.h"

namespace gert {

class TilingData {
public:
    // CANN hands out memory of unspecified content: a pattern makes a field that the tiling forgot
    // show up as nonsense instead of a lucky zero.
    explicit TilingData(size_t capacity) : data_(capacity, 0xCD) {}

    size_t GetCapacity() const { return data_.size(); }
    size_t GetDataSize() const { return dataSize_; }
    void SetDataSize(const size_t size) { dataSize_ = size; }
    void* GetData() { return data_.data(); }
    const void* GetData() const { return data_.data(); }
    template <typename T, typename std::enable_if<std::is_standard_layout<T>::value, int>::type = 0>
    ge::graphStatus Append(const T& data) {
        if (sizeof(T) > data_.size() - dataSize_) {
            return ge::GRAPH_FAILED;
        }
        std::memcpy(data_.data() + dataSize_, &data, sizeof(T));
        dataSize_ += sizeof(T);
        return ge::GRAPH_SUCCESS;
    }

private:
    std::vector<uint8_t> data_;
    size_t dataSize_ = 0;
};

}  // namespace gert
