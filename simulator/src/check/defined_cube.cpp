// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>

#include "check/defined.h"

// Unwritten memory on its way through the matrix unit. The shadows of L0A and L0B are those of the
// float fractals: they are made by the very conversion that makes the fractals, and a value of
// which nothing is unwritten is zero there.
namespace sim {

namespace {

constexpr uint32_t kFractalFloats = 256;

const uint32_t* Fractals(Core& core, uint32_t side, const Local& local) {
    const Space space = side == 0 ? Space::L0A : Space::L0B;
    const int64_t at = local.Address() - core.memory[static_cast<size_t>(space)];
    return reinterpret_cast<const uint32_t*>(
        ShadowOf(core.fractals[side] + at / kFractalBytes * kFractalFloats));
}

// What it adds to is read too: values that no Mmad started keep this instruction as their origin.
void TagAccumulator(Core& core, const Local& c, uint32_t m, uint32_t n) {
    const uint32_t mRows = (m + 15) / 16 * 16;
    for (uint32_t column = 0; column < n; column += 16) {
        uint8_t* stripe = c.Address() + static_cast<int64_t>(column) * mRows * 4;
        const uint32_t bytes = m * 64;
        if (AnySet(ShadowOf(stripe), bytes)) {
            MemoryCheck& check = *MemoryOf(core);
            const uint16_t origin =
                check.OriginOf(core, Space::L0C, stripe, bytes, "the accumulator");
            check.Tag(core, Access{stripe, bytes, true, Space::L0C}, origin);
        }
    }
}

}  // namespace

void ShadowElements(uint8_t* to, uint32_t toBytes, const uint8_t* from, uint32_t fromBytes,
                    uint32_t count, bool add) {
    for (uint32_t i = 0; i < count; ++i) {
        if (AnySet(from + i * fromBytes, fromBytes)) {
            std::memset(to + i * toBytes, 0xFF, toBytes);
        } else if (!add) {
            std::memset(to + i * toBytes, 0, toBytes);
        }
    }
}

void TrackMmad(Core& core, const Local& c, const Local& a, const Local& b, const uint8_t* bias,
               uint32_t ck, uint32_t m, uint32_t n, uint32_t k, bool accumulate) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    const uint32_t mBlocks = (m + 15) / 16;
    const uint32_t nBlocks = (n + 15) / 16;
    const uint32_t kBlocks = (k + ck - 1) / ck;
    const uint32_t* left = Fractals(core, 0, a);
    const uint32_t* right = Fractals(core, 1, b);
    const size_t pitch = kFractalFloats * sizeof(float);
    const bool leftSet = AnySet(reinterpret_cast<const uint8_t*>(left), mBlocks * kBlocks * pitch);
    const bool rightSet =
        AnySet(reinterpret_cast<const uint8_t*>(right), nBlocks * kBlocks * pitch);
    // A row of C is unwritten in full when the m x k part of A has an unwritten value in that row;
    // a column likewise.
    bool rows[4096] = {};
    bool columns[4096] = {};
    uint16_t rowOrigin = 0;
    uint16_t columnOrigin = 0;
    for (uint32_t i = 0; leftSet && i < m; ++i) {
        for (uint32_t j = 0; j < k && !rows[i]; ++j) {
            const uint32_t fractal = i / 16 * kBlocks + j / ck;
            rows[i] = left[fractal * kFractalFloats + i % 16 * ck + j % ck] != 0;
            if (rows[i] && rowOrigin == 0) {
                rowOrigin = check->OriginOf(core, Space::L0A, a.Address() + fractal * kFractalBytes,
                                            kFractalBytes, "the left operand");
            }
        }
    }
    for (uint32_t j = 0; rightSet && j < k; ++j) {
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t fractal = j / ck * nBlocks + i / 16;
            if (right[fractal * kFractalFloats + j % ck * 16 + i % 16] == 0) {
                continue;
            }
            columns[i] = true;
            if (columnOrigin == 0) {
                columnOrigin =
                    check->OriginOf(core, Space::L0B, b.Address() + fractal * kFractalBytes,
                                    kFractalBytes, "the right operand");
            }
        }
    }
    uint8_t* result = c.Address();
    uint8_t* shadow = ShadowOf(result);
    if (bias != nullptr) {
        const uint8_t* from = ShadowOf(bias);
        for (uint32_t n1 = 0; n1 < nBlocks; ++n1) {
            for (uint32_t r = 0; r < mBlocks * 16; ++r) {
                std::memcpy(shadow + (n1 * mBlocks * 16 + r) * 64, from + n1 * 64, 64);
            }
        }
        if (AnySet(from, nBlocks * 64)) {
            const uint16_t origin =
                check->OriginOf(core, Space::BiasTable, bias, nBlocks * 64, "the bias");
            check->Tag(core, Access{result, nBlocks * mBlocks * 1024, true, Space::L0C}, origin);
        }
    }
    if (accumulate && bias == nullptr) {
        TagAccumulator(core, c, m, n);
    }
    if (accumulate && rowOrigin == 0 && columnOrigin == 0) {
        return;
    }
    for (uint32_t n1 = 0; n1 < nBlocks; ++n1) {
        const uint32_t width = std::min(16u, n - n1 * 16);
        for (uint32_t i = 0; i < m; ++i) {
            const int64_t at = (static_cast<int64_t>(n1) * mBlocks * 16 + i) * 64;
            if (rows[i]) {
                std::memset(shadow + at, 0xFF, width * 4);
                continue;
            }
            if (!accumulate) {
                std::memset(shadow + at, 0, width * 4);
            }
            for (uint32_t j = 0; columnOrigin != 0 && j < width; ++j) {
                if (columns[n1 * 16 + j]) {
                    std::memset(shadow + at + j * 4, 0xFF, 4);
                }
            }
        }
    }
    if (rowOrigin != 0 || columnOrigin != 0) {
        check->Tag(core, Access{result, nBlocks * mBlocks * 1024, true, Space::L0C},
                   rowOrigin != 0 ? rowOrigin : columnOrigin);
    }
}

}  // namespace sim
