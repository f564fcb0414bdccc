// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Tiling of the four state scans (op_kernel/common/state_scan.h).
#ifndef KDA_OP_HOST_COMMON_SCAN_TILING_H
#define KDA_OP_HOST_COMMON_SCAN_TILING_H

#include "gate_tiling.h"
#include "stage_tiling.h"
#include "../../op_kernel/common/state_scan_tiling.h"

namespace kda {

inline int32_t InitialKind(const Operand& initial) {
    if (!initial.present) {
        return kStateZero;
    }
    return initial.type == ge::DT_FLOAT ? kStateFp32 : kStateIo;
}

// The operands that every scan has, all head-major: [B,Hv,T,K] or [Hv,T,K], but for `base` with V.
struct ScanInputs {
    Operand k;
    Operand kLow;  // what rounding left of k; absent but in precise scans
    Operand w;
    Operand base;
    bool baseMayBeFloat;
    Operand gk;
    ge::DataType io;  // of all others, from the op's first input

    ScanInputs() : baseMayBeFloat(false), io(ge::DT_UNDEFINED) {}
};

// `first` is the op's first input; the sizes and the io type come from it.
inline CallSizes CheckScanInputs(StageTiling& tiling, const Operand& first, bool rank3,
                                 ScanInputs& inputs) {
    const CallSizes sizes = tiling.Sizes(first, CacheLayout(rank3));
    inputs.io = tiling.IoType(first);
    const Dims rows = CacheDims(sizes, sizes.valueHeads, kKeyDim);
    tiling.ExpectShape(first, rows);
    tiling.Expect(inputs.k, inputs.io, rows);
    tiling.Expect(inputs.w, inputs.io, rows);
    tiling.ExpectType(inputs.base, inputs.io, inputs.baseMayBeFloat ? ge::DT_FLOAT : inputs.io);
    tiling.ExpectShape(inputs.base, CacheDims(sizes, sizes.valueHeads, kValueDim));
    tiling.Expect(inputs.gk, ge::DT_FLOAT, rows);
    return sizes;
}
// A scan without a layout attribute: the first input's rank says whether there is a batch axis.
inline CallSizes CheckScanInputs(StageTiling& tiling, ScanInputs& inputs) {
    return CheckScanInputs(tiling, inputs.k, inputs.k.dims.size() == 3, inputs);
}

// The part of the struct that does not differ between the stages. A state is cut into 64-column
// slices only while whole states leave cores idle: every slice reads w and kg again, and a row of
// 64 floats is one full vector repeat.
inline void FillScan(StageTiling& tiling, StateScanTiling* scan, const ChunkGeometry& geometry,
                     ge::DataType io, int64_t stateColumns) {
    const int64_t heads = geometry.sequences * geometry.valueHeads;
    const int64_t whole = stateColumns / kValueDim;
    const bool narrow = heads * whole * 2 <= tiling.CoreCount();
    scan->geometry = geometry;
    scan->geometry.ioIsHalf = io == ge::DT_FLOAT16 ? 1 : 0;
    scan->sliceColumns = narrow ? kValueDim / 2 : kValueDim;
    scan->slices = stateColumns / scan->sliceColumns;
    scan->gradLayout = TokenLayout();
    scan->scale = 0.0f;
    scan->gateFactor = GateFactor(true);
    scan->initialKind = kStateZero;
    scan->storesFinal = 1;
    scan->stateVFirst = 0;
    scan->baseIsFloat = 0;
    scan->precise = 0;
    scan->reserved = 0;
}

// Workspace of one lane, W columns: projected fp32 [64,W], updated fp32 [128,W]; backward query
// fp32 [2,128,W]; for summaries, where no output holds them, states io [128,W] and y io [64,W];
// in a precise forward scan the low half of y, io [64,W].
inline int64_t StateScanLaneBytes(int64_t columns, bool backward, bool summary, bool precise) {
    return columns * (4 * (kChunkRows + kKeyDim) + (backward ? 4 * 2 * kKeyDim : 0) +
                      (summary ? 2 * (kKeyDim + kChunkRows) : 0) +
                      (precise && !backward ? 2 * kChunkRows : 0));
}

inline void LaunchScan(StageTiling& tiling, StateScanTiling* scan, bool backward, bool summary) {
    const int64_t tasks = scan->geometry.sequences * scan->geometry.valueHeads * scan->slices;
    scan->laneBytes = StateScanLaneBytes(scan->sliceColumns, backward, summary, scan->precise != 0);
    tiling.Launch(tiling.BlockCount(tasks), kScanLanes * scan->laneBytes, 0, false);
}

// The low halves of the states come with the low half of kg.
inline void ExpectLowStates(StageTiling& tiling, const ScanInputs& inputs, const Operand& low,
                            const Dims& states) {
    const Operand& kLow = inputs.kLow;
    tiling.Expect(kLow, inputs.io, inputs.k.dims);
    tiling.Expect(low, inputs.io, states);
    if (kLow.present != low.present) {
        tiling.Fail("%s: expected exactly when k_low is given, got %s", low.name.c_str(),
                    low.present ? "one without k_low" : "k_low alone");
    }
}

// With K = V a state has this shape with either of them first.
static_assert(kKeyDim == kValueDim, "the shapes below hold for state_v_first as well");
inline Dims ChunkStateDims(const ChunkGeometry& geometry) {
    return Dims{geometry.batch, geometry.chunksPerBatchRow, geometry.valueHeads, kKeyDim,
                kValueDim};
}
inline Dims SequenceStateDims(const ChunkGeometry& geometry) {
    return Dims{geometry.sequences, geometry.valueHeads, kKeyDim, kValueDim};
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_SCAN_TILING_H
