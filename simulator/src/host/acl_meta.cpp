// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "aclnn/acl_meta.h"

#include <algorithm>
#include <string>

#include "acl_objects.h"
#include "aclnn/aclnn_base.h"
#include "status.h"

namespace {

constexpr uint64_t kMaxDims = 8;

using sim::LiveSet;
using sim::StatusError;

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i > 1; --i) {
        strides[i - 2] = strides[i - 1] * std::max<int64_t>(dims[i - 1], 1);
    }
    return strides;
}

std::vector<int64_t> CopyDims(const int64_t* dims, uint64_t count, const char* name) {
    if (count > kMaxDims) {
        throw StatusError(ACLNN_ERR_PARAM_INVALID, std::string(name) + " has " +
                                                       std::to_string(count) +
                                                       " dimensions, expected at most 8");
    }
    if (dims == nullptr && count != 0) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is null");
    }
    std::vector<int64_t> copy(dims, dims + count);
    int64_t product = 1;
    for (int64_t dim : copy) {
        if (dim < 0 || __builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product)) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              std::string(name) + " has the dimension " + std::to_string(dim) +
                                  ", expected sizes >= 0 whose product fits 64 bits");
        }
    }
    return copy;
}

// The view's farthest element must lie in the storage: the kernel's GM range ends there.
void CheckInsideStorage(const aclTensor& tensor) {
    if (tensor.ElementCount() == 0) {
        return;
    }
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.viewDims.size(); ++i) {
        int64_t reach = 0;
        if (tensor.strides[i] < 0 ||
            __builtin_mul_overflow(tensor.strides[i], tensor.viewDims[i] - 1, &reach) ||
            __builtin_add_overflow(last, reach, &last)) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              "stride " + std::to_string(tensor.strides[i]) + " of dimension " +
                                  std::to_string(i) + " is negative or too large");
        }
    }
    int64_t storage = 1;
    for (int64_t dim : tensor.storageDims) {
        storage *= dim;
    }
    if (last >= storage) {
        throw StatusError(ACLNN_ERR_PARAM_INVALID, "the view reaches element " +
                                                       std::to_string(last) + " of a storage of " +
                                                       std::to_string(storage) + " elements");
    }
}

template <typename T>
const T& Alive(const T* object, const char* what) {
    if (object == nullptr) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, std::string(what) + " is null");
    }
    if (!LiveSet<T>::Get().Contains(object)) {
        throw StatusError(ACLNN_ERR_PARAM_INVALID,
                          std::string(what) + " was destroyed or never created");
    }
    return *object;
}

template <typename T>
void Destroy(const T* object, const char* what) {
    Alive(object, what);
    LiveSet<T>::Get().Take(object);
}

template <typename T>
T& Filled(T* pointer, const char* what) {
    if (pointer == nullptr) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, std::string(what) + " is null");
    }
    return *pointer;
}

void GiveDims(const std::vector<int64_t>& dims, int64_t** values, uint64_t* count) {
    Filled(values, "the dimension pointer");
    Filled(count, "the count pointer") = dims.size();
    *values = new int64_t[std::max<size_t>(dims.size(), 1)];
    std::copy(dims.begin(), dims.end(), *values);
}

template <typename T, typename V>
T* CreateArray(const char* function, const V* value, uint64_t size) {
    T* created = nullptr;
    sim::GuardStatus(function, [&] {
        if (value == nullptr && size != 0) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR, "value is null");
        }
        auto array = std::make_unique<T>();
        array->values.assign(value, value + size);
        created = LiveSet<T>::Get().Add(std::move(array));
    });
    return created;
}

}  // namespace

int64_t aclTensor::ElementCount() const {
    int64_t count = 1;
    for (int64_t dim : viewDims) {
        count *= dim;
    }
    return count;
}

bool aclTensor::IsContiguous() const {
    if (ElementCount() == 0) {
        return true;
    }
    int64_t expected = 1;
    for (size_t i = viewDims.size(); i > 0; --i) {
        if (viewDims[i - 1] == 1) {
            continue;
        }
        if (strides[i - 1] != expected) {
            return false;
        }
        expected *= viewDims[i - 1];
    }
    return true;
}

size_t aclTensor::ElementBytes() const {
    const int bytes = ge::GetSizeByDataType(GeDataType());
    return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

uint8_t* aclTensor::First() const {
    if (data == nullptr) {
        return nullptr;
    }
    return static_cast<uint8_t*>(data) + offset * static_cast<int64_t>(ElementBytes());
}

extern "C" {

size_t aclDataTypeSize(aclDataType dataType) {
    const int bytes = ge::GetSizeByDataType(static_cast<ge::DataType>(dataType));
    return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
    aclTensor* created = nullptr;
    sim::GuardStatus("aclCreateTensor", [&] {
        auto tensor = std::make_unique<aclTensor>();
        tensor->viewDims = CopyDims(viewDims, viewDimsNum, "viewDims");
        tensor->dataType = dataType;
        if (tensor->ElementBytes() == 0) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              "dataType " + std::to_string(dataType) + " has no element size");
        }
        if (offset < 0) {
            throw StatusError(ACLNN_ERR_PARAM_INVALID,
                              "offset is " + std::to_string(offset) + ", expected >= 0");
        }
        tensor->strides = stride == nullptr ? ContiguousStrides(tensor->viewDims)
                                            : std::vector<int64_t>(stride, stride + viewDimsNum);
        tensor->storageDims = storageDims == nullptr && storageDimsNum == 0
                                  ? tensor->viewDims
                                  : CopyDims(storageDims, storageDimsNum, "storageDims");
        tensor->offset = offset;
        tensor->format = format;
        tensor->data = tensorData;
        CheckInsideStorage(*tensor);
        created = LiveSet<aclTensor>::Get().Add(std::move(tensor));
    });
    return created;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
    return CreateArray<aclIntArray>("aclCreateIntArray", value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
    return CreateArray<aclFloatArray>("aclCreateFloatArray", value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
    aclBoolArray* created = nullptr;
    sim::GuardStatus("aclCreateBoolArray", [&] {
        if (value == nullptr && size != 0) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR, "value is null");
        }
        auto array = std::make_unique<aclBoolArray>();
        array->values.reset(new bool[std::max<uint64_t>(size, 1)]);
        std::copy(value, value + size, array->values.get());
        array->size = size;
        created = LiveSet<aclBoolArray>::Get().Add(std::move(array));
    });
    return created;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
    return sim::GuardStatus("aclDestroyTensor", [&] { Destroy(tensor, "tensor"); });
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
    return sim::GuardStatus("aclDestroyIntArray", [&] { Destroy(array, "array"); });
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
    return sim::GuardStatus("aclDestroyFloatArray", [&] { Destroy(array, "array"); });
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
    return sim::GuardStatus("aclDestroyBoolArray", [&] { Destroy(array, "array"); });
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
    return sim::GuardStatus("aclGetViewShape", [&] {
        GiveDims(Alive(tensor, "tensor").viewDims, viewDims, viewDimsNum);
    });
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
    return sim::GuardStatus("aclGetStorageShape", [&] {
        GiveDims(Alive(tensor, "tensor").storageDims, storageDims, storageDimsNum);
    });
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
    return sim::GuardStatus("aclGetViewStrides", [&] {
        GiveDims(Alive(tensor, "tensor").strides, stridesValue, stridesNum);
    });
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
    return sim::GuardStatus("aclGetViewOffset",
                            [&] { Filled(offset, "offset") = Alive(tensor, "tensor").offset; });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
    return sim::GuardStatus("aclGetFormat",
                            [&] { Filled(format, "format") = Alive(tensor, "tensor").format; });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
    return sim::GuardStatus(
        "aclGetDataType", [&] { Filled(dataType, "dataType") = Alive(tensor, "tensor").dataType; });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
    return sim::GuardStatus("aclGetRawTensorAddr",
                            [&] { Filled(addr, "addr") = Alive(tensor, "tensor").data; });
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    return sim::GuardStatus("aclGetIntArraySize",
                            [&] { Filled(size, "size") = Alive(array, "array").values.size(); });
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
    return sim::GuardStatus("aclGetFloatArraySize",
                            [&] { Filled(size, "size") = Alive(array, "array").values.size(); });
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
    return sim::GuardStatus("aclGetBoolArraySize",
                            [&] { Filled(size, "size") = Alive(array, "array").size; });
}

aclnnStatus aclnnInit(const char*) {
    return ACLNN_SUCCESS;
}

aclnnStatus aclnnFinalize() {
    return ACLNN_SUCCESS;
}

}  // extern "C"
