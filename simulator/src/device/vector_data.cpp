// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "defined.h"

// Filling, copying and broadcasting blocks.
namespace sim {

namespace {

template <typename T>
struct Fill {
    T value;
    void operator()(T* d, const T*, const T*, size_t n) const {
        for (size_t i = 0; i < n; ++i) {
            d[i] = value;
        }
    }
};

template <typename T>
struct Take {
    void operator()(T* d, const T* a, const T*, size_t n) const {
        std::memmove(d, a, n * sizeof(T));
    }
};

template <typename T>
void Spread(uint8_t* dst, Stride d, const uint8_t* src, uint32_t repeats) {
    const T* values = reinterpret_cast<const T*>(src);
    for (uint32_t r = 0; r < repeats; ++r) {
        for (uint32_t b = 0; b < 8; ++b) {
            T* block = reinterpret_cast<T*>(
                dst + (static_cast<int64_t>(r) * d.repeat + static_cast<int64_t>(b) * d.block) *
                          kBlockBytes);
            const T value = values[r * 8 + b];
            for (uint32_t i = 0; i < kBlockBytes / sizeof(T); ++i) {
                block[i] = value;
            }
        }
    }
}

}  // namespace

void VecDuplicate(DType type, const Local& dst, uint32_t scalar, const Lanes& lanes, Stride d,
                  const Where& where) {
    Core& core = This();
    StartVector(core, Op::Duplicate, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    if (walk.rows == 0) {
        return;
    }
    Report(core, Op::Duplicate, {AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {});
    }
    if (size == 4) {
        RunRows<uint32_t, uint32_t, uint32_t>(walk, to, to, to, Fill<uint32_t>{scalar});
    } else {
        RunRows<uint16_t, uint16_t, uint16_t>(walk, to, to, to,
                                              Fill<uint16_t>{static_cast<uint16_t>(scalar)});
    }
}

void VecCopy(DType type, const Local& dst, const Local& src, const Lanes& lanes, Stride d, Stride s,
             const Where& where) {
    Core& core = This();
    StartVector(core, Op::Copy, where);
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    const Operand from = Bind(core, src, size, s, walk, "the source");
    if (walk.rows == 0) {
        return;
    }
    CheckOverlap(core, walk, to, from, false);
    Report(core, Op::Copy, {AccessOf(from, walk, false), AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackLanes(core, walk, to, {{&from, "the source"}});
    }
    if (size == 4) {
        RunRows<uint32_t, uint32_t, uint32_t>(walk, to, from, from, Take<uint32_t>());
    } else {
        RunRows<uint16_t, uint16_t, uint16_t>(walk, to, from, from, Take<uint16_t>());
    }
}

void VecBrcb(uint32_t elementBytes, const Local& dst, const Local& src, uint32_t repeats, Stride d,
             const Where& where) {
    Core& core = This();
    StartVector(core, Op::Brcb, where);
    core.region->counters.repeats[static_cast<size_t>(Op::Brcb)] += repeats;
    core.CheckSpace(dst, Space::Ub, "the destination");
    core.CheckSpace(src, Space::Ub, "the source");
    core.CheckAlign(dst, kBlockBytes, "the destination");
    core.CheckAlign(src, kBlockBytes, "the source");
    if (repeats > 254) {
        core.Fail("repeatTimes %u: at most 254", repeats);
    }
    if (repeats == 0) {
        return;
    }
    const int64_t end =
        (static_cast<int64_t>(repeats - 1) * d.repeat + 7ll * d.block + 1) * kBlockBytes;
    const int64_t sourceBytes = static_cast<int64_t>(repeats) * 8 * elementBytes;
    uint8_t* to = core.Check(dst, 0, end, "the destination");
    const uint8_t* from = core.Check(src, 0, sourceBytes, "the source");
    if (to < from + sourceBytes && from < to + end) {
        core.Fail("source and destination overlap");
    }
    const Access read{from, static_cast<uint32_t>(sourceBytes), false, Space::Ub};
    const Access write{to,      kBlockBytes,
                       true,    Space::Ub,
                       8,       d.block * static_cast<int64_t>(kBlockBytes),
                       repeats, d.repeat * static_cast<int64_t>(kBlockBytes)};
    Report(core, Op::Brcb, {read, write});
    const auto run = [&](uint8_t* target, const uint8_t* source) {
        if (elementBytes == 4) {
            Spread<uint32_t>(target, d, source, repeats);
        } else {
            Spread<uint16_t>(target, d, source, repeats);
        }
    };
    if constexpr (kTracksDefined) {
        TrackCopy(core, read, write, run);
    }
    run(to, from);
}

}  // namespace sim
