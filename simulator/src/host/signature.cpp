// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "signature.h"

#include <cctype>
#include <stdexcept>

namespace sim {
namespace {

bool IsUpper(char c) {
    return std::isupper(static_cast<unsigned char>(c)) != 0;
}

bool IsLower(char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
}

int RefOutput(const ops::OpDef& def, const std::string& input) {
    for (size_t i = 0; i < def.outputs.size(); ++i) {
        if (def.outputs[i].name == input) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

std::string ArrayType(const ops::OpDef& def, const ops::OpParamDef& input) {
    const auto& types = input.dataTypes.empty() ? input.dataTypeList : input.dataTypes;
    if (types.empty()) {
        throw std::runtime_error(def.type + ": input " + input.name + " has no data type");
    }
    switch (types[0]) {
        case ge::DT_FLOAT:
            return "const aclFloatArray *";
        case ge::DT_BOOL:
            return "const aclBoolArray *";
        default:
            return "const aclIntArray *";
    }
}

std::string AttrType(const ops::OpDef& def, const ops::OpAttrDef& attr) {
    switch (attr.dataType) {
        case ops::AttrDataType::ATTR_DT_BOOL:
            return "bool ";
        case ops::AttrDataType::ATTR_DT_FLOAT:
            return "double ";
        case ops::AttrDataType::ATTR_DT_INT:
            return "int64_t ";
        case ops::AttrDataType::ATTR_DT_STR:
            return "char *";
        case ops::AttrDataType::ATTR_DT_LIST_INT:
            return "const aclIntArray *";
        default:
            throw std::runtime_error(def.type + ": attribute " + attr.name + " has no type");
    }
}

CParam InputParam(const ops::OpDef& def, size_t index) {
    const ops::OpParamDef& input = def.inputs[index];
    const bool optional = input.paramType == ops::OPTIONAL;
    if (!optional && input.paramType != ops::REQUIRED) {
        throw std::runtime_error(def.type + ": input " + input.name +
                                 " must be REQUIRED or OPTIONAL");
    }
    CParam param;
    param.index = index;
    const int output = RefOutput(def, input.name);
    if (output >= 0) {
        param.role = ParamRole::kRef;
        param.outputIndex = static_cast<size_t>(output);
        param.type = "aclTensor *";
        param.name = CamelCase(input.name) + "Ref" + (optional ? "Optional" : "");
        return param;
    }
    param.type = input.hasValueDepend ? ArrayType(def, input) : "const aclTensor *";
    param.name = CamelCase(input.name) + (optional ? "Optional" : "");
    return param;
}

CParam AttrParam(const ops::OpDef& def, size_t index) {
    const ops::OpAttrDef& attr = def.attrs[index];
    CParam param;
    param.role = ParamRole::kAttr;
    param.index = index;
    param.type = AttrType(def, attr);
    // Only what can be a null pointer can be left out, so only that says so in its name.
    const bool pointer = param.type.back() == '*';
    param.name = CamelCase(attr.name) + (pointer && !attr.IsRequired() ? "Optional" : "");
    return param;
}

}  // namespace

std::string SnakeCase(const std::string& opType) {
    std::string snake;
    for (size_t i = 0; i < opType.size(); ++i) {
        const char c = opType[i];
        if (i > 0 && IsUpper(c)) {
            const bool afterWord = !IsUpper(opType[i - 1]);
            const bool startsWord = i + 1 < opType.size() && IsLower(opType[i + 1]);
            if (afterWord || startsWord) {
                snake += '_';
            }
        }
        snake += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return snake;
}

std::string CamelCase(const std::string& snake) {
    std::string camel;
    bool startsWord = false;
    for (char c : snake) {
        if (c == '_') {
            startsWord = !camel.empty();
            continue;
        }
        if (camel.empty()) {
            camel += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else {
            camel +=
                startsWord ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        }
        startsWord = false;
    }
    return camel;
}

int RefInput(const ops::OpDef& def, size_t outputIndex) {
    for (size_t i = 0; i < def.inputs.size(); ++i) {
        if (def.inputs[i].name == def.outputs[outputIndex].name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

std::vector<CParam> CSignature(const ops::OpDef& def) {
    std::vector<CParam> params;
    for (size_t i = 0; i < def.inputs.size(); ++i) {
        params.push_back(InputParam(def, i));
    }
    for (size_t i = 0; i < def.attrs.size(); ++i) {
        params.push_back(AttrParam(def, i));
    }
    for (size_t i = 0; i < def.outputs.size(); ++i) {
        if (RefInput(def, i) >= 0) {
            continue;
        }
        CParam param;
        param.role = ParamRole::kOutput;
        param.index = i;
        param.outputIndex = i;
        param.type = "const aclTensor *";
        param.name = def.outputs.size() == 1 ? "out" : CamelCase(def.outputs[i].name) + "Out";
        if (def.outputs[i].paramType == ops::OPTIONAL) {
            param.name += "Optional";
        }
        params.push_back(param);
    }
    return params;
}

const char* DataTypeName(ge::DataType type) {
    switch (type) {
        case ge::DT_FLOAT:
            return "FLOAT";
        case ge::DT_FLOAT16:
            return "FLOAT16";
        case ge::DT_BF16:
            return "BF16";
        case ge::DT_INT8:
            return "INT8";
        case ge::DT_UINT8:
            return "UINT8";
        case ge::DT_INT16:
            return "INT16";
        case ge::DT_UINT16:
            return "UINT16";
        case ge::DT_INT32:
            return "INT32";
        case ge::DT_UINT32:
            return "UINT32";
        case ge::DT_INT64:
            return "INT64";
        case ge::DT_UINT64:
            return "UINT64";
        case ge::DT_DOUBLE:
            return "DOUBLE";
        case ge::DT_BOOL:
            return "BOOL";
        default:
            return "UNDEFINED";
    }
}

}  // namespace sim
