// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 6: the summary [Eb | Mb] of one sequence, backward.
#include "common/infer.h"
#include "common/op_params.h"
#include "common/rules.h"
#include "common/scan_tiling.h"
#include "../op_kernel/chunk_kda_pre_process_bwd_tiling_data.h"

namespace optiling {
namespace {

enum PreProcessBwdInput { kQ, kK, kW, kDO, kDv, kGk, kCuSeqlens };
enum PreProcessBwdAttr { kScale, kChunkSize, kLayout, kUseExp2 };

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    kda::ScanInputs inputs;
    const kda::Operand q = tiling.Input(kQ, "q");
    inputs.k = tiling.Input(kK, "k");
    inputs.w = tiling.Input(kW, "w");
    const kda::Operand grad = tiling.Input(kDO, "d_o");
    inputs.base = tiling.Input(kDv, "dv");
    inputs.gk = tiling.Input(kGk, "gk");
    const kda::Operand summary = tiling.Output(0, "summary");

    const kda::Layout layout = tiling.ReadLayout(kLayout, "layout");
    const kda::CallSizes sizes = kda::CheckScanInputs(tiling, q, layout.rank3, inputs);
    const int64_t heads = sizes.valueHeads;
    if (sizes.batch != 1) {
        tiling.Fail("B: expected 1 (the summary has no batch axis), got %lld",
                    static_cast<long long>(sizes.batch));
    }
    const kda::ChunkGeometry geometry =
        tiling.FirstSequenceGeometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCuSeqlens);
    tiling.Expect(grad, inputs.io, kda::RowDims(layout, sizes, heads, kda::kValueDim));
    const int64_t columns = kda::kValueDim + kda::kKeyDim;
    tiling.Expect(summary, ge::DT_FLOAT, {heads, kda::kKeyDim, columns});
    const float scale = tiling.Float(kScale, "scale");
    const float gateFactor = kda::GateFactor(tiling.Bool(kUseExp2, "use_exp2"));
    kda::ExpectScale(tiling, scale);

    ChunkKdaPreProcessBwdTilingData* data = tiling.Data<ChunkKdaPreProcessBwdTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    kda::FillScan(tiling, &data->scan, geometry, inputs.io, columns);
    data->scan.gradLayout = kda::RowLayout(layout, sizes, heads, kda::kValueDim);
    data->scan.scale = scale;
    data->scan.gateFactor = gateFactor;
    kda::LaunchScan(tiling, &data->scan, true, true);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::CallSizes sizes = kda::CallSizes();
    if (!kda::InferCacheSizes(context, kK, &sizes)) {
        return ge::GRAPH_FAILED;
    }
    kda::Infer(context, 0, {sizes.valueHeads, kda::kKeyDim, kda::kValueDim + kda::kKeyDim});
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, ge::DT_FLOAT);
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaPreProcessBwd : public OpDef {
public:
    explicit ChunkKdaPreProcessBwd(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> io = kda::WithHalf({ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        kda::Required(Input("q"), io);
        kda::Required(Input("k"), io);
        kda::Required(Input("w"), io);
        kda::Required(Input("d_o"), io);
        kda::Required(Input("dv"), io);
        kda::Required(Input("gk"), fp32);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::Required(Output("summary"), fp32);
        Attr("scale").AttrType(REQUIRED).Float();
        Attr("chunk_size").AttrType(OPTIONAL).Int(kda::kChunkRows);
        Attr("layout").AttrType(OPTIONAL).String("BNSD");
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaPreProcessBwd);
}  // namespace ops
