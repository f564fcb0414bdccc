// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "call.h"

#include <cstring>

#include "status.h"

namespace sim {
namespace {

using ops::OpAttrDef;
using ops::OpParamDef;

[[noreturn]] void FailParam(const std::string& name, const std::string& why) {
    throw StatusError(ACLNN_ERR_PARAM_INVALID, name + " " + why);
}

template <typename T>
const T* AliveArgument(const void* pointer, const std::string& name) {
    const T* object = static_cast<const T*>(pointer);
    if (object != nullptr && !LiveSet<T>::Get().Contains(object)) {
        FailParam(name, "is not a live object of its type: it was destroyed or never created");
    }
    return object;
}

void CheckTensor(const aclTensor& tensor, const std::string& name) {
    if (tensor.format != ACL_FORMAT_ND) {
        FailParam(name, "has format " + std::to_string(tensor.format) + ", expected ND (2)");
    }
    if (tensor.ElementCount() != 0 && tensor.data == nullptr) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, name + " has " +
                                                       std::to_string(tensor.ElementCount()) +
                                                       " elements but a null data pointer");
    }
}

gert::StorageShape ShapeOf(const std::vector<int64_t>& dims) {
    gert::StorageShape shape;
    for (int64_t dim : dims) {
        shape.MutableOriginShape().AppendDim(dim);
        shape.MutableStorageShape().AppendDim(dim);
    }
    return shape;
}

template <typename T>
std::vector<uint8_t> BytesOf(const T* values, size_t count) {
    std::vector<uint8_t> bytes(count * sizeof(T));
    if (count != 0) {
        std::memcpy(bytes.data(), values, bytes.size());
    }
    return bytes;
}

void FillArray(const CParam& param, const void* pointer, Call::Input& input) {
    if (param.type == "const aclFloatArray *") {
        if (const auto* array = AliveArgument<aclFloatArray>(pointer, param.name)) {
            input.values = BytesOf(array->values.data(), array->values.size());
            input.count = static_cast<int64_t>(array->values.size());
            input.dataType = ge::DT_FLOAT;
            input.isArray = true;
        }
    } else if (param.type == "const aclBoolArray *") {
        if (const auto* array = AliveArgument<aclBoolArray>(pointer, param.name)) {
            input.values = BytesOf(array->values.get(), array->size);
            input.count = static_cast<int64_t>(array->size);
            input.dataType = ge::DT_BOOL;
            input.isArray = true;
        }
    } else if (const auto* array = AliveArgument<aclIntArray>(pointer, param.name)) {
        input.values = BytesOf(array->values.data(), array->values.size());
        input.count = static_cast<int64_t>(array->values.size());
        input.dataType = ge::DT_INT64;
        input.isArray = true;
    }
}

void FillInput(const Operator& op, const CParam& param, const void* pointer, Call& call) {
    const OpParamDef& def = op.def.inputs[param.index];
    Call::Input& input = call.inputs[param.index];
    if (def.hasValueDepend) {
        FillArray(param, pointer, input);
    } else {
        input.tensor = AliveArgument<aclTensor>(pointer, param.name);
        if (input.tensor != nullptr) {
            CheckTensor(*input.tensor, param.name);
            input.dataType = input.tensor->GeDataType();
        }
    }
    if (!input.Present()) {
        if (def.paramType == ops::REQUIRED) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR, param.name + " is null but required");
        }
        return;
    }
    call.node.irInputToInstance[param.index] = static_cast<int>(call.node.inputs.size());
    const gert::StorageShape shape =
        input.isArray ? ShapeOf({input.count}) : ShapeOf(input.tensor->viewDims);
    call.node.inputs.emplace_back(shape, input.dataType,
                                  input.isArray ? input.values.data() : nullptr);
    call.node.inputDescs.emplace_back(input.dataType);
}

void FillAttr(const Operator& op, const CParam& param, const Argument& argument, Call& call) {
    using Kind = gert::RuntimeAttrs::Kind;
    const OpAttrDef& def = op.def.attrs[param.index];
    gert::RuntimeAttrs::Value value;
    const bool pointer = param.type.back() == '*';
    if (pointer && argument.pointer == nullptr && def.IsRequired()) {
        throw StatusError(ACLNN_ERR_PARAM_NULLPTR, param.name + " is null but required");
    }
    switch (def.dataType) {
        case ops::AttrDataType::ATTR_DT_BOOL:
            value.kind = Kind::kBool;
            value.boolean = argument.boolean;
            break;
        case ops::AttrDataType::ATTR_DT_FLOAT:
            value.kind = Kind::kFloat;
            value.real = static_cast<float>(argument.real);
            break;
        case ops::AttrDataType::ATTR_DT_INT:
            value.kind = Kind::kInt;
            value.integer = argument.integer;
            break;
        case ops::AttrDataType::ATTR_DT_STR:
            value.kind = Kind::kString;
            value.text = argument.pointer == nullptr ? def.stringDefault
                                                     : static_cast<const char*>(argument.pointer);
            break;
        default: {
            value.kind = Kind::kListInt;
            const auto* list = AliveArgument<aclIntArray>(argument.pointer, param.name);
            const std::vector<int64_t>& source = list == nullptr ? def.listDefault : list->values;
            value.list.Assign(source.data(), source.size());
            break;
        }
    }
    call.node.attrs.Append(value);
}

void FillOutput(const Operator& op, const CParam& param, const void* pointer, Call& call) {
    const OpParamDef& def = op.def.outputs[param.outputIndex];
    const aclTensor* tensor = AliveArgument<aclTensor>(pointer, param.name);
    if (tensor == nullptr) {
        if (def.paramType == ops::REQUIRED) {
            throw StatusError(ACLNN_ERR_PARAM_NULLPTR, param.name + " is null but required");
        }
        return;
    }
    CheckTensor(*tensor, param.name);
    call.outputs[param.outputIndex] = tensor;
    call.node.outputPresent[param.outputIndex] = true;
    call.node.outputInstances[param.outputIndex] =
        gert::AnchorInstanceInfo(static_cast<uint32_t>(param.outputIndex), 1);
    call.node.outputs[param.outputIndex] =
        gert::Tensor(ShapeOf(tensor->viewDims), tensor->GeDataType(), nullptr);
    call.node.outputDescs[param.outputIndex] = gert::CompileTimeTensorDesc(tensor->GeDataType());
}

struct TypedOperand {
    const OpParamDef* def;
    std::string name;
    ge::DataType dataType;
};

bool Matches(const OpParamDef& def, size_t column, ge::DataType type) {
    for (ge::DataType listed : def.dataTypeList) {
        if (listed == type) {
            return true;
        }
    }
    return column < def.dataTypes.size() && def.dataTypes[column] == type;
}

std::string ListedTypes(const OpParamDef& def) {
    std::vector<ge::DataType> types;
    std::string text;
    const auto add = [&](ge::DataType type) {
        for (ge::DataType seen : types) {
            if (seen == type) {
                return;
            }
        }
        types.push_back(type);
        text += std::string(text.empty() ? "" : " or ") + DataTypeName(type);
    };
    for (ge::DataType type : def.dataTypes) {
        add(type);
    }
    for (ge::DataType type : def.dataTypeList) {
        add(type);
    }
    return text;
}

// Column c of all operands' DataType lists is one supported combination.
void CheckDataTypes(const std::vector<TypedOperand>& operands) {
    size_t columns = 1;
    for (const TypedOperand& operand : operands) {
        columns = std::max(columns, operand.def->dataTypes.size());
    }
    for (const TypedOperand& operand : operands) {
        bool listed = false;
        for (size_t column = 0; column < columns && !listed; ++column) {
            listed = Matches(*operand.def, column, operand.dataType);
        }
        if (!listed) {
            FailParam(operand.name, std::string("has data type ") + DataTypeName(operand.dataType) +
                                        ", expected " + ListedTypes(*operand.def));
        }
    }
    for (size_t column = 0; column < columns; ++column) {
        bool all = true;
        for (const TypedOperand& operand : operands) {
            all = all && Matches(*operand.def, column, operand.dataType);
        }
        if (all) {
            return;
        }
    }
    std::string came;
    for (const TypedOperand& operand : operands) {
        came += std::string(came.empty() ? "" : ", ") + operand.name + " " +
                DataTypeName(operand.dataType);
    }
    FailParam("the data types (" + came + ")",
              "are no supported combination of the op definition's columns");
}

std::vector<TypedOperand> PresentOperands(const std::vector<CParam>& params, const Call& call,
                                          bool withOutputs) {
    std::vector<TypedOperand> operands;
    for (const CParam& param : params) {
        if (param.role == ParamRole::kAttr) {
            continue;
        }
        if (param.role == ParamRole::kOutput) {
            const aclTensor* tensor = withOutputs ? call.outputs[param.index] : nullptr;
            if (tensor != nullptr) {
                operands.push_back(
                    {&call.op->def.outputs[param.index], param.name, tensor->GeDataType()});
            }
        } else if (call.inputs[param.index].Present()) {
            operands.push_back(
                {&call.op->def.inputs[param.index], param.name, call.inputs[param.index].dataType});
        }
    }
    return operands;
}

}  // namespace

void FillCall(const Operator& op, const Argument* arguments, size_t count, bool withOutputs,
              Call& call) {
    const std::vector<CParam> params = CSignature(op.def);
    call.op = &op;
    call.inputs.resize(op.def.inputs.size());
    call.outputs.assign(op.def.outputs.size(), nullptr);
    call.node.type = op.def.type;
    call.node.name = op.def.type;
    call.node.irInputToInstance.assign(op.def.inputs.size(), gert::ComputeNodeInfo::kAbsent);
    call.node.outputs.resize(op.def.outputs.size());
    call.node.outputDescs.resize(op.def.outputs.size());
    call.node.outputPresent.assign(op.def.outputs.size(), false);
    for (size_t i = 0; i < op.def.outputs.size(); ++i) {
        call.node.outputInstances.emplace_back(static_cast<uint32_t>(i), 0);
    }
    size_t used = 0;
    for (const CParam& param : params) {
        if (param.role == ParamRole::kOutput && !withOutputs) {
            continue;
        }
        if (used >= count) {
            throw StatusError(ACLNN_ERR_INNER, "the call has " + std::to_string(count) +
                                                   " arguments, the definition has more");
        }
        const Argument& argument = arguments[used++];
        switch (param.role) {
            case ParamRole::kInput:
                FillInput(op, param, argument.pointer, call);
                break;
            case ParamRole::kRef:
                FillInput(op, param, argument.pointer, call);
                FillOutput(op, param, argument.pointer, call);
                break;
            case ParamRole::kAttr:
                FillAttr(op, param, argument, call);
                break;
            case ParamRole::kOutput:
                FillOutput(op, param, argument.pointer, call);
                break;
        }
    }
    CheckDataTypes(PresentOperands(params, call, withOutputs));
}

}  // namespace sim
