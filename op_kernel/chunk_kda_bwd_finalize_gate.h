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

    // z = exp(-exp(a_log) x): y (1 - y) = z / (1 + z)^2, dg = da lower_bound exp(a_log) y (1 - y),
    // terms = dg x. The exponent stops at 40, where y (1 - y) is 4e-18.
    __aicore__ inline void Safe(const Tile& grad, const Tiles& tiles, int32_t rows) {
        const Tile& z = tiles.terms;
        const Tile& square = tiles.first;
        TileScale<kChannels>(z, tiles.x, b_.NegativeRate(), rows);
        AscendC::Mins(z, z, 40.0f, kFullMask, TileRepeats<kChannels>(rows), ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileExp<kChannels>(z, z, rows);
        TileAdds<kChannels>(square, z, 1.0f, rows);
        TileMul<kChannels>(square, square, square, rows);
        AscendC::Div(z, z, square, kFullMask, TileRepeats<kChannels>(rows), Contiguous());
        AscendC::PipeBarrier<PIPE_V>();
        TileScale<kChannels>(z, z, b_.Slope(), rows);
        TileMul<kChannels>(grad, grad, z, rows);
        TileMul<kChannels>(tiles.terms, tiles.x, grad, rows);
    }

    // a = -exp(a_log) softplus(x), dg = -exp(a_log) sigmoid(x) da, terms = da a, with the a that
    // the forward stopped at: where it goes on falling da is rounding. sigmoid(x) = exp(x -
    // softplus(x)).
    __aicore__ inline void SoftplusRate(const Tile& grad, const Tiles& tiles, int32_t rows) {
        const Tile& terms = tiles.terms;
        const Tile& x = tiles.x;
        TileAdds<kChannels>(terms, x, 0.0f, rows);
        Softplus::Run<kChannels>(terms, tiles.first, tiles.second, tiles.third,
                                 b_.SoftplusConstants(), rows);
        TileSub<kChannels>(x, x, terms, rows);
        TileExp<kChannels>(x, x, rows);
        TileScale<kChannels>(terms, terms, b_.NegativeRate(), rows);
        AscendC::Maxs(terms, terms, kGateFloor, kFullMask, TileRepeats<kChannels>(rows),
                      ContiguousUnary());
        AscendC::PipeBarrier<PIPE_V>();
        TileMul<kChannels>(terms, terms, grad, rows);
        TileScale<kChannels>(grad, grad, b_.NegativeRate(), rows);
        TileMul<kChannels>(grad, grad, x, rows);
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
