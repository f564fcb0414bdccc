// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "base/err_msg.h"
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "../op_kernel/sim_test_matmul_tiling_data.h"

// A mixed operator with a single output, registered through IMPL_OP_OPTILING.
namespace {

ge::graphStatus Tiling(gert::TilingContext* context) {
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() != 3 || shape.GetDim(1) != 64 || shape.GetDim(2) != 64) {
        REPORT_INNER_ERR_MSG("EZ9999", "x has rank %zu, expected [tasks,64,64]", shape.GetDimNum());
        return ge::GRAPH_FAILED;
    }
    const int64_t fault = *context->GetAttrs()->GetInt(0);
    SimTestMatmulTilingData* td = context->GetTilingData<SimTestMatmulTilingData>();
    td->tasks = static_cast<int32_t>(shape.GetDim(0));
    td->spin = 0;
    td->breakRule = fault == 1 ? 1 : 0;
    td->reserved = 0;
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    const uint32_t cores = platform.GetCoreNumAic();
    const uint32_t tasks = static_cast<uint32_t>(shape.GetDim(0));
    const uint32_t blocks = tasks < cores ? tasks : cores;
    context->SetBlockDim(fault == 2 ? 0 : blocks);
    const size_t user = static_cast<size_t>(blocks) * 2 * 64 * 64 * sizeof(float);
    context->GetWorkspaceSizes(1)[0] = fault == 3 ? 0 : platform.GetLibApiWorkSpaceSize() + user;
    return ge::GRAPH_SUCCESS;
}

}  // namespace

IMPL_OP_OPTILING(SimTestMatmul).Tiling(Tiling);

namespace ops {

class SimTestMatmul : public OpDef {
public:
    explicit SimTestMatmul(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_BF16}).Format({ge::FORMAT_ND});
        this->Input("y").ParamType(REQUIRED).DataType({ge::DT_BF16}).Format({ge::FORMAT_ND});
        this->Attr("fault").AttrType(OPTIONAL).Int(0);
        this->Output("product")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND});
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(SimTestMatmul);

}  // namespace ops
