// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>

#include "check/defined.h"

// How vector instructions pass unwritten memory on. Rows whose sources are written in full are the
// rule and are only cleared; the others go lane by lane.
namespace sim {

namespace {

Operand Shadowed(const Operand& operand) {
    Operand shadow = operand;
    shadow.base = ShadowOf(shadow.base);
    return shadow;
}

// f(address, bytes) for the pieces of a row that lie together.
template <typename F>
void Pieces(const Operand& operand, int64_t row, uint32_t lanes, const F& f) {
    uint8_t* at = operand.base + row * operand.row;
    int64_t bytes = static_cast<int64_t>(lanes) * operand.size;
    if (operand.block == kBlockBytes || bytes <= kBlockBytes) {
        f(at, static_cast<size_t>(bytes));
        return;
    }
    if (operand.block == 0) {
        f(at, size_t{kBlockBytes});
        return;
    }
    for (; bytes > 0; bytes -= kBlockBytes, at += operand.block) {
        f(at, static_cast<size_t>(std::min<int64_t>(bytes, kBlockBytes)));
    }
}

// True when a lane of the row that takes part has a bit set.
bool RowSet(const Operand& shadow, const Walk& walk, uint32_t row) {
    const uint32_t lanes = walk.ActiveIn(row);
    bool any = false;
    if (!walk.bits) {
        Pieces(shadow, row, lanes,
               [&](const uint8_t* at, size_t bytes) { any = any || AnySet(at, bytes); });
        return any;
    }
    for (uint32_t i = 0; i < lanes && !any; ++i) {
        any = walk.Takes(i) && AnySet(shadow.Lane(row, i), shadow.size);
    }
    return any;
}

void ClearRow(const Operand& shadow, const Walk& walk, uint32_t row) {
    const uint32_t lanes = walk.ActiveIn(row);
    if (!walk.bits) {
        Pieces(shadow, row, lanes, [](uint8_t* at, size_t bytes) { std::memset(at, 0, bytes); });
        return;
    }
    for (uint32_t i = 0; i < lanes; ++i) {
        if (walk.Takes(i)) {
            std::memset(shadow.Lane(row, i), 0, shadow.size);
        }
    }
}

size_t Bytes(const Operand& operand, const Walk& walk) {
    return (static_cast<size_t>(walk.rows - 1) * walk.active + walk.lastActive) * operand.size;
}

// The origin of a row's first unwritten lane; `operand` is the data's.
uint16_t RowOrigin(Core& core, const Operand& operand, const Walk& walk, uint32_t row,
                   const char* name) {
    const Operand shadow = Shadowed(operand);
    const uint32_t lanes = walk.ActiveIn(row);
    for (uint32_t i = 0; i < lanes; ++i) {
        const uint8_t* bits = shadow.Lane(row, i);
        if (!walk.Takes(i) || !AnySet(bits, operand.size)) {
            continue;
        }
        // As far as they go without a gap.
        uint32_t end = i + 1;
        while (end < lanes && shadow.Lane(row, end) == bits + (end - i) * operand.size &&
               AnySet(shadow.Lane(row, end), operand.size)) {
            ++end;
        }
        int64_t bytes = static_cast<int64_t>(end - i) * operand.size;
        if (Contiguous(operand, walk)) {
            const int64_t left = static_cast<int64_t>(Bytes(operand, walk)) - (bits - shadow.base);
            while (bytes < left && bits[bytes] != 0) {
                ++bytes;
            }
        }
        return MemoryOf(core)->OriginOf(core, Space::Ub, operand.Lane(row, i), bytes, name);
    }
    return 0;
}

void TagRow(Core& core, const Operand& operand, uint32_t row, uint32_t lanes, uint16_t origin) {
    Pieces(operand, row, lanes, [&](const uint8_t* at, size_t bytes) {
        MemoryOf(core)->Tag(core, Access{at, static_cast<uint32_t>(bytes), true, Space::Ub},
                            origin);
    });
}

// `data` and `bits`: the values of both sources and their shadows, for the merges that need them.
void MergeLane(uint8_t* to, uint32_t bytes, bool unwritten, Merge merge, const uint8_t* const* data,
               const uint8_t* const* bits) {
    switch (merge) {
        case Merge::Any:
            std::memset(to, unwritten ? 0xFF : 0, bytes);
            return;
        case Merge::Keep:
            if (unwritten || AnySet(to, bytes)) {
                std::memset(to, 0xFF, bytes);
            }
            return;
        default:
            for (uint32_t i = 0; i < bytes; ++i) {
                const uint8_t flip = merge == Merge::BitOr ? 0xFF : 0;
                const uint8_t a = bits[0][i] | static_cast<uint8_t>(data[0][i] ^ flip);
                const uint8_t b = bits[1][i] | static_cast<uint8_t>(data[1][i] ^ flip);
                to[i] = static_cast<uint8_t>((bits[0][i] | bits[1][i]) & a & b);
            }
            return;
    }
}

}  // namespace

void TrackLanes(Core& core, const Walk& walk, const Operand& to,
                std::initializer_list<LaneSource> sources, Merge merge) {
    if (MemoryOf(core) == nullptr) {
        return;
    }
    const Operand target = Shadowed(to);
    bool plain = !walk.bits && Contiguous(to, walk);
    for (const LaneSource& source : sources) {
        plain = plain && Contiguous(*source.operand, walk);
    }
    if (plain) {
        bool any = false;
        for (const LaneSource& source : sources) {
            any = any || AnySet(ShadowOf(source.operand->base), Bytes(*source.operand, walk));
        }
        if (!any) {
            if (merge != Merge::Keep) {
                std::memset(target.base, 0, Bytes(to, walk));
            }
            return;
        }
    }
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const LaneSource* first = nullptr;
        for (const LaneSource& source : sources) {
            if (first == nullptr && RowSet(Shadowed(*source.operand), walk, r)) {
                first = &source;
            }
        }
        if (first == nullptr) {
            if (merge != Merge::Keep) {
                ClearRow(target, walk, r);
            }
            continue;
        }
        const uint16_t origin = RowOrigin(core, *first->operand, walk, r, first->name);
        const uint32_t lanes = walk.ActiveIn(r);
        for (uint32_t i = 0; i < lanes; ++i) {
            if (!walk.Takes(i)) {
                continue;
            }
            bool unwritten = false;
            const uint8_t* data[2] = {};
            const uint8_t* bits[2] = {};
            uint32_t at = 0;
            for (const LaneSource& source : sources) {
                data[at] = source.operand->Lane(r, i);
                bits[at] = ShadowOf(data[at]);
                unwritten = unwritten || AnySet(bits[at], source.operand->size);
                ++at;
            }
            MergeLane(target.Lane(r, i), to.size, unwritten, merge, data, bits);
        }
        TagRow(core, to, r, lanes, origin);
    }
}

void TrackGroups(Core& core, const Walk& walk, const Operand& from, uint8_t* to, int64_t step,
                 uint32_t group, uint32_t resultBytes) {
    if (MemoryOf(core) == nullptr) {
        return;
    }
    const Operand source = Shadowed(from);
    const uint32_t results = walk.lanes / group;
    for (uint32_t r = 0; r < walk.rows; ++r) {
        uint8_t* bits = ShadowOf(to + r * step);
        if (!RowSet(source, walk, r)) {
            std::memset(bits, 0, results * resultBytes);
            continue;
        }
        const uint16_t origin = RowOrigin(core, from, walk, r, "the source");
        const uint32_t lanes = walk.ActiveIn(r);
        for (uint32_t j = 0; j < results; ++j) {
            bool unwritten = false;
            for (uint32_t i = j * group; i < (j + 1) * group && i < lanes; ++i) {
                unwritten = unwritten || (walk.Takes(i) && AnySet(source.Lane(r, i), from.size));
            }
            std::memset(bits + j * resultBytes, unwritten ? 0xFF : 0, resultBytes);
        }
        MemoryOf(core)->Tag(core, Access{to + r * step, results * resultBytes, true, Space::Ub},
                            origin);
    }
}

void TrackTotal(Core& core, const Walk& walk, const Operand& from, uint8_t* to,
                uint32_t resultBytes) {
    if (MemoryOf(core) == nullptr) {
        return;
    }
    const Operand source = Shadowed(from);
    std::memset(ShadowOf(to), 0, resultBytes);
    for (uint32_t r = 0; r < walk.rows; ++r) {
        if (RowSet(source, walk, r)) {
            const uint16_t origin = RowOrigin(core, from, walk, r, "the source");
            std::memset(ShadowOf(to), 0xFF, resultBytes);
            MemoryOf(core)->Tag(core, Access{to, resultBytes, true, Space::Ub}, origin);
            return;
        }
    }
}

void TrackCompare(Core& core, const Walk& walk, const Operand& a, const Operand* b, uint8_t* bits,
                  uint32_t rowBytes) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    const Operand x = Shadowed(a);
    const Operand y = b != nullptr ? Shadowed(*b) : x;
    const Access target{bits, walk.rows * rowBytes, true, Space::Ub};
    uint8_t* shadow = check->Shadow(core, target);
    for (uint32_t r = 0; r < walk.rows; ++r) {
        uint8_t* out = shadow + r * rowBytes;
        const uint32_t lanes = walk.ActiveIn(r);
        const bool fromA = RowSet(x, walk, r);
        const bool fromB = b != nullptr && RowSet(y, walk, r);
        if (!fromA && !fromB && !walk.bits && lanes % 8 == 0) {
            std::memset(out, 0, lanes / 8);
            continue;
        }
        for (uint32_t i = 0; i < lanes; ++i) {
            if (!walk.Takes(i)) {
                continue;
            }
            const bool unwritten =
                (fromA && AnySet(x.Lane(r, i), a.size)) || (fromB && AnySet(y.Lane(r, i), a.size));
            const uint8_t bit = static_cast<uint8_t>(1u << (i % 8));
            out[i / 8] = static_cast<uint8_t>((out[i / 8] & ~bit) | (unwritten ? bit : 0));
        }
        if (fromA || fromB) {
            const uint16_t origin =
                RowOrigin(core, fromA ? a : *b, walk, r, fromA ? "source 0" : "source 1");
            check->Tag(core, Access{bits + r * rowBytes, rowBytes, true, Space::Ub}, origin);
        }
    }
}

void TrackSelect(Core& core, const Walk& walk, const Operand& to, const Operand& a,
                 const Operand* b, const uint8_t* bits, uint32_t maskStep) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    const Operand target = Shadowed(to);
    const Operand x = Shadowed(a);
    const Operand y = b != nullptr ? Shadowed(*b) : x;
    const uint8_t* shadow = check->Shadow(core, Access{bits, 1, false, Space::Ub});
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const uint32_t lanes = walk.ActiveIn(r);
        const uint8_t* row = bits + r * maskStep;
        const uint8_t* rowShadow = shadow + r * maskStep;
        const bool fromBits = AnySet(rowShadow, (lanes + 7) / 8);
        const bool fromA = RowSet(x, walk, r);
        const bool fromB = b != nullptr && RowSet(y, walk, r);
        if (!fromBits && !fromA && !fromB) {
            ClearRow(target, walk, r);
            continue;
        }
        bool any = false;
        for (uint32_t i = 0; i < lanes; ++i) {
            if (!walk.Takes(i)) {
                continue;
            }
            const bool first = ((row[i / 8] >> (i % 8)) & 1) != 0;
            const bool unwritten = ((rowShadow[i / 8] >> (i % 8)) & 1) != 0 ||
                                   (first ? fromA && AnySet(x.Lane(r, i), a.size)
                                          : fromB && AnySet(y.Lane(r, i), a.size));
            std::memset(target.Lane(r, i), unwritten ? 0xFF : 0, to.size);
            any = any || unwritten;
        }
        if (any) {
            const uint16_t origin =
                fromBits
                    ? check->OriginOf(core, Space::Ub, row, (lanes + 7) / 8, "the selection")
                    : RowOrigin(core, fromA ? a : *b, walk, r, fromA ? "source 0" : "source 1");
            TagRow(core, to, r, lanes, origin);
        }
    }
}

void TrackMove(Core& core, uint8_t* to, const uint8_t* from, uint32_t bytes) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    std::memcpy(ShadowOf(to), ShadowOf(from), bytes);
    if (AnySet(ShadowOf(from), bytes)) {
        const uint16_t origin = check->OriginOf(core, Space::Ub, from, bytes, "the source");
        check->Tag(core, Access{to, bytes, true, Space::Ub}, origin);
    }
}

void TrackTranspose(Core& core, uint8_t* const* to, const uint8_t* const* from) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    for (uint32_t i = 0; i < 16; ++i) {
        if (!AnySet(ShadowOf(from[i]), kBlockBytes)) {
            continue;
        }
        const uint16_t origin = check->OriginOf(core, Space::Ub, from[i], kBlockBytes, "a source");
        for (uint32_t j = 0; j < 16; ++j) {
            check->Tag(core, Access{to[j], kBlockBytes, true, Space::Ub}, origin);
        }
        return;
    }
}

void TrackCompareMask(Core& core, uint8_t* bits, bool load) {
    if (MemoryOf(core) != nullptr) {
        uint8_t* shadow = ShadowOf(bits);
        uint8_t* held = StateOf(core).compareShadow;
        std::memcpy(load ? held : shadow, load ? shadow : held, 16);
    }
}

}  // namespace sim
