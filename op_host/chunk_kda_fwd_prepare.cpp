// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 1: everything of a chunk that does not depend on the state.
#include <cmath>

#include "common/gate_tiling.h"
#include "common/infer.h"
#include "common/op_params.h"
#include "common/rules.h"
#include "common/stage_tiling.h"
#include "../op_kernel/chunk_kda_fwd_prepare_tiling_data.h"

namespace optiling {
namespace {

enum FwdPrepareInput {
    kQ = 0,
    kK = 1,
    kV = 2,
    kG = 3,
    kBeta = 4,
    kALog = 5,
    kDtBias = 6,
    kCu = 7,
    kIndices = 8
};
enum FwdPrepareOutput {
    kGk = 0,
    kAqk = 1,
    kAkk = 2,
    kW = 3,
    kU = 4,
    kQg = 5,
    kKg = 6,
    kQgScaled = 7,
    kQHat = 8,
    kKHat = 9,
    kQRstd = 10,
    kKRstd = 11,
    kBetaEff = 12,
    kKgLow = 13,
    kKHatLow = 14
};
enum FwdPrepareAttr {
    kScale = 0,
    kChunkSize = 1,
    kLayout = 2,
    kEpsilon = 3,
    kUseL2Norm = 4,
    kUseGate = 5,
    kUseBetaSigmoid = 6,
    kAllowNegEigval = 7,
    kSafeGate = 8,
    kLowerBound = 9,
    kUseExp2 = 10,
    kBackwardMode = 11,
    kPreciseRelay = 12
};

// Which optional outputs backward_mode asks for.
struct Selection {
    bool akk;
    bool qg;
    bool hatted;
};

bool Select(const std::string& mode, Selection& selection) {
    selection.akk = mode == "forward" || mode == "save";
    selection.qg = mode == "save";
    selection.hatted = mode == "recompute" || mode == "save";
    return selection.akk || selection.hatted || mode == "none";
}

void ExpectOutput(kda::StageTiling& tiling, size_t index, const char* name, bool wanted,
                  ge::DataType type, const kda::Dims& dims) {
    const kda::Operand output = tiling.OptionalOutput(index, name);
    if (wanted && !output.present) {
        tiling.Fail(
            "output %s is required by backward_mode, the norm attribute or precise_relay, got none",
            name);
    }
    if (!wanted && output.present) {
        tiling.Fail(
            "output %s: expected none, as backward_mode, the norm attribute and precise_relay "
            "leave "
            "it out, got shape %s",
            name, kda::DimsText(output.dims).c_str());
    }
    tiling.Expect(output, type, dims);
}

void ExpectOptions(kda::StageTiling& tiling, const kda::Operand& aLog) {
    kda::ExpectScale(tiling, tiling.Float(kScale, "scale"));
    kda::ExpectEpsilon(tiling, tiling.Float(kEpsilon, "epsilon"));
    kda::ExpectLowerBound(tiling, tiling.Bool(kSafeGate, "safe_gate"),
                          tiling.Float(kLowerBound, "lower_bound"));
    kda::ExpectBetaOptions(tiling, tiling.Bool(kUseBetaSigmoid, "use_beta_sigmoid_in_kernel"),
                           tiling.Bool(kAllowNegEigval, "allow_neg_eigval"));
    kda::ExpectGateOptions(tiling, tiling.Bool(kUseGate, "use_gate_in_kernel"), aLog);
}

// geometry is set.
void SetGate(ChunkKdaFwdPrepareTilingData& data, int32_t kind, float lowerBound, bool useExp2) {
    data.gateKind = kind;
    data.unitBytes = kind == kda::kGateSafe && data.geometry.ioIsHalf == 0
                         ? kda::FwdPrepareSpace::kBoundedBytes
                         : kda::FwdPrepareSpace::kUnboundedBytes;
    data.gateUnit = kda::GateUnit(useExp2);
    data.gateFactor = kda::GateFactor(useExp2);
    data.gateBound = (kind == kda::kGateSafe ? lowerBound : kda::kGateFloor) * data.gateUnit;
    // Half of what gk can fall within a block of 16 rows, as a whole power of two: the operands of
    // a block's first row are then as good as not scaled.
    data.referenceShift = std::round(-7.5f * lowerBound * kda::GateUnit(true)) *
                          (useExp2 ? 1.0f : kda::GateFactor(true));
}

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    const kda::Operand q = tiling.Input(kQ, "q");
    const kda::Operand k = tiling.Input(kK, "k");
    const kda::Operand v = tiling.Input(kV, "v");
    const kda::Operand g = tiling.Input(kG, "g");
    const kda::Operand beta = tiling.Input(kBeta, "beta");
    const kda::Operand aLog = tiling.OptionalInput(kALog, "a_log");
    const kda::Operand dtBias = tiling.OptionalInput(kDtBias, "dt_bias");
    const kda::Layout layout = tiling.ReadLayout(kLayout, "layout");
    const std::string mode = tiling.String(kBackwardMode, "backward_mode");
    Selection selection = Selection();
    if (!Select(mode, selection)) {
        tiling.Fail("backward_mode: expected one of none, forward, recompute, save, got '%s'",
                    mode.c_str());
    }
    ExpectOptions(tiling, aLog);

    kda::CallSizes sizes = tiling.Sizes(q, layout);
    const int64_t keyHeads = sizes.keyHeads;
    const int64_t width = kda::kKeyDim;
    const kda::Dims keyRows = kda::RowDims(layout, sizes, keyHeads, width);
    const ge::DataType io = tiling.IoType(q);
    tiling.ExpectShape(q, keyRows);
    tiling.Expect(k, io, keyRows);
    sizes.valueHeads = tiling.Sizes(v, layout).valueHeads;
    const int64_t valueHeads = sizes.valueHeads;
    kda::ChunkGeometry geometry =
        tiling.Geometry(sizes, tiling.Int(kChunkSize, "chunk_size"), kCu, kIndices);
    geometry.ioIsHalf = io == ge::DT_FLOAT16;
    const kda::Dims valueRows = kda::RowDims(layout, sizes, valueHeads, width);
    const kda::Dims values = kda::RowDims(layout, sizes, valueHeads);
    tiling.Expect(v, io, valueRows);
    tiling.ExpectType(g, io, ge::DT_FLOAT);
    tiling.ExpectShape(g, valueRows);
    tiling.ExpectType(beta, io, ge::DT_FLOAT);
    tiling.ExpectShape(beta, values);
    kda::ExpectGateParameters(tiling, aLog, dtBias, valueHeads);

    const kda::Dims keyCache = kda::CacheDims(sizes, keyHeads, width);
    const kda::Dims cache = kda::CacheDims(sizes, valueHeads, width);
    const kda::Dims scores = kda::CacheDims(sizes, valueHeads, kda::kChunkRows);
    const bool precise = tiling.Bool(kPreciseRelay, "precise_relay");
    const bool normalize = tiling.Bool(kUseL2Norm, "use_qk_l2norm_in_kernel");
    tiling.Expect(tiling.Output(kGk, "gk"), ge::DT_FLOAT, cache);
    tiling.Expect(tiling.Output(kAqk, "aqk"), io, scores);
    ExpectOutput(tiling, kAkk, "akk", selection.akk, io, scores);
    tiling.Expect(tiling.Output(kW, "w"), io, cache);
    tiling.Expect(tiling.Output(kU, "u"), precise ? ge::DT_FLOAT : io, cache);
    ExpectOutput(tiling, kQg, "qg", selection.qg, io, cache);
    tiling.Expect(tiling.Output(kKg, "kg"), io, cache);
    tiling.Expect(tiling.Output(kQgScaled, "qg_scaled"), io, cache);
    ExpectOutput(tiling, kQHat, "q_hat", selection.hatted, io, keyCache);
    ExpectOutput(tiling, kKHat, "k_hat", selection.hatted, io, keyCache);
    const kda::Dims keyValues = kda::CacheDims(sizes, keyHeads);
    ExpectOutput(tiling, kQRstd, "q_rstd", selection.hatted && normalize, ge::DT_FLOAT, keyValues);
    ExpectOutput(tiling, kKRstd, "k_rstd", selection.hatted && normalize, ge::DT_FLOAT, keyValues);
    ExpectOutput(tiling, kBetaEff, "beta_eff", selection.hatted, ge::DT_FLOAT,
                 kda::CacheDims(sizes, valueHeads));
    ExpectOutput(tiling, kKgLow, "kg_low", precise, io, cache);
    ExpectOutput(tiling, kKHatLow, "k_hat_low", precise && selection.hatted && normalize, io,
                 keyCache);

    ChunkKdaFwdPrepareTilingData* data = tiling.Data<ChunkKdaFwdPrepareTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    data->geometry = geometry;
    data->keyLayout = kda::RowLayout(layout, sizes, keyHeads, width);
    data->valueLayout = kda::RowLayout(layout, sizes, valueHeads, width);
    data->gateLayout = data->valueLayout;
    data->betaLayout = kda::RowLayout(layout, sizes, valueHeads, 1);
    data->scale = tiling.Float(kScale, "scale");
    data->epsilon = tiling.Float(kEpsilon, "epsilon");
    SetGate(*data,
            kda::GateKindOf(tiling.Bool(kUseGate, "use_gate_in_kernel"),
                            tiling.Bool(kSafeGate, "safe_gate")),
            tiling.Float(kLowerBound, "lower_bound"), tiling.Bool(kUseExp2, "use_exp2"));
    data->gateIsFloat = g.type == ge::DT_FLOAT;
    data->betaIsFloat = beta.type == ge::DT_FLOAT;
    data->hasDtBias = dtBias.present && tiling.Bool(kUseGate, "use_gate_in_kernel");
    data->normalize = normalize;
    data->betaSigmoid = tiling.Bool(kUseBetaSigmoid, "use_beta_sigmoid_in_kernel");
    data->betaTop = tiling.Bool(kAllowNegEigval, "allow_neg_eigval") ? 2.0f : 1.0f;
    data->saveAkk = selection.akk;
    data->saveQg = selection.qg;
    data->saveHatted = selection.hatted;
    data->preciseRelay = precise;
    // Rates above 1 make long alternating sums of the rows of Akk diag(beta), and what rounding
    // takes from them would grow from chunk to chunk.
    data->splitInverse = precise || data->betaSigmoid == 0 || data->betaTop > 1.0f;
    data->unitBytes += data->splitInverse ? kda::FwdPrepareSpace::kBetaInverseLowBytes : 0;
    // A block works on pairs of tasks, one for each of its vector cores.
    const int64_t pairs = (geometry.totalChunks * keyHeads + 1) / 2;
    tiling.Launch(tiling.BlockCount(pairs), kda::kFwdPrepareUnitsPerBlock * data->unitBytes, 0,
                  false);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

// Head-major caches from q and v in `layout`; the optional outputs that a mode leaves out get the
// shape they would have.
ge::graphStatus InferShape(gert::InferShapeContext* context) {
    kda::Layout layout = kda::Layout();
    kda::CallSizes keys = kda::CallSizes();
    kda::CallSizes values = kda::CallSizes();
    if (!kda::InferLayout(context, kLayout, &layout) ||
        !kda::InferSizes(context, kQ, layout, &keys) ||
        !kda::InferSizes(context, kV, layout, &values)) {
        return ge::GRAPH_FAILED;
    }
    for (size_t i = 0; i <= kKHatLow; ++i) {
        const bool ofKeys = (i >= kQHat && i <= kKRstd) || i == kKHatLow;
        kda::Dims dims = kda::CacheDims(keys, ofKeys ? keys.keyHeads : values.valueHeads);
        if (i == kAqk || i == kAkk) {
            dims.push_back(kda::kChunkRows);
        } else if (i < kQRstd || i >= kKgLow) {
            dims.push_back(i == kU ? kda::kValueDim : kda::kKeyDim);
        }
        kda::Infer(context, i, dims);
    }
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    const bool* precise = context->GetAttrs()->GetAttrPointer<bool>(kPreciseRelay);
    for (size_t i = 0; i <= kKHatLow; ++i) {
        const bool isFloat = i == kGk || (i >= kQRstd && i <= kBetaEff) ||
                             (i == kU && precise != nullptr && *precise);
        context->SetOutputDataType(i, isFloat ? ge::DT_FLOAT : context->GetInputDataType(kQ));
    }
    return ge::GRAPH_SUCCESS;
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaFwdPrepare : public OpDef {
public:
    explicit ChunkKdaFwdPrepare(const char* name) : OpDef(name) {
        // One column for each dtype of g, beta and u, then the same with float16.
        const size_t combinations = 8;
        const size_t columns = 2 * combinations;
        const std::vector<ge::DataType> io =
            kda::WithHalf(std::vector<ge::DataType>(combinations, ge::DT_BF16));
        const std::vector<ge::DataType> fp32(columns, ge::DT_FLOAT);
        kda::Required(Input("q"), io);
        kda::Required(Input("k"), io);
        kda::Required(Input("v"), io);
        std::vector<ge::DataType> g, beta, u;
        for (size_t i = 0; i < combinations; ++i) {
            g.push_back(i / 2 % 2 == 0 ? ge::DT_BF16 : ge::DT_FLOAT);
            beta.push_back(i % 2 == 0 ? ge::DT_BF16 : ge::DT_FLOAT);
            u.push_back(i / 4 == 0 ? ge::DT_BF16 : ge::DT_FLOAT);
        }
        kda::Required(Input("g"), kda::WithHalf(g));
        kda::Required(Input("beta"), kda::WithHalf(beta));
        kda::Optional(Input("a_log"), fp32);
        kda::Optional(Input("dt_bias"), fp32);
        kda::OptionalIndices(Input("cu_seqlens"), columns);
        kda::OptionalIndices(Input("chunk_indices"), columns);
        kda::Required(Output("gk"), fp32);
        kda::Required(Output("aqk"), io);
        kda::Optional(Output("akk"), io);
        kda::Required(Output("w"), io);
        kda::Required(Output("u"), kda::WithHalf(u));
        kda::Optional(Output("qg"), io);
        kda::Required(Output("kg"), io);
        kda::Required(Output("qg_scaled"), io);
        kda::Optional(Output("q_hat"), io);
        kda::Optional(Output("k_hat"), io);
        kda::Optional(Output("q_rstd"), fp32);
        kda::Optional(Output("k_rstd"), fp32);
        kda::Optional(Output("beta_eff"), fp32);
        kda::Optional(Output("kg_low"), io);
        kda::Optional(Output("k_hat_low"), io);
        Attr("scale").AttrType(REQUIRED).Float();
        Attr("chunk_size").AttrType(OPTIONAL).Int(64);
        Attr("layout").AttrType(OPTIONAL).String("BNSD");
        Attr("epsilon").AttrType(OPTIONAL).Float(1e-6f);
        Attr("use_qk_l2norm_in_kernel").AttrType(OPTIONAL).Bool(false);
        Attr("use_gate_in_kernel").AttrType(OPTIONAL).Bool(false);
        Attr("use_beta_sigmoid_in_kernel").AttrType(OPTIONAL).Bool(false);
        Attr("allow_neg_eigval").AttrType(OPTIONAL).Bool(false);
        Attr("safe_gate").AttrType(OPTIONAL).Bool(false);
        Attr("lower_bound").AttrType(OPTIONAL).Float(-5.0f);
        Attr("use_exp2").AttrType(OPTIONAL).Bool(true);
        Attr("backward_mode").AttrType(OPTIONAL).String("save");
        Attr("precise_relay").AttrType(OPTIONAL).Bool(false);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaFwdPrepare);
}  // namespace ops
