// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// UB of one AIV in bwd_finalize: queues for tiles on their way in and out, work tiles of 64 rows
// and 64 channels, and the small vectors. It fills the 184 KB that TPipe hands out almost to the
// end.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_BUFFERS_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_BUFFERS_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_decay.h"
#include "chunk_kda_bwd_finalize_layout.h"
#include "common/gate.h"
#include "common/level_decay.h"

namespace kda {
namespace bwd_finalize {

class VectorBuffers {
public:
    static constexpr int32_t kTileFloats = kChunkRows * kChannels;
    static constexpr int32_t kColumnFloats = kChunkRows * kBlockFloats;

    __aicore__ inline VectorBuffers() {}
    __aicore__ inline void Init(AscendC::TPipe& pipe, bool byLevels, float gateToLog2) {
        pipe.InitBuffer(full_, 2, kTileFloats * sizeof(float));
        pipe.InitBuffer(half_, 2, kTileFloats * kHalf);
        pipe.InitBuffer(query_, 1, kTileFloats * kHalf);
        pipe.InitBuffer(small_, 1, kColumnFloats * sizeof(float));
        pipe.InitBuffer(out_, 2, kTileFloats * kHalf);
        pipe.InitBuffer(work_, kWorkTiles * kTileFloats * sizeof(float));
        pipe.InitBuffer(vectors_, kVectorFloats * sizeof(float));
        pipe.InitBuffer(masks_, 2 * kHalfMaskBytes + (byLevels ? kLevels * LevelMasks::kBytes : 0));
        subBlock_ = static_cast<int32_t>(AscendC::GetSubBlockIdx());
        // Nothing is cleared: the parts of a vector that a short chunk does not fill are computed
        // with, never used.
        FillBlock(One(), 1.0f);
        Softplus::FillConstants(SoftplusConstants());
        decay_.Init(vectors_.Get<float>()[kDecayAt], byLevels, gateToLog2);
        MakeMasks();
        if (byLevels) {
            LevelMasks::Make(LevelMask(0), Work(1));
        }
    }

    __aicore__ inline int32_t SubBlock() const { return subBlock_; }
    __aicore__ inline int64_t FirstChannel() const { return subBlock_ * kChannels; }

    // ---- queues. 64 columns a row unless `rows` are contiguous.
    __aicore__ inline void LoadFull(const AscendC::GlobalTensor<float>& src, int32_t rows,
                                    int64_t pitch) {
        Tile tile = full_.AllocTensor<float>();
        LoadRows(tile, src, rows, kChannels, pitch);
        full_.EnQue(tile);
    }
    __aicore__ inline Tile AllocFull() { return full_.AllocTensor<float>(); }
    __aicore__ inline void EnQueFull(const Tile& tile) { full_.EnQue(tile); }
    __aicore__ inline Tile TakeFull() { return full_.DeQue<float>(); }
    __aicore__ inline void FreeFull(Tile& tile) { full_.FreeTensor(tile); }

    // Half as wide as a float: T is bfloat16_t or half.
    template <typename T>
    __aicore__ inline void LoadHalf(const AscendC::GlobalTensor<T>& src, int32_t rows,
                                    int64_t pitch) {
        auto tile = half_.template AllocTensor<T>();
        LoadRows(tile, src, rows, kChannels, pitch);
        half_.EnQue(tile);
    }
    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> AllocHalf() {
        return half_.template AllocTensor<T>();
    }
    template <typename T>
    __aicore__ inline void EnQueHalf(const AscendC::LocalTensor<T>& tile) {
        half_.EnQue(tile);
    }
    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> TakeHalf() {
        return half_.template DeQue<T>();
    }
    template <typename T>
    __aicore__ inline void FreeHalf(AscendC::LocalTensor<T>& tile) {
        half_.FreeTensor(tile);
    }

    // k, alone or as two numbers of T. What else uses the queue comes before it or behind it.
    template <typename T>
    __aicore__ inline void LoadKey(const AscendC::GlobalTensor<T>& high,
                                   const AscendC::GlobalTensor<T>& low, bool hasLow, int32_t rows) {
        LoadHalf(high, rows, kKeyDim);
        if (hasLow) {
            LoadHalf(low, rows, kKeyDim);
        }
    }
    // dst = k. The scratch tile is for the sum.
    template <typename T>
    __aicore__ inline void TakeKey(const Tile& dst, const Tile& scratch, bool hasLow,
                                   int32_t rows) {
        auto high = TakeHalf<T>();
        ToFloat<kChannels>(dst, high, rows);
        FreeHalf(high);
        if (hasLow) {
            auto low = TakeHalf<T>();
            ToFloat<kChannels>(scratch, low, rows);
            FreeHalf(low);
            TileAdd<kChannels>(dst, dst, scratch, rows);
        }
    }

    // q stays in UB as it came through a whole step; a fp32 copy would not fit.
    template <typename T>
    __aicore__ inline void LoadQuery(const AscendC::GlobalTensor<T>& src, int32_t rows,
                                     int64_t pitch) {
        auto tile = query_.template AllocTensor<T>();
        LoadRows(tile, src, rows, kChannels, pitch);
        query_.EnQue(tile);
    }
    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> TakeQuery() {
        return query_.template DeQue<T>();
    }
    template <typename T>
    __aicore__ inline void FreeQuery(AscendC::LocalTensor<T>& tile) {
        query_.FreeTensor(tile);
    }

    __aicore__ inline Tile AllocSmall() { return small_.AllocTensor<float>(); }
    __aicore__ inline void EnQueSmall(const Tile& tile) { small_.EnQue(tile); }
    __aicore__ inline Tile TakeSmall() { return small_.DeQue<float>(); }
    __aicore__ inline void FreeSmall(Tile& tile) { small_.FreeTensor(tile); }

    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> AllocOut() {
        return out_.template AllocTensor<T>();
    }
    template <typename T>
    __aicore__ inline void EnQueOut(const AscendC::LocalTensor<T>& tile) {
        out_.EnQue(tile);
    }
    template <typename T>
    __aicore__ inline AscendC::LocalTensor<T> DeQueOut() {
        return out_.template DeQue<T>();
    }
    template <typename T>
    __aicore__ inline void FreeOut(AscendC::LocalTensor<T>& tile) {
        out_.FreeTensor(tile);
    }
    template <typename T>
    __aicore__ inline void StoreOut(const AscendC::GlobalTensor<T>& dst,
                                    AscendC::LocalTensor<T>& tile, int32_t rows, int32_t width,
                                    int64_t pitch) {
        out_.EnQue(tile);
        tile = out_.template DeQue<T>();
        StoreRows(dst, tile, rows, width, pitch);
        out_.FreeTensor(tile);
    }

    // An fp32 tile leaves in two halves: the output buffers hold 64 rows of 16-bit numbers.
    __aicore__ inline void StoreFloat(const AscendC::GlobalTensor<float>& dst, const Tile& tile,
                                      int32_t rows, int64_t pitch) {
        const int32_t half = kChunkRows / 2;
        for (int32_t first = 0; first < rows; first += half) {
            const int32_t count = rows - first < half ? rows - first : half;
            auto out = AllocOut<float>();
            TileAdds<kChannels>(out, tile[first * kChannels], 0.0f, count);
            StoreOut(dst[first * pitch], out, count, kChannels, pitch);
        }
    }

    // ---- work tiles and vectors
    __aicore__ inline Tile Work(int32_t tile) { return work_.Get<float>()[tile * kTileFloats]; }
    __aicore__ inline ChannelDecay& Decay() { return decay_; }
    // beta of a step's rows, kept from V1 to V4.
    __aicore__ inline Tile Beta(int64_t step) {
        return Vectors(kBetaAt + static_cast<int32_t>(step % kRingDepth) * kChunkRows);
    }
    __aicore__ inline Tile BetaColumn() { return Vectors(kBetaColumnAt); }
    __aicore__ inline Tile Column() { return Vectors(kColumnAt); }
    __aicore__ inline Tile Sums() { return Vectors(kSumsAt); }        // exchanged row sums
    __aicore__ inline Tile Values() { return Vectors(kValuesAt); }    // dt_bias, three more vectors
    __aicore__ inline Tile Scratch() { return Vectors(kScratchAt); }  // two row vectors
    __aicore__ inline Tile One() { return Vectors(kBlocksAt); }
    __aicore__ inline Tile NegativeRate() { return Vectors(kBlocksAt + kBlockFloats); }
    __aicore__ inline Tile Slope() { return Vectors(kBlocksAt + 2 * kBlockFloats); }
    __aicore__ inline Tile SoftplusConstants() { return Vectors(kBlocksAt + 3 * kBlockFloats); }
    // Masks of this AIV's half of the rows of a score tile.
    __aicore__ inline AscendC::LocalTensor<uint8_t> Below() { return masks_.Get<uint8_t>(); }
    __aicore__ inline AscendC::LocalTensor<uint8_t> BelowOrDiagonal() {
        return masks_.Get<uint8_t>()[kHalfMaskBytes];
    }
    // Of 64 x 16 values, the diagonal blocks of a score tile one below the other.
    __aicore__ inline AscendC::LocalTensor<uint8_t> LevelMask(int32_t level) {
        return masks_.Get<uint8_t>()[2 * kHalfMaskBytes + level * LevelMasks::kBytes];
    }

private:
    static constexpr int32_t kWorkTiles = 6;
    static constexpr int32_t kHalfMaskBytes = kMaskBytes / 2;
    static constexpr int32_t kDecayAt = 0;
    static constexpr int32_t kBetaAt = kDecayAt + ChannelDecay::kFloats;
    static constexpr int32_t kBetaColumnAt = kBetaAt + kRingDepth * kChunkRows;
    static constexpr int32_t kColumnAt = kBetaColumnAt + kColumnFloats;
    static constexpr int32_t kSumsAt = kColumnAt + kColumnFloats;
    static constexpr int32_t kValuesAt = kSumsAt + 3 * kChunkRows;
    static constexpr int32_t kScratchAt = kValuesAt + 4 * kChunkRows;
    static constexpr int32_t kBlocksAt = kScratchAt + 2 * kChunkRows;
    static constexpr int32_t kVectorFloats =
        kBlocksAt + 3 * kBlockFloats + Softplus::kConstantFloats;

    __aicore__ inline Tile Vectors(int32_t at) { return vectors_.Get<float>()[at]; }

    // Bit c of 64-bit row r says whether element (r, c) of this AIV's rows is kept. No barrier at
    // the end: tiles are masked behind those of KeepBeta and others.
    __aicore__ inline void MakeMasks() {
        const Tile scratch = Work(0);
        const Tile column = scratch;
        const Tile row = scratch[kLanes];
        const Tile rowOf = scratch[2 * kLanes];
        AscendC::CreateVecIndex(column, 0.0f, static_cast<uint32_t>(kLanes));
        AscendC::PipeBarrier<PIPE_V>();
        TileAdds<kChannels>(row, column, static_cast<float>(subBlock_ * kChunkRows / 2), 1);
        SpreadColumn(rowOf, row, kChunkRows / 2);
        const AscendC::BinaryRepeatParams params(1, 1, 0, kRepeatBlocks, 0, 1);
        AscendC::Compare(Below(), column, rowOf, AscendC::CMPMODE::LT, kFullMask, kChunkRows / 2,
                         params);
        AscendC::Compare(BelowOrDiagonal(), column, rowOf, AscendC::CMPMODE::LE, kFullMask,
                         kChunkRows / 2, params);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 2> full_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> half_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> query_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> small_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> out_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> work_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> vectors_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> masks_;
    ChannelDecay decay_;
    int32_t subBlock_ = 0;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_BUFFERS_H
