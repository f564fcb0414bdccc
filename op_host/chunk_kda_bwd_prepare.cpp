// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 5: what the backward needs from d_o before the state scan.
#include "common/op_params.h"
#include "common/rules.h"
#include "common/stage_tiling.h"
#include "../op_kernel/chunk_kda_bwd_prepare_tiling_data.h"

namespace optiling {
namespace {

enum BwdPrepareInput { kAqk = 0, kVNew = 1, kOutputGrad = 2, kH = 3, kCu = 4, kIndices = 5 };
enum BwdPrepareOutput { kDAqk = 0, kDvLocal = 1, kDqRaw = 2 };
enum BwdPrepareAttr { kScale = 0, kLayout = 1, kChunkSize = 2, kStateVFirst = 3 };
const int64_t kRingDepth = 2;

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    const kda::Operand aqk = tiling.Input(kAqk, "aqk");
    const kda::Operand vNew = tiling.Input(kVNew, "v_new");
    const kda::Operand outputGrad = tiling.Input(kOutputGrad, "d_o");
    const kda::Operand h = tiling.Input(kH, "h");
    const kda::Operand dAqk = tiling.Output(kDAqk, "d_aqk");
    const kda::Operand dvLocal = tiling.Output(kDvLocal, "dv_local");
    const kda::Operand dqRaw = tiling.Output(kDqRaw, "dq_raw");
    const float scale = tiling.Float(kScale, "scale");
    kda::ExpectScale(tiling, scale);
    const bool vFirst = tiling.Bool(kStateVFirst, "state_v_first");

    const kda::Layout layout = tiling.ReadLayout(kLayout, "layout");
    const kda::CallSizes sizes = tiling.Sizes(aqk, kda::CacheLayout(layout.rank3));
    const int64_t heads = sizes.valueHeads;
    const ge::DataType io = tiling.IoType(aqk);
    const kda::ChunkGeometry geometry =
        tiling.Geometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCu, kIndices);
    const kda::Dims rows = kda::CacheDims(sizes, heads, kda::kValueDim);
    const kda::Dims scores = kda::CacheDims(sizes, heads, kda::kChunkRows);
    tiling.Expect(aqk, io, scores);
    tiling.Expect(vNew, io, rows);
    tiling.Expect(outputGrad, io, kda::RowDims(layout, sizes, heads, kda::kValueDim));
    tiling.Expect(h, io,
                  {sizes.batch, geometry.chunksPerBatchRow, heads, kda::kKeyDim, kda::kValueDim});
    tiling.Expect(dAqk, ge::DT_FLOAT, scores);
    tiling.Expect(dvLocal, io, rows);
    tiling.Expect(dqRaw, ge::DT_FLOAT, kda::CacheDims(sizes, heads, kda::kKeyDim));
    ChunkKdaBwdPrepareTilingData* data = tiling.Data<ChunkKdaBwdPrepareTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    data->geometry = geometry;
    data->geometry.ioIsHalf = io == ge::DT_FLOAT16 ? 1 : 0;
    data->outputGrad = kda::RowLayout(layout, sizes, heads, kda::kValueDim);
    data->scale = scale;
    data->stateVFirst = vFirst ? 1 : 0;
    const int64_t scoreBytes = kda::kChunkRows * kda::kChunkRows * sizeof(float);
    tiling.Launch(tiling.BlockCount(geometry.totalChunks * heads), kRingDepth * scoreBytes, 0,
                  false);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(kDAqk) = *context->GetInputShape(kAqk);
    *context->GetOutputShape(kDvLocal) = *context->GetInputShape(kVNew);
    *context->GetOutputShape(kDqRaw) = *context->GetInputShape(kVNew);  // K = V
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(kDAqk, ge::DT_FLOAT);
    context->SetOutputDataType(kDvLocal, context->GetInputDataType(kVNew));
    return context->SetOutputDataType(kDqRaw, ge::DT_FLOAT);
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaBwdPrepare : public OpDef {
public:
    explicit ChunkKdaBwdPrepare(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> io = kda::WithHalf({ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        kda::Required(Input("aqk"), io);
        kda::Required(Input("v_new"), io);
        kda::Required(Input("d_o"), io);
        kda::Required(Input("h"), io);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::OptionalIndices(Input("chunk_indices"), io.size());
        kda::Required(Output("d_aqk"), fp32);
        kda::Required(Output("dv_local"), io);
        kda::Required(Output("dq_raw"), fp32);
        Attr("scale").AttrType(REQUIRED).Float();
        Attr("layout").AttrType(OPTIONAL).String("BNSD");
        Attr("chunk_size").AttrType(OPTIONAL).Int(64);
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaBwdPrepare);
}  // namespace ops
