// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <algorithm>
#include <cstring>

#include "check/defined.h"

// Unwritten memory on its way through the matrix unit. The shadows of L0A and L0B are those of the
// float fractals: they are made by the very conversion that makes the fractals, and a value of
// which nothing is unwritten is zero there.
namespace sim {

namespace {

constexpr uint32_t kFractalFloats = 256;

// One operand of a product: its float fractals' shadows.
struct Side {
    const uint32_t* values;
    const bool* dirty;
    const Local& local;
    bool any;

    Side(Core& core, uint32_t side, const Local& operand, uint32_t fractals) : local(operand) {
        const Space space = side == 0 ? Space::L0A : Space::L0B;
        const int64_t first =
            (operand.Address() - core.memory[static_cast<size_t>(space)]) / kFractalBytes;
        values = reinterpret_cast<const uint32_t*>(
            ShadowOf(core.fractals[side] + first * kFractalFloats));
        dirty = StateOf(core).dirty[side] + first;
        any = std::find(dirty, dirty + fractals, true) != dirty + fractals;
    }
    bool Set(uint32_t fractal, uint32_t value) const {
        return dirty[fractal] && values[fractal * kFractalFloats + value] != 0;
    }
    uint16_t Origin(Core& core, Space space, uint32_t fractal, const char* name) const {
        return MemoryOf(core)->OriginOf(core, space, local.Address() + fractal * kFractalBytes,
                                        kFractalBytes, name);
    }
};

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

void NoteLoaded(Core& core, const Loaded& loaded, bool dirty) {
    if (MemoryOf(core) == nullptr) {
        return;
    }
    for (uint32_t i = 0; i < loaded.fractals; ++i) {
        bool* fractal = StateOf(core).dirty[loaded.side] + loaded.first + i * loaded.step;
        fractal[0] = fractal[loaded.pair] = dirty;
    }
}

void ShadowElements(uint8_t* to, uint32_t toBytes, const uint8_t* from, uint32_t fromBytes,
                    uint32_t count, bool add) {
    if (!AnySet(from, static_cast<size_t>(fromBytes) * count)) {
        if (!add) {
            std::memset(to, 0, static_cast<size_t>(toBytes) * count);
        }
        return;
    }
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
    const Side left(core, 0, a, mBlocks * kBlocks);
    const Side right(core, 1, b, kBlocks * nBlocks);
    // A row of C is unwritten in full when the m x k part of A has an unwritten value in that row;
    // a column likewise.
    bool rows[4096];
    bool columns[4096];
    std::fill(rows, rows + m, false);
    std::fill(columns, columns + n, false);
    uint16_t rowOrigin = 0;
    uint16_t columnOrigin = 0;
    for (uint32_t i = 0; left.any && i < m; ++i) {
        for (uint32_t j = 0; j < k && !rows[i]; ++j) {
            const uint32_t fractal = i / 16 * kBlocks + j / ck;
            rows[i] = left.Set(fractal, i % 16 * ck + j % ck);
            if (rows[i] && rowOrigin == 0) {
                rowOrigin = left.Origin(core, Space::L0A, fractal, "the left operand");
            }
        }
    }
    for (uint32_t j = 0; right.any && j < k; ++j) {
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t fractal = j / ck * nBlocks + i / 16;
            if (columns[i] || !right.Set(fractal, j % ck * 16 + i % 16)) {
                continue;
            }
            columns[i] = true;
            if (columnOrigin == 0) {
                columnOrigin = right.Origin(core, Space::L0B, fractal, "the right operand");
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
