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

// What an operand of a product has to be. The manual wants NaN kept away from Mmad, which may stop
// with an error, and unwritten memory may be NaN: so unwritten values in the m x k or k x n part
// are reported here, whatever becomes of the result.
struct Side {
    Core& core;
    const uint32_t* values;
    const bool* dirty;
    uint8_t* address;
    Space space;

    Side(Core& onCore, const Local& operand, Space where)
        : core(onCore), address(operand.Address()), space(where) {
        const uint32_t side = space == Space::L0A ? 0 : 1;
        const int64_t first = (address - core.memory[static_cast<size_t>(space)]) / kFractalBytes;
        values = reinterpret_cast<const uint32_t*>(
            ShadowOf(core.fractals[side] + first * kFractalFloats));
        dirty = StateOf(core).dirty[side] + first;
    }
    // Values [0, rows) x [0, columns) of one fractal, `pitch` values a row. True when it reports.
    bool Report(uint32_t fractal, uint32_t rows, uint32_t columns, uint32_t pitch,
                const char* name) const {
        for (uint32_t r = 0; dirty[fractal] && r < rows; ++r) {
            const uint32_t* row = values + fractal * kFractalFloats + r * pitch;
            if (std::any_of(row, row + columns, [](uint32_t value) { return value != 0; })) {
                MemoryCheck& check = *MemoryOf(core);
                check.Shows(core, "unwritten memory in a matrix product",
                            check.OriginOf(core, space, address + fractal * kFractalBytes,
                                           kFractalBytes, name),
                            "");
                return true;
            }
        }
        return false;
    }
};

void CheckLeft(const Side& side, uint32_t ck, uint32_t m, uint32_t k) {
    const uint32_t kBlocks = (k + ck - 1) / ck;
    for (uint32_t i = 0; i < m; i += 16) {
        for (uint32_t j = 0; j < k; j += ck) {
            if (side.Report(i / 16 * kBlocks + j / ck, std::min(16u, m - i), std::min(ck, k - j),
                            ck, "the left operand")) {
                return;
            }
        }
    }
}

void CheckRight(const Side& side, uint32_t ck, uint32_t n, uint32_t k) {
    const uint32_t nBlocks = (n + 15) / 16;
    for (uint32_t j = 0; j < k; j += ck) {
        for (uint32_t i = 0; i < n; i += 16) {
            if (side.Report(j / ck * nBlocks + i / 16, std::min(ck, k - j), std::min(16u, n - i),
                            16, "the right operand")) {
                return;
            }
        }
    }
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
    CheckLeft(Side(core, a, Space::L0A), ck, m, k);
    CheckRight(Side(core, b, Space::L0B), ck, n, k);
    const uint32_t mBlocks = (m + 15) / 16;
    const uint32_t nBlocks = (n + 15) / 16;
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
    // Where it adds, what was unwritten stays so.
    for (uint32_t n1 = 0; n1 < nBlocks && !accumulate; ++n1) {
        const uint32_t width = std::min(16u, n - n1 * 16);
        for (uint32_t i = 0; i < m; ++i) {
            std::memset(shadow + (static_cast<int64_t>(n1) * mBlocks * 16 + i) * 64, 0, width * 4);
        }
    }
}

}  // namespace sim
