// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 3: the forward state scan.
#include "common/infer.h"
#include "common/op_params.h"
#include "common/scan_tiling.h"
#include "../op_kernel/chunk_kda_fwd_h_tiling_data.h"

namespace optiling {
namespace {

enum FwdHInput { kK, kW, kU, kGk, kInitialState, kCuSeqlens, kChunkIndices, kKLow };
enum FwdHAttr { kChunkSize, kUseExp2, kStateVFirst };
enum FwdHOutput { kH, kVNew, kFinalState, kHLow };

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    kda::ScanInputs inputs;
    inputs.k = tiling.Input(kK, "k");
    inputs.w = tiling.Input(kW, "w");
    inputs.kLow = tiling.OptionalInput(kKLow, "k_low");
    inputs.base = tiling.Input(kU, "u");
    inputs.baseMayBeFloat = true;
    inputs.gk = tiling.Input(kGk, "gk");
    const kda::Operand initial = tiling.OptionalInput(kInitialState, "initial_state");
    const kda::Operand h = tiling.Output(kH, "h");
    const kda::Operand vNew = tiling.Output(kVNew, "v_new");
    const kda::Operand finalState = tiling.OptionalOutput(kFinalState, "final_state");
    const kda::Operand hLow = tiling.OptionalOutput(kHLow, "h_low");
    const bool vFirst = tiling.Bool(kStateVFirst, "state_v_first");

    const kda::CallSizes sizes = kda::CheckScanInputs(tiling, inputs);
    const kda::ChunkGeometry geometry =
        tiling.Geometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCuSeqlens, kChunkIndices);
    tiling.ExpectType(initial, ge::DT_FLOAT, inputs.io);
    tiling.ExpectShape(initial, kda::SequenceStateDims(geometry));
    tiling.Expect(h, inputs.io, kda::ChunkStateDims(geometry));
    tiling.Expect(vNew, inputs.io, kda::CacheDims(sizes, sizes.valueHeads, kda::kValueDim));
    tiling.Expect(finalState, ge::DT_FLOAT, kda::SequenceStateDims(geometry));
    kda::ExpectLowStates(tiling, inputs, hLow, kda::ChunkStateDims(geometry));
    const float gateFactor = kda::GateFactor(tiling.Bool(kUseExp2, "use_exp2"));

    ChunkKdaFwdHTilingData* data = tiling.Data<ChunkKdaFwdHTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    kda::FillScan(tiling, &data->scan, geometry, inputs.io, kda::kValueDim);
    data->scan.gateFactor = gateFactor;
    data->scan.initialKind = kda::InitialKind(initial);
    data->scan.storesFinal = finalState.present ? 1 : 0;
    data->scan.stateVFirst = vFirst ? 1 : 0;
    data->scan.baseIsFloat = inputs.base.type == ge::DT_FLOAT ? 1 : 0;
    data->scan.precise = inputs.kLow.present ? 1 : 0;
    kda::LaunchScan(tiling, &data->scan, false, false);
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
    kda::Infer(context, kH, states);
    kda::Infer(context, kHLow, states);
    kda::Infer(context, kVNew, kda::CacheDims(sizes, sizes.valueHeads, kda::kValueDim));
    kda::Infer(context, kFinalState, {sequences, sizes.valueHeads, kda::kKeyDim, kda::kValueDim});
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(kH, context->GetInputDataType(kK));
    context->SetOutputDataType(kVNew, context->GetInputDataType(kK));
    // These fail where the output is absent.
    context->SetOutputDataType(kFinalState, ge::DT_FLOAT);
    context->SetOutputDataType(kHLow, context->GetInputDataType(kK));
    return ge::GRAPH_SUCCESS;
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaFwdH : public OpDef {
public:
    explicit ChunkKdaFwdH(const char* name) : OpDef(name) {
        // One column for each dtype of initial_state, of u and of all others.
        const std::vector<ge::DataType> io =
            kda::WithHalf({ge::DT_BF16, ge::DT_BF16, ge::DT_BF16, ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        const std::vector<ge::DataType> state =
            kda::WithHalf({ge::DT_FLOAT, ge::DT_BF16, ge::DT_FLOAT, ge::DT_BF16});
        const std::vector<ge::DataType> u =
            kda::WithHalf({ge::DT_BF16, ge::DT_BF16, ge::DT_FLOAT, ge::DT_FLOAT});
        kda::Required(Input("k"), io);
        kda::Required(Input("w"), io);
        kda::Required(Input("u"), u);
        kda::Required(Input("gk"), fp32);
        kda::Optional(Input("initial_state"), state);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::OptionalIndices(Input("chunk_indices"), io.size());
        kda::Optional(Input("k_low"), io);
        kda::Required(Output("h"), io);
        kda::Required(Output("v_new"), io);
        kda::Optional(Output("final_state"), fp32);
        kda::Optional(Output("h_low"), io);
        Attr("chunk_size").AttrType(OPTIONAL).Int(kda::kChunkRows);
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaFwdH);
}  // namespace ops
