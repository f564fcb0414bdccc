// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What the vector and the cube half of fwd_prepare agree on: operands, flags, and which unit each
// vector core works on in each round.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_UNITS_H
#define KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_UNITS_H

#include "kernel_operator.h"
#include "chunk_kda_fwd_prepare_tiling_data.h"
#include "common/chunk_index.h"
#include "common/cross_core.h"

namespace kda {

struct FwdPrepareOperands {
    GM_ADDR q;
    GM_ADDR k;
    GM_ADDR v;
    GM_ADDR g;
    GM_ADDR beta;
    GM_ADDR aLog;
    GM_ADDR dtBias;
    GM_ADDR cuSeqlens;
    GM_ADDR chunkIndices;
    GM_ADDR gk;
    GM_ADDR aqk;
    GM_ADDR akk;
    GM_ADDR w;
    GM_ADDR u;
    GM_ADDR qg;
    GM_ADDR kg;
    GM_ADDR qgScaled;
    GM_ADDR qHat;
    GM_ADDR kHat;
    GM_ADDR qRstd;
    GM_ADDR kRstd;
    GM_ADDR betaEff;
    GM_ADDR kgLow;
    GM_ADDR kHatLow;
    GM_ADDR workspace;  // of this block
};

// Whether the decay factors are those of common/block_decay.h, else those of common/level_decay.h.
// The former reach 2^54, which bfloat16 can hold and float16 cannot: it takes the latter, all of
// them at most one, under every gate.
template <typename T>
__aicore__ inline bool FwdPrepareIsBounded(const ChunkKdaFwdPrepareTilingData& tiling) {
    return !AscendC::IsSameType<T, half>::value && tiling.gateKind == kGateSafe;
}

// Row and column operands, k 2^gk: written by the vector cores, free again when w and u are under
// way. Scores and the inverse need no credits of their own: the slot is theirs as long.
using OperandRing = VectorToCubeRing<0, 1, kFwdPrepareDepth>;
using ScoreFlag = CubeToVectorFlag<2>;
using InverseFlag = VectorToCubeFlag<3>;

struct FwdPrepareUnit {
    ChunkPlace place;
    int64_t keyHead;
    int64_t valueHead;
    int64_t group;  // which of the value heads that share the key head
};

// A task is (sequence, chunk, key head); its units are the value heads of that key head, one after
// the other. In each round the two vector cores of a block hold two neighbouring tasks.
class FwdPrepareUnits {
public:
    __aicore__ inline FwdPrepareUnits(const ChunkGeometry& geometry, const ChunkIndex& index,
                                      int64_t unitBytes)
        : geometry_(geometry),
          index_(index),
          unitBytes_(unitBytes),
          tasks_(index.ChunkTaskCount(geometry.keyHeads)) {
        const int64_t blocks = AscendC::GetBlockNum();
        const int64_t pairs = (tasks_ + 1) / 2;
        block_ = BlockOfCore();
        blocks_ = blocks;
        rounds_ = pairs > block_ ? ((pairs - block_ - 1) / blocks + 1) * geometry.headGroup : 0;
    }

    __aicore__ inline int64_t Rounds() const { return rounds_; }

    // False when that vector core has no unit in that round (an odd number of tasks).
    __aicore__ inline bool Find(int64_t round, int64_t sub, FwdPrepareUnit& unit) const {
        const int64_t group = geometry_.headGroup;
        const int64_t task = (round / group * blocks_ + block_) * 2 + sub;
        if (task >= tasks_) {
            return false;
        }
        unit.place = index_.LocateTask(task, geometry_.keyHeads);
        unit.group = round % group;
        unit.keyHead = unit.place.head;
        unit.valueHead = unit.keyHead * group + unit.group;
        return true;
    }

    // Byte offset of a unit's place in the block's workspace.
    __aicore__ inline int64_t Space(int64_t round, int64_t sub) const {
        return (round % kFwdPrepareDepth * 2 + sub) * unitBytes_;
    }

private:
    const ChunkGeometry& geometry_;
    const ChunkIndex& index_;
    int64_t unitBytes_;
    int64_t tasks_;
    int64_t block_;
    int64_t blocks_;
    int64_t rounds_;
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_FWD_PREPARE_UNITS_H
