// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 4: the output, from the chunk states.
#include "common/infer.h"
#include "common/op_params.h"
#include "common/stage_tiling.h"
#include "../op_kernel/chunk_kda_fwd_finalize_tiling_data.h"

namespace optiling {
namespace {

enum FwdFinalizeInput { kQgScaled = 0, kAqk = 1, kVNew = 2, kH = 3, kCu = 4, kIndices = 5 };
enum FwdFinalizeAttr { kOutputLayout = 0, kStateVFirst = 1 };

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    const kda::Operand qgScaled = tiling.Input(kQgScaled, "qg_scaled");
    const kda::Operand aqk = tiling.Input(kAqk, "aqk");
    const kda::Operand vNew = tiling.Input(kVNew, "v_new");
    const kda::Operand h = tiling.Input(kH, "h");
    const kda::Operand o = tiling.Output(0, "o");
    const bool vFirst = tiling.Bool(kStateVFirst, "state_v_first");

    const kda::Layout layout = tiling.ReadLayout(kOutputLayout, "output_layout");
    const kda::CallSizes sizes = tiling.Sizes(qgScaled, kda::CacheLayout(layout.rank3));
    const int64_t heads = sizes.valueHeads;
    const ge::DataType io = tiling.IoType(qgScaled);
    const kda::ChunkGeometry geometry = tiling.Geometry(sizes, kda::kChunkRows, kCu, kIndices);
    tiling.Expect(qgScaled, io, kda::CacheDims(sizes, heads, kda::kKeyDim));
    tiling.Expect(aqk, io, kda::CacheDims(sizes, heads, kda::kChunkRows));
    tiling.Expect(vNew, io, kda::CacheDims(sizes, heads, kda::kValueDim));
    tiling.Expect(h, io,
                  {sizes.batch, geometry.chunksPerBatchRow, heads, kda::kKeyDim, kda::kValueDim});
    tiling.Expect(o, io, kda::RowDims(layout, sizes, heads, kda::kValueDim));
    ChunkKdaFwdFinalizeTilingData* data = tiling.Data<ChunkKdaFwdFinalizeTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    data->geometry = geometry;
    data->geometry.ioIsHalf = io == ge::DT_FLOAT16 ? 1 : 0;
    data->output = kda::RowLayout(layout, sizes, heads, kda::kValueDim);
    data->stateVFirst = vFirst ? 1 : 0;
    data->reserved = 0;
    tiling.Launch(tiling.BlockCount(geometry.totalChunks * heads), 0, 0, false);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::Layout layout = kda::Layout();
    kda::CallSizes sizes = kda::CallSizes();
    if (!kda::InferLayout(context, kOutputLayout, &layout) ||
        !kda::InferSizes(context, kVNew, kda::CacheLayout(layout.rank3), &sizes)) {
        return ge::GRAPH_FAILED;
    }
    kda::Infer(context, 0, kda::RowDims(layout, sizes, sizes.valueHeads, kda::kValueDim));
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(kVNew));
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaFwdFinalize : public OpDef {
public:
    explicit ChunkKdaFwdFinalize(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> io = kda::WithHalf({ge::DT_BF16});
        kda::Required(Input("qg_scaled"), io);
        kda::Required(Input("aqk"), io);
        kda::Required(Input("v_new"), io);
        kda::Required(Input("h"), io);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::OptionalIndices(Input("chunk_indices"), io.size());
        kda::Required(Output("o"), io);
        Attr("output_layout").AttrType(OPTIONAL).String("BSND");
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaFwdFinalize);
}  // namespace ops
