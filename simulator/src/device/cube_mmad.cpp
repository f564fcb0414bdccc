// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>

#include "convert.h"
#include "defined.h"
#include "sim/cube_ops.h"

namespace sim {

namespace {

constexpr uint32_t kFractalFloats = 256;   // pitch of the float fractals
constexpr uint32_t kOrderedFractals = 10;  // of a result that the next Mmad sees without a barrier

// Rows [0, R) of a 16-column stripe of C. `a` points at row 0 of its first fractal, `b` at the
// stripe's first fractal; both step a fractal every CK values of k.
template <int R, int CK>
inline __attribute__((always_inline)) void Stripe(float* c, const float* a, const float* b,
                                                  uint32_t k, uint32_t bPitch, uint32_t columns,
                                                  bool accumulate) {
    Float8 acc[R][2];
    for (int r = 0; r < R; ++r) {
        acc[r][0] = accumulate ? LoadFloat8(c + r * 16) : Float8{};
        acc[r][1] = accumulate ? LoadFloat8(c + r * 16 + 8) : Float8{};
    }
    const uint32_t whole = k / CK;
    for (uint32_t k1 = 0; k1 < whole; ++k1) {
#pragma GCC unroll 4
        for (int kk = 0; kk < CK; ++kk) {
            const Float8 b0 = LoadFloat8(b + kk * 16);
            const Float8 b1 = LoadFloat8(b + kk * 16 + 8);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const float s = a[r * CK + kk];
                acc[r][0] += s * b0;
                acc[r][1] += s * b1;
            }
        }
        a += kFractalFloats;
        b += bPitch;
    }
    for (uint32_t kk = 0; kk < k % CK; ++kk) {
        const Float8 b0 = LoadFloat8(b + kk * 16);
        const Float8 b1 = LoadFloat8(b + kk * 16 + 8);
        for (int r = 0; r < R; ++r) {
            const float s = a[r * CK + kk];
            acc[r][0] += s * b0;
            acc[r][1] += s * b1;
        }
    }
    if (columns == 16) {
        for (int r = 0; r < R; ++r) {
            StoreFloat8(c + r * 16, acc[r][0]);
            StoreFloat8(c + r * 16 + 8, acc[r][1]);
        }
        return;
    }
    for (int r = 0; r < R; ++r) {
        float row[16];
        StoreFloat8(row, acc[r][0]);
        StoreFloat8(row + 8, acc[r][1]);
        std::memcpy(c + r * 16, row, columns * sizeof(float));
    }
}

// How many of the rows that are left to take next. Ten accumulators or more hide the multiply-add's
// latency, so a fractal is 6 + 5 + 5.
constexpr uint32_t kSplit[17] = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5, 6, 5, 6};

template <int CK>
void Rows(uint32_t rows, float* c, const float* a, const float* b, uint32_t k, uint32_t bPitch,
          uint32_t columns, bool accumulate) {
    switch (rows) {
        case 6:
            return Stripe<6, CK>(c, a, b, k, bPitch, columns, accumulate);
        case 5:
            return Stripe<5, CK>(c, a, b, k, bPitch, columns, accumulate);
        case 4:
            return Stripe<4, CK>(c, a, b, k, bPitch, columns, accumulate);
        case 3:
            return Stripe<3, CK>(c, a, b, k, bPitch, columns, accumulate);
        case 2:
            return Stripe<2, CK>(c, a, b, k, bPitch, columns, accumulate);
        default:
            return Stripe<1, CK>(c, a, b, k, bPitch, columns, accumulate);
    }
}

template <int CK>
void Multiply(float* c, const float* a, const float* b, uint32_t m, uint32_t n, uint32_t k,
              bool accumulate) {
    const uint32_t kBlocks = (k + CK - 1) / CK;
    const uint32_t nBlocks = (n + 15) / 16;
    const uint32_t rows = (m + 15) / 16 * 16;
    const uint32_t bPitch = nBlocks * kFractalFloats;
    for (uint32_t n1 = 0; n1 < nBlocks; ++n1) {
        const uint32_t columns = n - n1 * 16 < 16 ? n - n1 * 16 : 16;
        const float* bStripe = b + n1 * kFractalFloats;
        float* cStripe = c + static_cast<size_t>(n1) * rows * 16;
        for (uint32_t m1 = 0; m1 * 16 < m; ++m1) {
            const uint32_t height = m - m1 * 16 < 16 ? m - m1 * 16 : 16;
            const float* aRow = a + static_cast<size_t>(m1) * kBlocks * kFractalFloats;
            float* cRow = cStripe + m1 * 256;
            for (uint32_t r = 0; r < height;) {
                const uint32_t take = kSplit[height - r];
                Rows<CK>(take, cRow + r * 16, aRow + r * CK, bStripe, k, bPitch, columns,
                         accumulate);
                r += take;
            }
        }
    }
}

void CheckLoaded(Core& core, uint32_t side, const Local& local, uint32_t count, DType type) {
    const Space space = side == 0 ? Space::L0A : Space::L0B;
    const uint32_t first = static_cast<uint32_t>(
        (local.Address() - core.memory[static_cast<size_t>(space)]) / kFractalBytes);
    for (uint32_t i = 0; i < count; ++i) {
        const DType held = core.fractalType[side][first + i];
        if (held != type) {
            core.Fail("fractal %u of the %s operand holds %s, Mmad reads %s", i,
                      side == 0 ? "left" : "right", Name(held), Name(type));
        }
    }
}

}  // namespace

void MultiplyFractals(float* c, const float* a, const float* b, uint32_t m, uint32_t n, uint32_t k,
                      uint32_t blockK, bool accumulate) {
    if (blockK == 16) {
        Multiply<16>(c, a, b, m, n, k, accumulate);
    } else {
        Multiply<8>(c, a, b, m, n, k, accumulate);
    }
}

void MatrixMultiply(const Local& c, const Local& a, const Local& b, DType type, const Local* bias,
                    const AscendC::MmadParams& p, const Where& where) {
    Core& core = This();
    core.Begin(Op::Mmad, where);
    core.NeedCube();
    core.CheckSpace(c, Space::L0C, "the result");
    core.CheckSpace(a, Space::L0A, "the left operand");
    core.CheckSpace(b, Space::L0B, "the right operand");
    core.CheckAlign(c, 1024, "the result");
    core.CheckAlign(a, kFractalBytes, "the left operand");
    core.CheckAlign(b, kFractalBytes, "the right operand");
    if (p.m > 4095 || p.n > 4095 || p.k > 4095) {
        core.Fail("m %u, n %u, k %u: at most 4095", p.m, p.n, p.k);
    }
    if (p.m == 0 || p.n == 0 || p.k == 0) {
        return;
    }
    if (p.m == 1) {
        core.Fail("m = 1 turns into a GEMV with another layout: pad m to 16");
    }
    if (p.unitFlag != 0 && p.unitFlag != 2 && p.unitFlag != 3) {
        core.Fail("unitFlag %u: 0, 2 or 3", p.unitFlag);
    }
    const uint32_t ck = type == DType::F32 ? 8 : 16;
    const uint32_t mBlocks = (p.m + 15u) / 16;
    const uint32_t nBlocks = (p.n + 15u) / 16;
    const uint32_t kBlocks = (p.k + ck - 1) / ck;
    const uint32_t aBytes = mBlocks * kBlocks * kFractalBytes;
    const uint32_t bBytes = nBlocks * kBlocks * kFractalBytes;
    const uint32_t cBytes = mBlocks * nBlocks * 1024;
    core.Check(a, 0, aBytes, "the left operand");
    core.Check(b, 0, bBytes, "the right operand");
    float* result = reinterpret_cast<float*>(core.Check(c, 0, cBytes, "the result"));
    CheckLoaded(core, 0, a, mBlocks * kBlocks, type);
    CheckLoaded(core, 1, b, nBlocks * kBlocks, type);
    const bool accumulate = !p.cmatrixInitVal || p.isBias;
    if (bias == nullptr && accumulate && p.cmatrixSource) {
        core.Fail("cmatrixSource says bias table, but no bias tensor is given");
    }
    if (bias != nullptr && !accumulate) {
        core.Fail("a bias with cmatrixInitVal true: the result would start from zero without it");
    }
    const float* row = nullptr;
    if (bias != nullptr) {
        core.CheckSpace(*bias, Space::BiasTable, "the bias");
        row = reinterpret_cast<const float*>(core.Check(*bias, 0, nBlocks * 64, "the bias"));
    }
    // The manual's (m / 16) * (n / 16): what is left of a fractal does not count.
    Access written{result, cBytes, true, Space::L0C};
    written.inOrder = (p.m / 16u) * (p.n / 16u) >= kOrderedFractals;
    Report(core, Op::Mmad,
           {{a.Address(), aBytes, false, Space::L0A},
            {b.Address(), bBytes, false, Space::L0B},
            {row, row != nullptr ? nBlocks * 64 : 0, false, Space::BiasTable},
            {result, accumulate && row == nullptr ? cBytes : 0, false, Space::L0C},
            written});
    core.region->counters.macs += static_cast<uint64_t>(p.m) * p.n * p.k;
    if (row != nullptr) {
        // The result starts from the bias, one value a column.
        for (uint32_t n1 = 0; n1 < nBlocks; ++n1) {
            for (uint32_t r = 0; r < mBlocks * 16; ++r) {
                std::memcpy(result + (n1 * mBlocks * 16 + r) * 16, row + n1 * 16, 64);
            }
        }
    }
    if constexpr (kTracksDefined) {
        TrackMmad(core, c, a, b, bias != nullptr ? bias->Address() : nullptr, ck, p.m, p.n, p.k,
                  accumulate);
    }
    const size_t left = static_cast<size_t>(a.Address() - core.memory[size_t(Space::L0A)]);
    const size_t right = static_cast<size_t>(b.Address() - core.memory[size_t(Space::L0B)]);
    MultiplyFractals(result, core.fractals[0] + left / kFractalBytes * kFractalFloats,
                     core.fractals[1] + right / kFractalBytes * kFractalFloats, p.m, p.n, p.k, ck,
                     accumulate);
}

}  // namespace sim
