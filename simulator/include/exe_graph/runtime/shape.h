// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

struct Shape {
public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = std::numeric_limits<int64_t>::min();

    Shape() : dimNum_(0), dims_{0} {}
    Shape(const std::initializer_list<int64_t>& args) : Shape() {
        if (args.size() > kMaxDimNum) {
            return;
        }
        for (int64_t dim : args) {
            dims_[dimNum_++] = dim;
        }
    }

    bool operator==(const Shape& other) const {
        if (dimNum_ != other.dimNum_) {
            return false;
        }
        for (size_t i = 0; i < dimNum_; ++i) {
            if (dims_[i] != other.dims_[i]) {
                return false;
            }
        }
        return true;
    }
    bool operator!=(const Shape& other) const { return !(*this == other); }

    // Number of elements; 1 for a scalar, -1 for an unknown or overflowing size.
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (size_t i = 0; i < dimNum_; ++i) {
            if (dims_[i] < 0 || __builtin_mul_overflow(size, dims_[i], &size)) {
                return -1;
            }
        }
        return size;
    }
    bool IsScalar() const { return dimNum_ == 0; }
    void SetScalar() { dimNum_ = 0; }
    size_t GetDimNum() const { return dimNum_; }
    void SetDimNum(const size_t dimNum) { dimNum_ = dimNum <= kMaxDimNum ? dimNum : kMaxDimNum; }
    int64_t GetDim(const size_t index) const {
        return index < dimNum_ ? dims_[index] : kInvalidDimValue;
    }
    void SetDim(size_t index, const int64_t value) {
        if (index < dimNum_) {
            dims_[index] = value;
        }
    }
    const int64_t& operator[](const size_t index) const { return dims_[index]; }
    int64_t& operator[](const size_t index) { return dims_[index]; }
    Shape& AppendDim(const int64_t value) {
        if (dimNum_ < kMaxDimNum) {
            dims_[dimNum_++] = value;
        }
        return *this;
    }

private:
    size_t dimNum_;
    int64_t dims_[kMaxDimNum];
};

}  // namespace gert
