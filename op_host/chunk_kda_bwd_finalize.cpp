// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 8: all input gradients from the states, their gradients and what bwd_prepare left.
#include "common/gate_tiling.h"
#include "common/infer.h"
#include "common/op_params.h"
#include "common/rules.h"
#include "common/stage_tiling.h"
#include "../op_kernel/chunk_kda_bwd_finalize_layout.h"
#include "../op_kernel/chunk_kda_bwd_finalize_tiling_data.h"

namespace optiling {
namespace {

enum BwdFinalizeInput {
    kQ = 0,
    kK = 1,
    kV = 2,
    kGk = 3,
    kRawG = 4,
    kBeta = 5,
    kALog = 6,
    kDtBias = 7,
    kAkk = 8,
    kVNew = 9,
    kH = 10,
    kDh = 11,
    kDvScan = 12,
    kDAqk = 13,
    kDqRaw = 14,
    kQRstd = 15,
    kKRstd = 16,
    kCu = 17,
    kIndices = 18,
    kKLow = 19,
    kHLow = 20,
    kDhLow = 21
};
enum BwdFinalizeOutput { kDq = 0, kDk = 1, kDv = 2, kDbeta = 3, kDg = 4, kDaLog = 5, kDdtBias = 6 };
enum BwdFinalizeAttr {
    kScale = 0,
    kLowerBound = 1,
    kChunkSize = 2,
    kSafeGate = 3,
    kUseGate = 4,
    kUseExp2 = 5,
    kStateVFirst = 6,
    kBetaSigmoid = 7,
    kNegEigval = 8,
    kOutputLayout = 9,
    kInputLayout = 10
};

// The gradients of the gate's parameters come with the gate in the kernel.
void ExpectParameterGrads(kda::StageTiling& tiling, bool useGate, int64_t heads) {
    const kda::Operand daLog = tiling.OptionalOutput(kDaLog, "da_log");
    const kda::Operand ddtBias = tiling.OptionalOutput(kDdtBias, "ddt_bias");
    const kda::Operand outputs[] = {daLog, ddtBias};
    for (const kda::Operand& output : outputs) {
        if (output.present != useGate) {
            tiling.Fail("output %s: expected %s with use_gate_in_kernel=%s, got %s",
                        output.name.c_str(), useGate ? "a tensor" : "none",
                        useGate ? "True" : "False", output.present ? "a tensor" : "none");
        }
    }
    tiling.Expect(daLog, ge::DT_FLOAT, {heads});
    tiling.Expect(ddtBias, ge::DT_FLOAT, {heads, kda::kKeyDim});
}

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    const kda::Operand q = tiling.Input(kQ, "q");
    const kda::Operand k = tiling.Input(kK, "k");
    const kda::Operand v = tiling.Input(kV, "v");
    const kda::Operand gk = tiling.Input(kGk, "gk");
    const kda::Operand rawG = tiling.Input(kRawG, "raw_g");
    const kda::Operand beta = tiling.Input(kBeta, "beta");
    const kda::Operand aLog = tiling.OptionalInput(kALog, "a_log");
    const kda::Operand dtBias = tiling.OptionalInput(kDtBias, "dt_bias");
    const kda::Operand akk = tiling.Input(kAkk, "akk");
    const kda::Operand vNew = tiling.Input(kVNew, "v_new");
    const kda::Operand h = tiling.Input(kH, "h");
    const kda::Operand dh = tiling.Input(kDh, "dh");
    const kda::Operand dvScan = tiling.Input(kDvScan, "dv_scan");
    const kda::Operand dAqk = tiling.Input(kDAqk, "d_aqk");
    const kda::Operand dqRaw = tiling.Input(kDqRaw, "dq_raw");
    const kda::Operand qRstd = tiling.OptionalInput(kQRstd, "q_rstd");
    const kda::Operand kRstd = tiling.OptionalInput(kKRstd, "k_rstd");
    const kda::Operand kLow = tiling.OptionalInput(kKLow, "k_low");
    const kda::Operand hLow = tiling.OptionalInput(kHLow, "h_low");
    const kda::Operand dhLow = tiling.OptionalInput(kDhLow, "dh_low");
    const kda::Operand dq = tiling.Output(kDq, "dq");
    const kda::Operand dk = tiling.Output(kDk, "dk");
    const kda::Operand dv = tiling.Output(kDv, "dv");
    const kda::Operand dbeta = tiling.Output(kDbeta, "dbeta");
    const kda::Operand dg = tiling.Output(kDg, "dg");

    const float scale = tiling.Float(kScale, "scale");
    const float lowerBound = tiling.Float(kLowerBound, "lower_bound");
    const bool betaSigmoid = tiling.Bool(kBetaSigmoid, "use_beta_sigmoid_in_kernel");
    const bool negEigval = tiling.Bool(kNegEigval, "allow_neg_eigval");
    const bool useGate = tiling.Bool(kUseGate, "use_gate_in_kernel");
    const bool safeGate = tiling.Bool(kSafeGate, "safe_gate");
    const int32_t gateKind = kda::GateKindOf(useGate, safeGate);
    kda::ExpectScale(tiling, scale);
    kda::ExpectLowerBound(tiling, safeGate, lowerBound);
    kda::ExpectBetaOptions(tiling, betaSigmoid, negEigval);
    kda::ExpectGateOptions(tiling, useGate, aLog);
    kda::ExpectBothOrNone(tiling, qRstd, kRstd);
    kda::ExpectBothOrNone(tiling, hLow, dhLow);
    const kda::Layout out = tiling.ReadLayout(kOutputLayout, "output_layout");
    const kda::Layout in =
        tiling.ReadLayout(kInputLayout, "input_layout", kOutputLayout, "output_layout");

    kda::CallSizes sizes = tiling.Sizes(q, kda::CacheLayout(out.rank3));
    const ge::DataType io = tiling.IoType(q);
    const int64_t keyHeads = sizes.keyHeads;
    const kda::Dims keyRows = kda::CacheDims(sizes, keyHeads, kda::kKeyDim);
    tiling.Expect(q, io, keyRows);
    tiling.Expect(k, io, keyRows);
    sizes.valueHeads = tiling.Sizes(v, in).valueHeads;
    const int64_t heads = sizes.valueHeads;
    kda::ChunkGeometry geometry =
        tiling.Geometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCu, kIndices);
    geometry.ioIsHalf = io == ge::DT_FLOAT16 ? 1 : 0;
    const int64_t keyDim = kda::kKeyDim;
    const int64_t valueDim = kda::kValueDim;
    const kda::Dims cacheRows = kda::CacheDims(sizes, heads, keyDim);  // K = V
    const kda::Dims scores = kda::CacheDims(sizes, heads, kda::kChunkRows);
    const kda::Dims states = {sizes.batch, geometry.chunksPerBatchRow, heads, keyDim, valueDim};
    tiling.Expect(v, io, kda::RowDims(in, sizes, heads, valueDim));
    tiling.Expect(gk, ge::DT_FLOAT, cacheRows);
    tiling.ExpectType(rawG, io, ge::DT_FLOAT);
    tiling.ExpectShape(rawG, kda::RowDims(in, sizes, heads, keyDim));
    tiling.Expect(beta, ge::DT_FLOAT, kda::CacheDims(sizes, heads));
    kda::ExpectGateParameters(tiling, aLog, dtBias, heads);
    tiling.Expect(akk, io, scores);
    tiling.Expect(vNew, io, cacheRows);
    tiling.Expect(h, io, states);
    tiling.Expect(dh, io, states);
    tiling.Expect(dvScan, io, cacheRows);
    tiling.Expect(dAqk, ge::DT_FLOAT, scores);
    tiling.Expect(dqRaw, ge::DT_FLOAT, cacheRows);
    tiling.Expect(qRstd, ge::DT_FLOAT, kda::CacheDims(sizes, keyHeads));
    tiling.Expect(kRstd, ge::DT_FLOAT, kda::CacheDims(sizes, keyHeads));
    tiling.Expect(kLow, io, keyRows);
    tiling.Expect(hLow, io, states);
    tiling.Expect(dhLow, io, states);
    const kda::Dims outKeyRows = kda::RowDims(out, sizes, keyHeads, keyDim);
    const kda::Dims outRows = kda::RowDims(out, sizes, heads, keyDim);
    tiling.Expect(dq, io, outKeyRows);
    tiling.Expect(dk, io, outKeyRows);
    tiling.Expect(dv, io, outRows);
    tiling.Expect(dbeta, ge::DT_FLOAT, kda::RowDims(out, sizes, heads));
    tiling.Expect(dg, rawG.type, outRows);
    ExpectParameterGrads(tiling, useGate, heads);

    ChunkKdaBwdFinalizeTilingData* data = tiling.Data<ChunkKdaBwdFinalizeTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    data->geometry = geometry;
    data->value = kda::RowLayout(in, sizes, heads, valueDim);
    data->gate = kda::RowLayout(in, sizes, heads, keyDim);
    data->keyGrad = kda::RowLayout(out, sizes, keyHeads, keyDim);
    data->valueGrad = kda::RowLayout(out, sizes, heads, valueDim);
    data->gateGrad = kda::RowLayout(out, sizes, heads, keyDim);
    data->betaGrad = kda::RowLayout(out, sizes, heads, 1);
    data->scale = scale;
    data->lowerBound = lowerBound;
    data->betaScale = negEigval ? 2.0f : 1.0f;
    data->gateToLog2 = kda::GateUnit(true) / kda::GateUnit(tiling.Bool(kUseExp2, "use_exp2"));
    data->gateKind = gateKind;
    data->stateVFirst = tiling.Bool(kStateVFirst, "state_v_first") ? 1 : 0;
    data->hasDtBias = dtBias.present && useGate ? 1 : 0;
    data->hasNorm = qRstd.present ? 1 : 0;
    data->hasBetaSigmoid = betaSigmoid ? 1 : 0;
    data->gateIsIo = rawG.type == io ? 1 : 0;
    // The factors around one reference reach 2^58, which float16 does not.
    data->pairsByLevels = gateKind == kda::kGateSafe && geometry.ioIsHalf == 0 ? 0 : 1;
    data->hasKeyLow = kLow.present ? 1 : 0;
    data->preciseStates = hLow.present ? 1 : 0;
    const int64_t tasks = geometry.totalChunks * keyHeads;
    const int64_t partialBytes =
        geometry.totalChunks * heads * kda::bwd_finalize::kPartialFloats * sizeof(float);
    // Without a task there still are da_log and ddt_bias to write, one head an AIV.
    const int64_t blocks = tiling.BlockCount(tasks > 0 ? tasks : (heads + 1) / 2);
    data->slotBytes = data->pairsByLevels ? kda::bwd_finalize::Slot::kBytesWithLevels
                                          : kda::bwd_finalize::Slot::kBytes;
    data->blockBytes =
        kda::bwd_finalize::kRingDepth * data->slotBytes + kda::bwd_finalize::GroupSum::kBytes;
    tiling.Launch(blocks, data->blockBytes, partialBytes, true);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::Layout layout = kda::Layout();
    kda::CallSizes keys = kda::CallSizes();
    kda::CallSizes sizes = kda::CallSizes();
    if (!kda::InferLayout(context, kOutputLayout, &layout) ||
        !kda::InferSizes(context, kQ, kda::CacheLayout(layout.rank3), &keys) ||
        !kda::InferSizes(context, kGk, kda::CacheLayout(layout.rank3), &sizes)) {
        return ge::GRAPH_FAILED;
    }
    const int64_t heads = sizes.valueHeads;
    kda::Infer(context, kDq, kda::RowDims(layout, keys, keys.keyHeads, kda::kKeyDim));
    kda::Infer(context, kDk, kda::RowDims(layout, keys, keys.keyHeads, kda::kKeyDim));
    kda::Infer(context, kDv, kda::RowDims(layout, sizes, heads, kda::kValueDim));
    kda::Infer(context, kDbeta, kda::RowDims(layout, sizes, heads));
    kda::Infer(context, kDg, kda::RowDims(layout, sizes, heads, kda::kKeyDim));
    kda::Infer(context, kDaLog, {heads});
    kda::Infer(context, kDdtBias, {heads, kda::kKeyDim});
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(kDq, context->GetInputDataType(kQ));
    context->SetOutputDataType(kDk, context->GetInputDataType(kK));
    context->SetOutputDataType(kDv, context->GetInputDataType(kV));
    context->SetOutputDataType(kDbeta, ge::DT_FLOAT);
    context->SetOutputDataType(kDg, context->GetInputDataType(kRawG));
    // These fail where the output is absent.
    context->SetOutputDataType(kDaLog, ge::DT_FLOAT);
    context->SetOutputDataType(kDdtBias, ge::DT_FLOAT);
    return ge::GRAPH_SUCCESS;
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaBwdFinalize : public OpDef {
public:
    explicit ChunkKdaBwdFinalize(const char* name) : OpDef(name) {
        // Two columns of each type: raw_g (and dg) like q or in fp32.
        const std::vector<ge::DataType> io = kda::WithHalf({ge::DT_BF16, ge::DT_BF16});
        const std::vector<ge::DataType> fp32(io.size(), ge::DT_FLOAT);
        const std::vector<ge::DataType> gate = kda::WithHalf({ge::DT_BF16, ge::DT_FLOAT});
        kda::Required(Input("q"), io);
        kda::Required(Input("k"), io);
        kda::Required(Input("v"), io);
        kda::Required(Input("gk"), fp32);
        kda::Required(Input("raw_g"), gate);
        kda::Required(Input("beta"), fp32);
        kda::Optional(Input("a_log"), fp32);
        kda::Optional(Input("dt_bias"), fp32);
        kda::Required(Input("akk"), io);
        kda::Required(Input("v_new"), io);
        kda::Required(Input("h"), io);
        kda::Required(Input("dh"), io);
        kda::Required(Input("dv_scan"), io);
        kda::Required(Input("d_aqk"), fp32);
        kda::Required(Input("dq_raw"), fp32);
        kda::Optional(Input("q_rstd"), fp32);
        kda::Optional(Input("k_rstd"), fp32);
        kda::OptionalIndices(Input("cu_seqlens"), io.size());
        kda::OptionalIndices(Input("chunk_indices"), io.size());
        kda::Optional(Input("k_low"), io);
        kda::Optional(Input("h_low"), io);
        kda::Optional(Input("dh_low"), io);
        kda::Required(Output("dq"), io);
        kda::Required(Output("dk"), io);
        kda::Required(Output("dv"), io);
        kda::Required(Output("dbeta"), fp32);
        kda::Required(Output("dg"), gate);
        kda::Optional(Output("da_log"), fp32);
        kda::Optional(Output("ddt_bias"), fp32);
        Attr("scale").AttrType(REQUIRED).Float();
        Attr("lower_bound").AttrType(OPTIONAL).Float(-5.0f);
        Attr("chunk_size").AttrType(OPTIONAL).Int(64);
        Attr("safe_gate").AttrType(OPTIONAL).Bool(true);
        Attr("use_gate_in_kernel").AttrType(OPTIONAL).Bool(true);
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        Attr("use_beta_sigmoid_in_kernel").AttrType(OPTIONAL).Bool(false);
        Attr("allow_neg_eigval").AttrType(OPTIONAL).Bool(false);
        Attr("output_layout").AttrType(OPTIONAL).String("BNSD");
        Attr("input_layout").AttrType(OPTIONAL).String("BNSD");
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaBwdFinalize);
}  // namespace ops
