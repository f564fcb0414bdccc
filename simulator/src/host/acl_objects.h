// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "aclnn/acl_meta.h"
#include "graph/types.h"

// The C API's objects. A view over memory that the caller owns.
struct aclTensor {
    std::vector<int64_t> viewDims;
    std::vector<int64_t> strides;
    std::vector<int64_t> storageDims;
    int64_t offset = 0;
    aclDataType dataType = ACL_DT_UNDEFINED;
    aclFormat format = ACL_FORMAT_ND;
    void* data = nullptr;

    int64_t ElementCount() const;
    bool IsContiguous() const;
    ge::DataType GeDataType() const { return static_cast<ge::DataType>(dataType); }
    size_t ElementBytes() const;
    // Address of the view's first element.
    uint8_t* First() const;
};

struct aclIntArray {
    std::vector<int64_t> values;
};

struct aclFloatArray {
    std::vector<float> values;
};

struct aclBoolArray {
    std::unique_ptr<bool[]> values;
    uint64_t size = 0;
};

namespace sim {

// The objects of one kind that are alive: a stale or foreign pointer is found before it is read.
template <typename T>
class LiveSet {
public:
    static LiveSet& Get() {
        static LiveSet set;
        return set;
    }
    T* Add(std::unique_ptr<T> object) {
        std::lock_guard<std::mutex> lock(mutex_);
        live_.insert(object.get());
        return object.release();
    }
    bool Contains(const T* object) {
        std::lock_guard<std::mutex> lock(mutex_);
        return live_.count(object) != 0;
    }
    // The object, no longer alive for others; empty when it was not alive.
    std::unique_ptr<T> Take(const T* object) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (live_.erase(object) == 0) {
            return nullptr;
        }
        return std::unique_ptr<T>(const_cast<T*>(object));
    }

private:
    std::mutex mutex_;
    std::unordered_set<const T*> live_;
};

}  // namespace sim
