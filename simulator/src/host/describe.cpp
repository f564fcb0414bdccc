// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "describe.h"

#include <cstdio>
#include <cstring>

#include "call.h"
#include "op_registry.h"
#include "signature.h"
#include "status.h"

namespace sim {
namespace {

const char* Bool(bool value) {
    return value ? "true" : "false";
}

std::string TypeList(const std::vector<ge::DataType>& types) {
    std::string text = "[";
    for (size_t i = 0; i < types.size(); ++i) {
        text += std::string(i == 0 ? "" : ", ") + Quote(DataTypeName(types[i]));
    }
    return text + "]";
}

std::string ParamJson(const ops::OpParamDef& def) {
    return "{\"name\": " + Quote(def.name) +
           ", \"optional\": " + Bool(def.paramType == ops::OPTIONAL) +
           ", \"value_depend\": " + Bool(def.hasValueDepend) +
           ", \"auto_contiguous\": " + Bool(def.autoContiguous) +
           ", \"dtypes\": " + TypeList(def.dataTypes) +
           ", \"dtype_list\": " + TypeList(def.dataTypeList) + "}";
}

std::string Number(double value) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.9g", value);
    return text;
}

std::string AttrDefault(const ops::OpAttrDef& def) {
    if (!def.hasDefault) {
        return "null";
    }
    switch (def.dataType) {
        case ops::AttrDataType::ATTR_DT_BOOL:
            return Bool(def.boolDefault);
        case ops::AttrDataType::ATTR_DT_FLOAT:
            return Number(def.floatDefault);
        case ops::AttrDataType::ATTR_DT_INT:
            return std::to_string(def.intDefault);
        case ops::AttrDataType::ATTR_DT_STR:
            return Quote(def.stringDefault);
        default: {
            std::string text = "[";
            for (size_t i = 0; i < def.listDefault.size(); ++i) {
                text += (i == 0 ? "" : ", ") + std::to_string(def.listDefault[i]);
            }
            return text + "]";
        }
    }
}

const char* AttrTypeName(const ops::OpAttrDef& def) {
    switch (def.dataType) {
        case ops::AttrDataType::ATTR_DT_BOOL:
            return "bool";
        case ops::AttrDataType::ATTR_DT_FLOAT:
            return "float";
        case ops::AttrDataType::ATTR_DT_INT:
            return "int";
        case ops::AttrDataType::ATTR_DT_STR:
            return "str";
        default:
            return "list_int";
    }
}

std::string AttrJson(const ops::OpAttrDef& def) {
    return "{\"name\": " + Quote(def.name) + ", \"type\": " + Quote(AttrTypeName(def)) +
           ", \"required\": " + Bool(def.IsRequired()) + ", \"default\": " + AttrDefault(def) + "}";
}

std::string CParamJson(const CParam& param) {
    static const char* const kRoles[] = {"input", "attr", "output", "ref"};
    std::string type = param.type;
    while (!type.empty() && type.back() == ' ') {
        type.pop_back();
    }
    return "{\"role\": " + Quote(kRoles[static_cast<int>(param.role)]) +
           ", \"index\": " + std::to_string(param.index) + ", \"type\": " + Quote(type) +
           ", \"name\": " + Quote(param.name) + "}";
}

template <typename List, typename Format>
std::string JsonList(const List& list, Format format) {
    std::string text = "[";
    for (size_t i = 0; i < list.size(); ++i) {
        text += (i == 0 ? "" : ",\n      ") + format(list[i]);
    }
    return text + "]";
}

std::string OperatorJson(const ops::OpDef& def) {
    std::string socs;
    for (const auto& config : def.aiCore.configs) {
        socs += (socs.empty() ? "" : ", ") + Quote(config.first);
    }
    return "  {\"type\": " + Quote(def.type) + ", \"kernel\": " + Quote(SnakeCase(def.type)) +
           ", \"socs\": [" + socs + "]" + ",\n    \"inputs\": " + JsonList(def.inputs, ParamJson) +
           ",\n    \"attrs\": " + JsonList(def.attrs, AttrJson) +
           ",\n    \"outputs\": " + JsonList(def.outputs, ParamJson) +
           ",\n    \"c_params\": " + JsonList(CSignature(def), CParamJson) + "}";
}

Argument ReadArgument(const CParam& param, const void* pointer) {
    if (param.type.back() == '*') {
        return Argument(Argument::Raw{}, pointer);
    }
    if (pointer == nullptr) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, param.name + " is null");
    }
    if (param.type == "double ") {
        return Argument(*static_cast<const double*>(pointer));
    }
    if (param.type == "bool ") {
        return Argument(*static_cast<const bool*>(pointer));
    }
    return Argument(*static_cast<const int64_t*>(pointer));
}

std::string InferJson(const Operator& op, const Call& call, const std::vector<bool>& present) {
    if (op.inferShape == nullptr || op.inferDataType == nullptr) {
        throw StatusError(ACLNN_ERR_INNER_INFERSHAPE_ERROR,
                          "no shape or data type inference is registered");
    }
    std::vector<gert::Shape> shapes(op.def.outputs.size());
    std::vector<ge::DataType> types(op.def.outputs.size(), ge::DT_UNDEFINED);
    TakeReportedText();
    gert::InferShapeContext shapeContext(&call.node, &shapes, &present);
    gert::InferDataTypeContext typeContext(&call.node, &types, &present);
    const bool good = op.inferShape(&shapeContext) == ge::GRAPH_SUCCESS &&
                      op.inferDataType(&typeContext) == ge::GRAPH_SUCCESS;
    const std::string reported = TakeReportedText();
    if (!good) {
        throw StatusError(ACLNN_ERR_INNER_INFERSHAPE_ERROR, "inference failed: " + reported);
    }
    std::string text = "[";
    for (size_t i = 0; i < shapes.size(); ++i) {
        if (!present[i]) {
            continue;
        }
        text += std::string(text.size() == 1 ? "" : ", ") +
                "{\"name\": " + Quote(op.def.outputs[i].name) +
                ", \"dtype\": " + Quote(DataTypeName(types[i])) + ", \"shape\": [";
        for (size_t d = 0; d < shapes[i].GetDimNum(); ++d) {
            text += (d == 0 ? "" : ", ") + std::to_string(shapes[i].GetDim(d));
        }
        text += "]}";
    }
    return text + "]";
}

}  // namespace

std::string Quote(const std::string& text) {
    std::string quoted = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", c);
            quoted += escape;
        } else {
            quoted += c;
        }
    }
    return quoted + "\"";
}

std::string DescribeOperators() {
    std::string text = "[\n";
    bool first = true;
    for (const auto& op : AllOperators()) {
        text += (first ? "" : ",\n") + OperatorJson(op->def);
        first = false;
    }
    return text + "\n]\n";
}

}  // namespace sim

extern "C" const char* ascendSimDescribeOps() {
    try {
        static const std::string text = sim::DescribeOperators();
        return text.c_str();
    } catch (const std::exception& error) {
        sim::SetErrorText(std::string("ascendSimDescribeOps: ") + error.what());
        return "";
    }
}

extern "C" int ascendSimInfer(const char* opType, const void* const* arguments, size_t count,
                              char* buffer, size_t cap, size_t* needed) {
    return sim::GuardStatus("ascendSimInfer", [&] {
        const sim::Operator& op = sim::FindOperator(opType);
        std::vector<sim::Argument> values;
        std::vector<bool> present(op.def.outputs.size(), true);
        size_t given = 0;
        for (const sim::CParam& param : sim::CSignature(op.def)) {
            if (given == count) {
                break;
            }
            const void* argument = arguments[given++];
            if (param.role == sim::ParamRole::kOutput) {
                present[param.index] =
                    argument != nullptr || op.def.outputs[param.index].paramType == ops::REQUIRED;
            } else {
                values.push_back(sim::ReadArgument(param, argument));
            }
        }
        sim::Call call;
        sim::FillCall(op, values.data(), values.size(), false, call);
        const std::string text = sim::InferJson(op, call, present);
        *needed = text.size();
        if (buffer != nullptr && cap != 0) {
            std::memcpy(buffer, text.data(), std::min(cap, text.size()));
        }
    });
}
