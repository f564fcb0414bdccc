// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>

#include "base/err_msg.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "../op_kernel/sim_test_row_update_tiling_data.h"

// An operator with one of each: a Ref operand, an OPTIONAL input and output, a ValueDepend array,
// an attribute of every kind, two dtype columns, and a tiling that can refuse.
namespace {

enum Input { kState, kX, kBias, kCounts };
enum Output { kStateOut, kCopy };
enum Attr { kScale, kRepeat, kNegate, kMode, kShifts };

ge::graphStatus Refuse(const char* text, long long value) {
    REPORT_INNER_ERR_MSG("EZ9999", text, value);
    return ge::GRAPH_FAILED;
}

// offset = (sum of shifts + sum of counts) * repeat, or 0 in mode "plain".
float Offset(gert::TilingContext* context, const char* mode, int64_t repeat) {
    int64_t sum = 0;
    const gert::TypedContinuousVector<int64_t>* shifts = context->GetAttrs()->GetListInt(kShifts);
    for (size_t i = 0; i < shifts->GetSize(); ++i) {
        sum += shifts->GetData()[i];
    }
    const gert::Tensor* counts = context->GetOptionalInputTensor(kCounts);
    if (counts != nullptr) {
        for (int64_t i = 0; i < counts->GetShapeSize(); ++i) {
            sum += counts->GetData<int64_t>()[i];
        }
    }
    return std::strcmp(mode, "plain") == 0 ? 0.0f : static_cast<float>(sum * repeat);
}

ge::graphStatus Tiling(gert::TilingContext* context) {
    const gert::Shape& shape = context->GetRequiredInputShape(kState)->GetStorageShape();
    if (shape.GetDimNum() != 2) {
        return Refuse("state has rank %lld, expected 2", static_cast<long long>(shape.GetDimNum()));
    }
    if (context->GetRequiredInputTensor(kState)->GetData<float>() != nullptr) {
        return Refuse("a device tensor has host data in tiling (rank %lld)", 2);
    }
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    const char* mode = attrs->GetStr(kMode);
    if (std::strcmp(mode, "plain") != 0 && std::strcmp(mode, "shifted") != 0) {
        REPORT_INNER_ERR_MSG("EZ9999", "mode is \"%s\", expected plain or shifted", mode);
        return ge::GRAPH_FAILED;
    }
    SimTestRowUpdateTilingData* td = context->GetTilingData<SimTestRowUpdateTilingData>();
    td->rows = shape.GetDim(0);
    td->columns = shape.GetDim(1);
    td->rowBytes = td->columns * 4;
    td->scale = *attrs->GetFloat(kScale) * (*attrs->GetBool(kNegate) ? -1.0f : 1.0f);
    td->offset = Offset(context, mode, *attrs->GetInt(kRepeat));
    td->hasBias = context->GetOptionalInputShape(kBias) != nullptr ? 1 : 0;
    td->hasCopy = context->GetOutputShape(kCopy) != nullptr ? 1 : 0;
    td->isHalf = context->GetRequiredInputDesc(kX)->GetDataType() == ge::DT_BF16 ? 1 : 0;
    td->reserved = 0;
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    const int64_t cores = platform.GetCoreNumAiv();
    context->SetBlockDim(
        static_cast<uint32_t>(td->rows < 1 ? 1 : (td->rows < cores ? td->rows : cores)));
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(kStateOut) = *context->GetRequiredInputShape(kState);
    *context->GetOutputShape(kCopy) = *context->GetRequiredInputShape(kState);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(kStateOut, ge::DT_FLOAT);
    context->SetOutputDataType(kCopy, ge::DT_FLOAT);
    return ge::GRAPH_SUCCESS;
}

}  // namespace

namespace ops {

class SimTestRowUpdate : public OpDef {
public:
    explicit SimTestRowUpdate(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> fp32(2, ge::DT_FLOAT);
        const std::vector<ge::Format> nd(2, ge::FORMAT_ND);
        this->Input("state").ParamType(REQUIRED).DataType(fp32).Format(nd).AutoContiguous();
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_BF16}).Format(nd);
        this->Input("bias").ParamType(OPTIONAL).DataType(fp32).Format(nd);
        this->Input("row_counts")
            .ParamType(OPTIONAL)
            .DataType({ge::DT_INT64, ge::DT_INT64})
            .Format(nd)
            .ValueDepend(OPTIONAL);
        this->Attr("A_scale").AttrType(REQUIRED).Float();
        this->Attr("repeat").AttrType(OPTIONAL).Int(1);
        this->Attr("negate").AttrType(OPTIONAL).Bool(false);
        this->Attr("mode").AttrType(OPTIONAL).String("shifted");
        this->Attr("shifts").AttrType(OPTIONAL).ListInt({1, 2});
        this->Output("state").ParamType(REQUIRED).DataType(fp32).Format(nd);
        this->Output("state_copy").ParamType(OPTIONAL).DataType(fp32).Format(nd);
        this->SetInferShape(InferShape).SetInferDataType(InferDataType);
        this->AICore().SetTiling(Tiling);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(SimTestRowUpdate);

}  // namespace ops
