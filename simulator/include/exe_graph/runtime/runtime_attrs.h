// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exe_graph/runtime/continuous_vector.h"

namespace gert {

// Attribute values in the order of the op definition. A wrong index or a wrong type gives null.
class RuntimeAttrs {
public:
    enum class Kind { kBool, kFloat, kInt, kString, kListInt };
    struct Value {
        Kind kind = Kind::kInt;
        bool boolean = false;
        float real = 0.0f;
        int64_t integer = 0;
        std::string text;
        TypedContinuousVector<int64_t> list;
    };

    template <typename T>
    const T* GetAttrPointer(size_t index) const {
        return static_cast<const T*>(GetPointerByIndex(index));
    }
    const int64_t* GetInt(const size_t index) const {
        return Is(index, Kind::kInt) ? &values_[index].integer : nullptr;
    }
    const float* GetFloat(const size_t index) const {
        return Is(index, Kind::kFloat) ? &values_[index].real : nullptr;
    }
    const bool* GetBool(const size_t index) const {
        return Is(index, Kind::kBool) ? &values_[index].boolean : nullptr;
    }
    const char* GetStr(const size_t index) const {
        return Is(index, Kind::kString) ? values_[index].text.c_str() : nullptr;
    }
    const TypedContinuousVector<int64_t>* GetListInt(const size_t index) const {
        return Is(index, Kind::kListInt) ? &values_[index].list : nullptr;
    }
    size_t GetAttrNum() const { return values_.size(); }

    void Append(const Value& value) { values_.push_back(value); }

private:
    bool Is(size_t index, Kind kind) const {
        return index < values_.size() && values_[index].kind == kind;
    }
    const void* GetPointerByIndex(size_t index) const {
        if (index >= values_.size()) {
            return nullptr;
        }
        const Value& value = values_[index];
        switch (value.kind) {
            case Kind::kBool:
                return &value.boolean;
            case Kind::kFloat:
                return &value.real;
            case Kind::kInt:
                return &value.integer;
            case Kind::kString:
                return value.text.c_str();
            default:
                return &value.list;
        }
    }

    std::vector<Value> values_;
};

}  // namespace gert
