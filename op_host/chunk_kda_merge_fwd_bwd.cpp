// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Stage 9: composes the segment summaries of other ranks onto this rank's state, in place.
#include "common/op_params.h"
#include "common/stage_tiling.h"
#include "../op_kernel/chunk_kda_merge_fwd_bwd_tiling_data.h"

namespace optiling {
namespace {

enum MergeInput { kState = 0, kSummaries = 1 };
enum MergeAttr { kRanks = 0, kRank = 1, kForward = 2, kStateVFirst = 3 };
const int64_t kTasksInFlight = 2;

// Column slices of a state while heads alone leave cores idle: 1, 2 or 4 (32 columns).
int64_t Slices(int64_t heads, int64_t cores) {
    int64_t slices = 1;
    while (slices < 4 && heads * slices * 2 <= cores) {
        slices *= 2;
    }
    return slices;
}

ge::graphStatus TilingFunc(gert::TilingContext* context) {
    kda::StageTiling tiling(context);
    const kda::Operand state = tiling.Input(kState, "state");
    const kda::Operand summaries = tiling.Input(kSummaries, "summaries");
    const int64_t count = tiling.Int(kRanks, "pre_or_post_num_ranks");
    const int64_t rank = tiling.Int(kRank, "rank");
    const bool forward = tiling.Bool(kForward, "forward");
    const bool vFirst = tiling.Bool(kStateVFirst, "state_v_first");

    tiling.ExpectRank(state, 3);
    const int64_t heads = state.Dim(0);
    tiling.Expect(state, ge::DT_FLOAT, {heads, kda::kKeyDim, kda::kValueDim});
    tiling.ExpectRank(summaries, 4);
    const int64_t ranks = summaries.Dim(0);
    tiling.Expect(summaries, ge::DT_FLOAT,
                  {ranks, heads, kda::kKeyDim, kda::kValueDim + kda::kKeyDim});
    if (rank < 0 || rank >= ranks) {
        tiling.Fail("rank: expected 0 <= rank < %lld (the summaries), got %lld",
                    static_cast<long long>(ranks), static_cast<long long>(rank));
    }
    const int64_t neighbours = !tiling.Ok() ? 0 : forward ? rank : ranks - 1 - rank;
    if (count < 0 || count > neighbours) {
        tiling.Fail(
            "pre_or_post_num_ranks: expected 0 to %lld, got %lld: %lld ranks are %s rank "
            "%lld",
            static_cast<long long>(neighbours), static_cast<long long>(count),
            static_cast<long long>(neighbours), forward ? "before" : "after",
            static_cast<long long>(rank));
    }
    ChunkKdaMergeFwdBwdTilingData* data = tiling.Data<ChunkKdaMergeFwdBwdTilingData>();
    if (!tiling.Ok()) {
        return ge::GRAPH_FAILED;
    }
    data->heads = heads;
    data->firstRank = forward ? rank - count : rank + count;
    data->rankStep = forward ? 1 : -1;
    data->rankCount = count;
    data->slices = Slices(heads, tiling.CoreCount());
    data->sliceColumns = kda::kValueDim / data->slices;
    data->keyDim = kda::kKeyDim;
    data->valueDim = kda::kValueDim;
    data->stateVFirst = vFirst ? 1 : 0;
    data->reserved = 0;
    const int64_t productBytes = kda::kKeyDim * data->sliceColumns * sizeof(float);
    const int64_t tasks = count == 0 ? 0 : heads * data->slices;
    tiling.Launch(tiling.BlockCount(tasks), kTasksInFlight * productBytes, 0, false);
    return tiling.Ok() ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(kState);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(kState));
}

}  // namespace
}  // namespace optiling

namespace ops {
class ChunkKdaMergeFwdBwd : public OpDef {
public:
    explicit ChunkKdaMergeFwdBwd(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> fp32 = {ge::DT_FLOAT};
        kda::Required(Input("state"), fp32);
        kda::Required(Input("summaries"), fp32);
        kda::Required(Output("state"), fp32);
        Attr("pre_or_post_num_ranks").AttrType(REQUIRED).Int();
        Attr("rank").AttrType(REQUIRED).Int();
        Attr("forward").AttrType(OPTIONAL).Bool(true);
        Attr("state_v_first").AttrType(OPTIONAL).Bool(false);
        SetInferShape(optiling::InferShape);
        SetInferDataType(optiling::InferDataType);
        AICore().SetTiling(optiling::TilingFunc);
        kda::ForAscend910B(AICore());
    }
};
OP_ADD(ChunkKdaMergeFwdBwd);
}  // namespace ops
