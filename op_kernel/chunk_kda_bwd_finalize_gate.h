// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The end of V4 of bwd_finalize: from the gradient of the log decay to that of the gate's input,
// and this step's part of those of its parameters.
#ifndef KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GATE_H
#define KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GATE_H

#include "kernel_operator.h"

#include "chunk_kda_bwd_finalize_buffers.h"
#include "chunk_kda_bwd_finalize_shared.h"
#include "common/gate.h"

namespace kda {
namespace bwd_finalize {

// T: as in Vector. The gate and its gradient may be fp32 instead.
template <typename T>
class GateGradients {
public:
    __aicore__ inline GateGradients(const ChunkKdaBwdFinalizeTilingData& tiling, const Pointers& gm,
                                    VectorBuffers& buffers)
        : tiling_(tiling), gm_(gm), b_(buffers) {}

    // Work tiles.
    struct Tiles {
        Tile x;
        Tile terms;  // of da_log
        Tile first;
        Tile second;
        Tile third;
    };

    // grad: da, zero behind the chunk's rows; becomes dg. dt_bias and exp(a_log) are in the
    // buffers' vectors.
    __aicore__ inline void Run(const ChunkPlace& place, const Tile& grad, const Tiles& tiles) {
        const int64_t column = b_.FirstChannel();
        const int64_t row = ChunkIndex::RowOffset(tiling_.gateGrad, place) + column;
        const int64_t pitch = tiling_.gateGrad.tokenStride;
        const int32_t rows = place.rows;
        if (tiling_.gateKind != kGateActivated) {
            LoadInput(tiles.x, ChunkIndex::RowOffset(tiling_.gate, place) + column, rows);
        }
        if (tiling_.gateKind == kGateSafe) {
            Safe(grad, tiles, rows);
        } else if (tiling_.gateKind == kGateSoftplus) {
            SoftplusRate(grad, tiles, rows);
        }
        if (tiling_.gateIsIo) {
            auto out = b_.AllocOut<T>();
            ToIo<kChannels>(out, grad, rows);
            b_.StoreOut(Bind<T>(gm_.dg)[row], out, rows, kChannels, pitch);
        } else {
            b_.StoreFloat(Bind<float>(gm_.dg)[row], grad, rows, pitch);
        }
        if (tiling_.gateKind != kGateActivated) {
            StorePartials(place, tiles.terms, grad);
        }
    }

private:
    static constexpr float kLargest = 3.0e38f;

    template <typename E>
    __aicore__ inline AscendC::GlobalTensor<E> Bind(GM_ADDR address) const {
        AscendC::GlobalTensor<E> tensor;
        tensor.SetGlobalBuffer(reinterpret_cast<__gm__ E*>(address));
        return tensor;
    }

    // x = raw_g + dt_bias
    __aicore__ inline void LoadInput(const Tile& x, int64_t row, int32_t rows) {
        if (tiling_.gateIsIo) {
            b_.LoadHalf(Bind<T>(gm_.rawG)[row], rows, tiling_.gate.tokenStride);
            auto raw = b_.TakeHalf<T>();
            ToFloat<kChannels>(x, raw, rows);
            b_.FreeHalf(raw);
        } else {
            b_.LoadFull(Bind<float>(gm_.rawG)[row], rows, tiling_.gate.tokenStride);
            Tile raw = b_.TakeFull();
            TileAdds<kChannels>(x, raw, 0.0f, rows);
            b_.FreeFull(raw);
        }
        if (tiling_.hasDtBias) {
            RowAdd<kChannels>(x, x, b_.Values(), rows);
        }
    }

    // z = exp(-|exp(a_log) x|): y (1 - y) = z / (1 + z)^2, which is even in x, and
    // dg = da lower_bound exp(a_log) y (1 - y), terms = dg x. y (1 - y) must fall to zero itself:
    // exp(a_log) can make any floor large.
    __aicore__ inline void Safe(const Tile& grad, const Tiles& tiles, int32_t rows) {
        const Tile& z = tiles.terms;
        const Tile& square = tiles.first;
        TileScale<kChannels>(z, tiles.x, b_.NegativeRate(), rows);
        AscendC::Abs(z, z, kFullMask, TileRepeats<kChannels>(rows), ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileMuls<kChannels>(z, z, -1.0f, rows);
        TileExp<kChannels>(z, z, rows);
        TileAdds<kChannels>(square, z, 1.0f, rows);
        TileMul<kChannels>(square, square, square, rows);
        AscendC::Div(z, z, square, kFullMask, TileRepeats<kChannels>(rows), Contiguous());
        AscendC::PipeBarrier<PIPE_V>();
        TileScale<kChannels>(z, z, b_.Slope(), rows);
        TileMul<kChannels>(grad, grad, z, rows);
        TileMul<kChannels>(tiles.terms, tiles.x, grad, rows);
    }

    // a = -exp(a_log) softplus(x), dg = -exp(a_log) sigmoid(x) da, terms = da a.
    // sigmoid(x) = exp(x - softplus(x)), hence no infinite x.
    __aicore__ inline void SoftplusRate(const Tile& grad, const Tiles& tiles, int32_t rows) {
        const Tile& a = tiles.terms;
        const Tile& x = tiles.x;
        const uint8_t repeats = TileRepeats<kChannels>(rows);
        AscendC::Mins(x, x, kLargest, kFullMask, repeats, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileAdds<kChannels>(a, x, 0.0f, rows);
        Softplus::Run<kChannels>(a, tiles.first, tiles.second, tiles.third, b_.SoftplusConstants(),
                                 rows);
        TileSub<kChannels>(x, x, a, rows);
        TileExp<kChannels>(x, x, rows);
        TileScale<kChannels>(a, a, b_.NegativeRate(), rows);
        StopAtFloor(grad, a, tiles.first, rows);
        TileMul<kChannels>(a, a, grad, rows);
        TileScale<kChannels>(grad, grad, b_.NegativeRate(), rows);
        TileMul<kChannels>(grad, grad, x, rows);
    }

    // Where the forward stopped at kGateFloor the gradient of a is zero, and all that da holds is
    // rounding, which a rate of any size would blow up. The factor rises from 0 to 1 over the nat
    // above the floor, where the decay is zero in fp32.
    __aicore__ inline void StopAtFloor(const Tile& grad, const Tile& a, const Tile& factor,
                                       int32_t rows) {
        const uint8_t repeats = TileRepeats<kChannels>(rows);
        TileAdds<kChannels>(factor, a, -kGateFloor, rows);
        AscendC::Maxs(factor, factor, 0.0f, kFullMask, repeats, ContiguousUnary());
        AscendC::Maxs(a, a, kGateFloor, kFullMask, repeats, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mins(factor, factor, 1.0f, kFullMask, repeats, ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileMul<kChannels>(grad, grad, factor, rows);
    }

    // Sums of the terms of da_log and of dg over the chunk's rows.
    __aicore__ inline void StorePartials(const ChunkPlace& place, const Tile& terms,
                                         const Tile& grad) {
        ClearRows<kChannels>(terms, place.rows, kChunkRows);
        auto out = b_.AllocOut<float>();
        ColumnSums<kChannels>(out, terms, kChunkRows);
        ColumnSums<kChannels>(out[kChannels], grad, kChunkRows);
        const ChunkGeometry& geometry = tiling_.geometry;
        const int64_t row = place.head * geometry.totalChunks +
                            place.batch * geometry.chunksPerBatchRow + place.slot;
        const int64_t at = row * kPartialFloats + b_.FirstChannel();
        b_.StoreOut(PartialSums(tiling_, gm_.workspace)[at], out, 2, kChannels, kKeyDim);
    }

    const ChunkKdaBwdFinalizeTilingData& tiling_;
    const Pointers& gm_;
    VectorBuffers& b_;
};

}  // namespace bwd_finalize
}  // namespace kda

#endif  // KDA_OP_KERNEL_CHUNK_KDA_BWD_FINALIZE_GATE_H
