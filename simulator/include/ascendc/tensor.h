// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_TENSOR_H
#define ASCENDC_TENSOR_H

#include "ascendc/types.h"
#include "sim/core.h"

namespace AscendC {

template <typename T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    explicit LocalTensor(const sim::Local& local) : local_(local) {}

    T* GetPhyAddr() const { return reinterpret_cast<T*>(local_.Address()); }
    T* GetPhyAddr(const uint32_t offset) const { return GetPhyAddr() + offset; }

    T GetValue(const uint32_t offset, SIM_WHERE) const {
        return *Scalar(sim::Op::GetValue, offset, false, where);
    }
    template <typename T1>
    void SetValue(const uint32_t index, const T1 value, SIM_WHERE) const {
        *Scalar(sim::Op::SetValue, index, true, where) = static_cast<T>(value);
    }
    T& operator()(const uint32_t offset) const {
        return *Scalar(sim::Op::GetValue, offset, true, sim::Where{"", 0});
    }

    template <typename CastT>
    LocalTensor<CastT> ReinterpretCast() const {
        return LocalTensor<CastT>(local_);
    }
    LocalTensor operator[](const uint32_t offset) const {
        sim::Local part = local_;
        part.offset += static_cast<int64_t>(offset) * static_cast<int64_t>(sizeof(T));
        part.length -= static_cast<uint32_t>(offset * sizeof(T));
        return LocalTensor(part);
    }

    int32_t GetPosition() const { return static_cast<int32_t>(local_.position); }
    void SetSize(const uint32_t size) { local_.length = static_cast<uint32_t>(size * sizeof(T)); }
    uint32_t GetSize() const { return static_cast<uint32_t>(local_.length / sizeof(T)); }
    void SetUserTag(const TTagType tag) { local_.tag = tag; }
    TTagType GetUserTag() const { return local_.tag; }

    const sim::Local& Ref() const { return local_; }

private:
    T* Scalar(sim::Op op, uint32_t index, bool write, const sim::Where& where) const {
        return reinterpret_cast<T*>(sim::This().ScalarLocal(
            op, local_, static_cast<int64_t>(index) * sizeof(T), sizeof(T), write, where));
    }

    sim::Local local_;
};

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    GlobalTensor() = default;

    void SetGlobalBuffer(__gm__ T* buffer, uint64_t bufferSize) {
        address_ = reinterpret_cast<uint8_t*>(buffer);
        size_ = bufferSize;
    }
    void SetGlobalBuffer(__gm__ T* buffer) {
        address_ = reinterpret_cast<uint8_t*>(buffer);
        size_ = 0;
    }
    const __gm__ T* GetPhyAddr() const { return reinterpret_cast<const T*>(address_); }
    __gm__ T* GetPhyAddr(const uint64_t offset) const {
        return reinterpret_cast<T*>(address_) + offset;
    }
    T GetValue(const uint64_t offset, SIM_WHERE) const {
        return *Scalar(sim::Op::GetValue, offset, false, where);
    }
    void SetValue(const uint64_t offset, T value, SIM_WHERE) {
        *Scalar(sim::Op::SetValue, offset, true, where) = value;
    }
    uint64_t GetSize() const { return size_; }
    GlobalTensor operator[](const uint64_t offset) const {
        GlobalTensor part = *this;
        part.address_ += offset * sizeof(T);
        return part;
    }
    template <CacheRwMode rwMode = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode) {}

    sim::Global Ref() const { return sim::Global{address_}; }

private:
    T* Scalar(sim::Op op, uint64_t index, bool write, const sim::Where& where) const {
        return reinterpret_cast<T*>(
            sim::This().ScalarGm(op, address_ + index * sizeof(T), sizeof(T), write, where));
    }

    uint8_t* address_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace AscendC

#endif  // ASCENDC_TENSOR_H
