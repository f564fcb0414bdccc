// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 7: the backward state scan.
#include "common/infer.h"
#include "common/op_params.h"
#include "common/rules.h"
#include "common/scan_tiling.h"
#include "../op_kernel/chunk_kda_bwd_dhu_tiling_data.h"

namespace optiling {
namespace {

enum BwdDhuInput { kQ, kK, kW, kDO, kDv, kGk, kH0, kDht, kCuSeqlens, kChunkIndices, kKLow };
enum BwdDhuAttr { kScale, kChunkSize, kUseExp2, kStateVFirst, kLayout };
enum BwdDhuOutput { kDh, kDh0, kDvScan, kDhLow };

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    kda::ScanInputs inputs;
    const kda::Operand q = tiling.Input(kQ, "q");
    inputs.k = tiling.Input(kK, "k");
    inputs.kLow = tiling.OptionalInput(kKLow, "k_low");
    inputs.w = tiling.Input(kW, "w");
    const kda::Operand grad = tiling.Input(kDO, "d_o");
    inputs.base = tiling.Input(kDv, "dv");
    inputs.gk = tiling.Input(kGk, "gk");
    const kda::Operand h0 = tiling.OptionalInput(kH0, "h0");
    const kda::Operand dht = tiling.OptionalInput(kDht, "dht");
    const kda::Operand dh = tiling.Output(kDh, "dh");
    const kda::Operand dh0 = tiling.OptionalOutput(kDh0, "dh0");
    const kda::Operand dvScan = tiling.Output(kDvScan, "dv_scan");
    const kda::Operand dhLow = tiling.OptionalOutput(kDhLow, "dh_low");
    const bool vFirst = tiling.Bool(kStateVFirst, "state_v_first");

    const kda::Layout layout = tiling.ReadLayout(kLayout, "layout");
    const kda::CallSizes sizes = kda::CheckScanInputs(tiling, q, layout.rank3, inputs);
    const kda::ChunkGeometry geometry =
        tiling.Geometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCuSeqlens, kChunkIndices);
    tiling.Expect(grad, inputs.io, kda::RowDims(layout, sizes, sizes.valueHeads, kda::kValueDim));
    tiling.ExpectType(h0, ge::DT_FLOAT, inputs.io);
    tiling.ExpectShape(h0, kda::SequenceStateDims(geometry));
    tiling.ExpectType(dht, ge::DT_FLOAT, inputs.io);
    tiling.ExpectShape(dht, kda::SequenceStateDims(geometry));
    tiling.Expect(dh, inputs.io, kda::ChunkStateDims(geometry));
    tiling.Expect(dh0, ge::DT_FLOAT, kda::SequenceStateDims(geometry));
    tiling.Expect(dvScan, inputs.io, inputs.base.dims);
    kda::ExpectLowStates(tiling, inputs, dhLow, kda::ChunkStateDims(geometry));
    if (h0.present != dh0.present) {
        tiling.Fail("dh0: expected exactly when h0 is given, got %s",
                    dh0.present ? "dh0 without h0" : "h0 without dh0");
    }
    const float scale = tiling.Float(kScale, "scale");
    kda::ExpectScale(tiling, scale);
    const float gateFactor = kda::GateFactor(tiling.Bool(kUseExp2, "use_exp2"));

    ChunkKdaBwdDhuTilingData* data = tiling.Data<ChunkKdaBwdDhuTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    kda::FillScan(tiling, &data->scan, geometry, inputs.io, kda::kValueDim);
    data->scan.gradLayout = kda::RowLayout(layout, sizes, sizes.valueHeads, kda::kValueDim);
    data->scan.scale = scale;
    data->scan.gateFactor = gateFactor;
    data->scan.initialKind = kda::InitialKind(dht);
    data->scan.storesFinal = dh0.present ? 1 : 0;
    data->scan.stateVFirst = vFirst ? 1 : 0;
    data->scan.precise = inputs.kLow.present ? 1 : 0;
    kda::LaunchScan(tiling, &data->scan, true, false);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::CallSizes sizes = kda::CallSizes();
    if (!kda::InferCacheSizes(context, kK, &sizes)) {
        return ge::GRAPH_FAILED;
    }
    const int64_t chunks = kda::InferChunks(context, kCuSeqlens, kChunkIndices, sizes.tokens);
    const int64_t sequences = kda::InferSequences(context, kCuSeqlens, sizes.batch);
    const kda::Dims states = {sizes.batch, chunks, sizes.valueHeads, kda::kKeyDim, kda::kValueDim};
    kda::Infer(context, kDh, states);
    kda::Infer(context, kDhLow, states);
    kda::Infer(context, kDh0, {sequences, sizes.valueHeads, kda::kKeyDim, kda::kValueDim});
    kda::Infer(context, kDvScan, kda::CacheDims(sizes, sizes.valueHeads, kda::kValueDim));
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(kDh, context->GetInputDataType(kK));
    // These fail where the output is absent.
    context->SetOutputDataType(kDh0, ge::DT_FLOAT);
    context->SetOutputDataType(kDhLow, context->GetInputDataType(kK));
    return context->SetOutputDataType(kDvScan, context->GetInputDataType(kK));
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaBwdDhu : public OpDef {
public:
    explicit ChunkKdaBwdDhu(const char* name) : OpDef(name) {
        // One column for each dtype of h0, of dht and of all others.
        const std::vector<ge::DataType> io =
            kda::WithHalf({ge::DT_BF16, ge::DT_BF16, ge::DT_BF16, ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        const std::vector<ge::DataType> h0 =
            kda::WithHalf({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_BF16, ge::DT_BF16});
        const std::vector<ge::DataType> dht =
            kda::WithHalf({ge::DT_FLOAT, ge::DT_BF16, ge::DT_FLOAT, ge::DT_BF16});
        kda::Required(Input("q"), io);
        kda::Required(Input("k"), io);
        kda::Required(Input("w"), io);
        kda::Required(Input("d_o"), io);
        kda::Required(Input("dv"), io);
        kda::Required(Input("gk"), fp32);
        kda::Optional(Input("h0"), h0);
        kda::Optional(Input("dht"), dht);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::OptionalIndices(Input("chunk_indices"), io.size());
        kda::Optional(Input("k_low"), io);
        kda::Required(Output("dh"), io);
        kda::Optional(Output("dh0"), fp32);
        kda::Required(Output("dv_scan"), io);
        kda::Optional(Output("dh_low"), io);
        Attr("scale").AttrType(REQUIRED).Float();
        Attr("chunk_size").AttrType(OPTIONAL).Int(kda::kChunkRows);
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        Attr("layout").AttrType(OPTIONAL).String("BNSD");
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaBwdDhu);
}  // namespace ops
