// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 2: summaries [E | M] of whole sequences, forward.
#include "common/infer.h"
#include "common/op_params.h"
#include "common/scan_tiling.h"
#include "../op_kernel/chunk_kda_pre_process_fwd_tiling_data.h"

namespace optiling {
namespace {

enum PreProcessFwdInput { kK, kW, kU, kGk, kCuSeqlens };
enum PreProcessFwdAttr { kChunkSize, kUseExp2 };

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    kda::ScanInputs inputs;
    inputs.k = tiling.Input(kK, "k");
    inputs.w = tiling.Input(kW, "w");
    inputs.base = tiling.Input(kU, "u");
    inputs.baseMayBeFloat = true;
    inputs.gk = tiling.Input(kGk, "gk");
    const kda::Operand summary = tiling.Output(0, "summary");

    const kda::CallSizes sizes = kda::CheckScanInputs(tiling, inputs);
    const kda::ChunkGeometry geometry =
        tiling.SummaryGeometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCuSeqlens);
    const int64_t columns = kda::kValueDim + kda::kKeyDim;
    tiling.Expect(summary, ge::DT_FLOAT,
                  {geometry.sequences, geometry.valueHeads, kda::kKeyDim, columns});
    const float gateFactor = kda::GateFactor(tiling.Bool(kUseExp2, "use_exp2"));

    ChunkKdaPreProcessFwdTilingData* data = tiling.Data<ChunkKdaPreProcessFwdTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    kda::FillScan(tiling, &data->scan, geometry, inputs.io, columns);
    data->scan.gateFactor = gateFactor;
    data->scan.baseIsFloat = inputs.base.type == ge::DT_FLOAT ? 1 : 0;
    kda::LaunchScan(tiling, &data->scan, false, true);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::CallSizes sizes = kda::CallSizes();
    if (!kda::InferCacheSizes(context, kK, &sizes)) {
        return ge::GRAPH_FAILED;
    }
    const int64_t sequences = kda::InferSequences(context, kCuSeqlens, sizes.batch);
    kda::Infer(context, 0,
               {sequences, sizes.valueHeads, kda::kKeyDim, kda::kValueDim + kda::kKeyDim});
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, ge::DT_FLOAT);
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaPreProcessFwd : public OpDef {
public:
    explicit ChunkKdaPreProcessFwd(const char* name) : OpDef(name) {
        // One column for each dtype of u and of all others.
        const std::vector<ge::DataType> io = kda::WithHalf({ge::DT_BF16, ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        const std::vector<ge::DataType> u = kda::WithHalf({ge::DT_BF16, ge::DT_FLOAT});
        kda::Required(Input("k"), io);
        kda::Required(Input("w"), io);
        kda::Required(Input("u"), u);
        kda::Required(Input("gk"), fp32);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::Required(Output("summary"), fp32);
        Attr("chunk_size").AttrType(OPTIONAL).Int(kda::kChunkRows);
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaPreProcessFwd);
}  // namespace ops
