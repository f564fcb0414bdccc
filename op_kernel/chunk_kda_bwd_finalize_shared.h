// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What the cube and the vector part of bwd_finalize agree on: tasks, workspace slots, flags.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_SHARED_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_SHARED_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_layout.h"
#include "chunk_kda_bwd_finalize_tiling_data.h"
#include "common/block_decay.h"
#include "common/chunk_index.h"
#include "common/cross_core.h"
#include "common/gate_kind.h"

namespace kda {
namespace bwd_finalize {

// Cross-core flags, one an edge.
constexpr uint16_t kInverseRawReady = 0;   // AIC -> AIV: X v^T + dw kt^T            (C2)
constexpr uint16_t kScoreRawReady = 1;     // AIC -> AIV: -Akk^T dA Akk^T            (C3)
constexpr uint16_t kPairsReady = 2;        // AIC -> AIV: everything for V4          (C4)
constexpr uint16_t kOperandsReady = 3;     // AIV -> AIC: operands                   (V1)
constexpr uint16_t kInverseGradReady = 4;  // AIV -> AIC: -dA                        (V2)
constexpr uint16_t kScoreGradReady = 5;    // AIV -> AIC: dL                         (V3)
constexpr uint16_t kSumsReady = 6;         // AIV <-> AIV: row sums over half of the channels

struct Pointers {
    GM_ADDR q;
    GM_ADDR k;
    GM_ADDR v;
    GM_ADDR gk;
    GM_ADDR rawG;
    GM_ADDR beta;
    GM_ADDR aLog;
    GM_ADDR dtBias;
    GM_ADDR akk;
    GM_ADDR h;
    GM_ADDR dh;
    GM_ADDR dvScan;
    GM_ADDR dAqk;
    GM_ADDR dqRaw;
    GM_ADDR qRstd;
    GM_ADDR kRstd;
    GM_ADDR cuSeqlens;
    GM_ADDR chunkIndices;
    GM_ADDR kLow;
    GM_ADDR hLow;
    GM_ADDR dhLow;
    GM_ADDR dq;
    GM_ADDR dk;
    GM_ADDR dv;
    GM_ADDR dbeta;
    GM_ADDR dg;
    GM_ADDR daLog;
    GM_ADDR ddtBias;
    GM_ADDR workspace;
};

// A task is (chunk, key head); its steps are the value heads of that key head, one after the other
// on one block: dq and dk of a key head are sums over them.
__aicore__ inline int64_t StepCount(const ChunkIndex& index, const ChunkGeometry& geometry) {
    const int64_t tasks = index.ChunkTaskCount(geometry.keyHeads);
    const int64_t block = BlockOfCore();
    const int64_t blocks = AscendC::GetBlockNum();
    return block < tasks ? (tasks - block + blocks - 1) / blocks * geometry.headGroup : 0;
}

// The place of a step's chunk, with its value head.
__aicore__ inline ChunkPlace LocateStep(const ChunkIndex& index, const ChunkGeometry& geometry,
                                        int64_t step) {
    const int64_t group = geometry.headGroup;
    ChunkPlace place =
        index.LocateTask(BlockOfCore() + step / group * AscendC::GetBlockNum(), geometry.keyHeads);
    place.head = place.head * group + step % group;
    return place;
}

// This block's ring of workspace slots; a step's areas.
class SlotRing {
public:
    __aicore__ inline SlotRing(const ChunkKdaBwdFinalizeTilingData& tiling, GM_ADDR workspace)
        : base_(workspace + BlockOfCore() * tiling.blockBytes), slotBytes_(tiling.slotBytes) {}

    template <typename T>
    __aicore__ inline AscendC::GlobalTensor<T> Area(int64_t step, int64_t area) const {
        AscendC::GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(
            reinterpret_cast<__gm__ T*>(base_ + (step % kRingDepth) * slotBytes_ + area));
        return tensor;
    }

    // Behind the ring: sums of dq and dk over the value heads of a task so far, for this AIV alone.
    __aicore__ inline AscendC::GlobalTensor<float> GroupSum(int64_t area) const {
        AscendC::GlobalTensor<float> tensor;
        tensor.SetGlobalBuffer(
            reinterpret_cast<__gm__ float*>(base_ + kRingDepth * slotBytes_ + area));
        return tensor;
    }

private:
    GM_ADDR base_;
    int64_t slotBytes_;
};

// The steps' partial sums, behind the slots of all blocks.
__aicore__ inline AscendC::GlobalTensor<float> PartialSums(
    const ChunkKdaBwdFinalizeTilingData& tiling, GM_ADDR workspace) {
    AscendC::GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(
        reinterpret_cast<__gm__ float*>(workspace + AscendC::GetBlockNum() * tiling.blockBytes));
    return tensor;
}

// Areas indexed by pairs of row blocks (I, J <= I) hold block I's pairs one after the other,
// beginning at block row PairRow(I).
__aicore__ inline constexpr uint32_t PairRow(uint32_t block) {
    return block * (block + 1) / 2;
}

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_SHARED_H
