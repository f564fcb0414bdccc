// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "register/op_impl_registry.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };

enum class DependScope : uint32_t { ALL = 0, TILING = 1, INVALID_SCOPE };

// The builder interface is CANN's. The values are public here because the generator and the
// runtime read them; op_host files use the builder functions only.
class OpParamDef {
public:
    explicit OpParamDef(const char* name) : name(name) {}
    OpParamDef& ParamType(Option type) { return Set(paramType, type); }
    OpParamDef& DataType(std::vector<ge::DataType> types) {
        return Set(dataTypes, std::move(types));
    }
    // Every type of a list goes with every column of the other operands.
    OpParamDef& DataTypeList(std::vector<ge::DataType> types) {
        return Set(dataTypeList, std::move(types));
    }
    OpParamDef& Format(std::vector<ge::Format> values) { return Set(formats, std::move(values)); }
    OpParamDef& FormatList(std::vector<ge::Format> values) {
        return Set(formats, std::move(values));
    }
    OpParamDef& UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
    OpParamDef& ValueDepend(Option depend) {
        hasValueDepend = true;
        return Set(valueDepend, depend);
    }
    OpParamDef& ValueDepend(Option depend, DependScope) { return ValueDepend(depend); }
    OpParamDef& IgnoreContiguous() { return Set(ignoreContiguous, true); }
    OpParamDef& AutoContiguous() { return Set(autoContiguous, true); }

    std::string name;
    Option paramType = IGNORE;
    std::vector<ge::DataType> dataTypes;
    std::vector<ge::DataType> dataTypeList;
    std::vector<ge::Format> formats;
    bool hasValueDepend = false;
    Option valueDepend = IGNORE;
    bool ignoreContiguous = false;
    bool autoContiguous = false;

private:
    template <typename T, typename V>
    OpParamDef& Set(T& member, V&& value) {
        member = std::forward<V>(value);
        return *this;
    }
};

enum class AttrDataType {
    ATTR_DT_BOOL = 0,
    ATTR_DT_FLOAT = 1,
    ATTR_DT_INT = 2,
    ATTR_DT_STR = 3,
    ATTR_DT_LIST_BOOL = 4,
    ATTR_DT_LIST_FLOAT = 5,
    ATTR_DT_LIST_INT = 6,
    ATTR_DT_LIST_LIST_INT = 7,
    ATTR_DT_MAX
};

class OpAttrDef {
public:
    explicit OpAttrDef(const char* name) : name(name) {}
    OpAttrDef& AttrType(Option type) {
        attrType = type;
        return *this;
    }
    OpAttrDef& Bool() { return SetType(AttrDataType::ATTR_DT_BOOL, false); }
    OpAttrDef& Bool(bool value) {
        boolDefault = value;
        return SetType(AttrDataType::ATTR_DT_BOOL, true);
    }
    OpAttrDef& Float() { return SetType(AttrDataType::ATTR_DT_FLOAT, false); }
    OpAttrDef& Float(float value) {
        floatDefault = value;
        return SetType(AttrDataType::ATTR_DT_FLOAT, true);
    }
    OpAttrDef& Int() { return SetType(AttrDataType::ATTR_DT_INT, false); }
    OpAttrDef& Int(int64_t value) {
        intDefault = value;
        return SetType(AttrDataType::ATTR_DT_INT, true);
    }
    OpAttrDef& String() { return SetType(AttrDataType::ATTR_DT_STR, false); }
    OpAttrDef& String(const char* value) {
        stringDefault = value;
        return SetType(AttrDataType::ATTR_DT_STR, true);
    }
    OpAttrDef& ListInt() { return SetType(AttrDataType::ATTR_DT_LIST_INT, false); }
    OpAttrDef& ListInt(std::vector<int64_t> value) {
        listDefault = std::move(value);
        return SetType(AttrDataType::ATTR_DT_LIST_INT, true);
    }
    bool IsRequired() const { return attrType == REQUIRED; }

    std::string name;
    Option attrType = REQUIRED;
    AttrDataType dataType = AttrDataType::ATTR_DT_MAX;
    bool hasDefault = false;
    bool boolDefault = false;
    float floatDefault = 0.0f;
    int64_t intDefault = 0;
    std::string stringDefault;
    std::vector<int64_t> listDefault;

private:
    OpAttrDef& SetType(AttrDataType type, bool withDefault) {
        dataType = type;
        hasDefault = withDefault;
        return *this;
    }
};

// References returned by Input/Output/Attr stay valid while more operands are added.
template <typename T>
class StableList {
public:
    StableList() = default;
    StableList(const StableList& other) { *this = other; }
    StableList& operator=(const StableList& other) {
        items_.clear();
        for (const auto& item : other.items_) {
            items_.emplace_back(new T(*item));
        }
        return *this;
    }
    // The operand of that name, made on first use.
    T& Get(const char* name) {
        for (auto& item : items_) {
            if (item->name == name) {
                return *item;
            }
        }
        items_.emplace_back(new T(name));
        return *items_.back();
    }
    size_t size() const { return items_.size(); }
    const T& operator[](size_t index) const { return *items_[index]; }
    const T* Find(const std::string& name) const {
        for (const auto& item : items_) {
            if (item->name == name) {
                return item.get();
            }
        }
        return nullptr;
    }

private:
    std::vector<std::unique_ptr<T>> items_;
};

// Settings for the binary compiler: they have no meaning on a CPU and are kept as text.
class OpAICoreConfig {
public:
    OpParamDef& Input(const char* name) { return inputs.Get(name); }
    OpParamDef& Output(const char* name) { return outputs.Get(name); }
    OpAICoreConfig& DynamicCompileStaticFlag(bool flag) {
        return Set("dynamicCompileStatic", flag);
    }
    OpAICoreConfig& DynamicFormatFlag(bool flag) { return Set("dynamicFormat", flag); }
    OpAICoreConfig& DynamicRankSupportFlag(bool flag) { return Set("dynamicRankSupport", flag); }
    OpAICoreConfig& DynamicShapeSupportFlag(bool flag) { return Set("dynamicShapeSupport", flag); }
    OpAICoreConfig& NeedCheckSupportFlag(bool flag) { return Set("needCheckSupport", flag); }
    OpAICoreConfig& PrecisionReduceFlag(bool flag) { return Set("precisionReduce", flag); }
    OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value) {
        config[key] = value;
        return *this;
    }

    StableList<OpParamDef> inputs;
    StableList<OpParamDef> outputs;
    std::map<std::string, std::string> config;

private:
    OpAICoreConfig& Set(const char* key, bool flag) {
        config[key] = flag ? "true" : "false";
        return *this;
    }
};

class OpAICoreDef {
public:
    OpAICoreDef& SetTiling(gert::OpImplRegisterV2::TilingKernelFunc function) {
        tiling = function;
        return *this;
    }
    OpAICoreDef& AddConfig(const char* soc) {
        configs[soc] = OpAICoreConfig();
        return *this;
    }
    OpAICoreDef& AddConfig(const char* soc, OpAICoreConfig& config) {
        configs[soc] = config;
        return *this;
    }

    gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    std::map<std::string, OpAICoreConfig> configs;
};

class OpDef {
public:
    explicit OpDef(const char* opType) : type(opType) {}
    OpParamDef& Input(const char* name) { return inputs.Get(name); }
    OpParamDef& Output(const char* name) { return outputs.Get(name); }
    OpAttrDef& Attr(const char* name) { return attrs.Get(name); }
    OpDef& SetInferShape(gert::OpImplRegisterV2::InferShapeKernelFunc function) {
        inferShape = function;
        return *this;
    }
    OpDef& SetInferDataType(gert::OpImplRegisterV2::InferDataTypeKernelFunc function) {
        inferDataType = function;
        return *this;
    }
    OpAICoreDef& AICore() { return aiCore; }

    std::string type;
    StableList<OpParamDef> inputs;
    StableList<OpParamDef> outputs;
    StableList<OpAttrDef> attrs;
    gert::OpImplRegisterV2::InferShapeKernelFunc inferShape = nullptr;
    gert::OpImplRegisterV2::InferDataTypeKernelFunc inferDataType = nullptr;
    OpAICoreDef aiCore;
};

}  // namespace ops
