// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_VECTOR_ENGINE_H
#define SIM_VECTOR_ENGINE_H

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "sim/vector_ops.h"

// How vector instructions walk over memory. An instruction is a number of rows (its repeats), each
// a number of lanes in 32 B blocks; the whole instruction runs as one loop wherever strides allow.
namespace sim {

struct Walk {
    uint32_t rows = 0;
    uint32_t lanes = 0;       // of a full row
    uint32_t active = 0;      // leading lanes that take part
    uint32_t lastActive = 0;  // in the last row
    bool bits = false;        // lanes chosen by a pattern; `active` is then one past its last
    uint64_t low = 0;
    uint64_t high = 0;

    bool Takes(uint32_t lane) const {
        return !bits || (((lane < 64 ? low >> lane : high >> (lane - 64)) & 1) != 0);
    }
    uint32_t ActiveIn(uint32_t row) const { return row + 1 == rows ? lastActive : active; }
};

struct Operand {
    uint8_t* base;
    uint32_t size;  // of an element
    int64_t block;  // bytes from block to block
    int64_t row;    // bytes from row to row

    uint8_t* Lane(int64_t r, uint32_t lane) const {
        const uint32_t perBlock = kBlockBytes / size;
        return base + r * row + lane / perBlock * block + lane % perBlock * size;
    }
};

// Resolves the mask; counts the instruction's repeats. elementBytes is the widest operand's.
Walk Resolve(Core& core, const Lanes& lanes, uint32_t elementBytes);

// Checks and binds one operand.
Operand Bind(Core& core, const Local& local, uint32_t size, Stride stride, const Walk& walk,
             const char* name, uint32_t align = kBlockBytes);

// Refuses sources that the destination overlaps in a way the device does not support.
void CheckOverlap(Core& core, const Walk& walk, const Operand& dst, const Operand& src,
                  bool accumulating);

inline void StartVector(Core& core, Op op, const Where& where) {
    core.Begin(op, where, 0);
    core.NeedVector();
}
inline void CountRepeats(Core& core, const Walk& walk) {
    core.region->counters.repeats[static_cast<size_t>(core.op)] += walk.rows;
}

// A row's blocks lie one after the other.
inline bool Packed(const Operand& operand, const Walk& walk) {
    return operand.block == kBlockBytes || walk.active * operand.size <= kBlockBytes;
}

// Rows and blocks follow each other without gaps.
inline bool Contiguous(const Operand& operand, const Walk& walk) {
    return Packed(operand, walk) &&
           (walk.rows == 1 || operand.row == static_cast<int64_t>(walk.active) * operand.size);
}

// Inline, so that the plain library drops it with the hook.
inline Access AccessOf(const Operand& operand, const Walk& walk, bool write) {
    const uint32_t bytes = walk.active * operand.size;
    if (Packed(operand, walk)) {
        return Access{operand.base, bytes, write, Space::Ub, 1, 0, walk.rows, operand.row};
    }
    return Access{
        operand.base,  kBlockBytes, write,      Space::Ub, (bytes + kBlockBytes - 1) / kBlockBytes,
        operand.block, walk.rows,   operand.row};
}

inline void GatherRow(uint8_t* to, const Operand& from, int64_t row, uint32_t lanes) {
    const uint8_t* at = from.base + row * from.row;
    const uint32_t bytes = lanes * from.size;
    uint32_t done = 0;
    for (; done + kBlockBytes <= bytes; done += kBlockBytes, at += from.block) {
        std::memcpy(to + done, at, kBlockBytes);
    }
    if (done < bytes) {
        std::memcpy(to + done, at, bytes - done);
    }
}

inline void ScatterRow(const Operand& to, const uint8_t* from, int64_t row, uint32_t lanes,
                       const Walk& walk) {
    if (walk.bits) {
        for (uint32_t i = 0; i < lanes; ++i) {
            if (walk.Takes(i)) {
                std::memcpy(to.Lane(row, i), from + i * to.size, to.size);
            }
        }
        return;
    }
    uint8_t* at = to.base + row * to.row;
    const uint32_t bytes = lanes * to.size;
    uint32_t done = 0;
    for (; done + kBlockBytes <= bytes; done += kBlockBytes, at += to.block) {
        std::memcpy(at, from + done, kBlockBytes);
    }
    if (done < bytes) {
        std::memcpy(at, from + done, bytes - done);
    }
}

// Kernels that have a Block member run one 32 B block of b against all of a row.
template <typename Kernel, typename = void>
struct HasBlock : std::false_type {};
template <typename Kernel>
struct HasBlock<Kernel, std::void_t<decltype(&Kernel::Block)>> : std::true_type {};

template <typename D, typename A, typename B, typename Kernel>
void RunBlocks(const Walk& walk, const Operand& d, const Operand& a, const Operand& b,
               const Kernel& kernel) {
    constexpr uint32_t kPerBlock = kBlockBytes / sizeof(D);
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const uint32_t lanes = walk.ActiveIn(r);
        uint8_t* pd = d.base + r * d.row;
        const uint8_t* pa = a.base + r * a.row;
        const uint8_t* pb = b.base + r * b.row;
        uint32_t lane = 0;
        for (; lane + kPerBlock <= lanes; lane += kPerBlock) {
            kernel(reinterpret_cast<D*>(pd), reinterpret_cast<const A*>(pa),
                   reinterpret_cast<const B*>(pb), kPerBlock);
            pd += d.block;
            pa += a.block;
            pb += b.block;
        }
        if (lane < lanes) {
            kernel(reinterpret_cast<D*>(pd), reinterpret_cast<const A*>(pa),
                   reinterpret_cast<const B*>(pb), lanes - lane);
        }
    }
}

// Runs kernel(d, a, b, n) over the walk. Kernels loop over n consecutive elements, each depending
// on the same element of its sources (and of d) only. With one source pass it twice.
template <typename D, typename A, typename B, typename Kernel>
void RunRows(const Walk& walk, const Operand& d, const Operand& a, const Operand& b,
             const Kernel& kernel) {
    if (!walk.bits && Packed(d, walk) && Packed(a, walk) && Packed(b, walk)) {
        const int64_t lanes = walk.active;
        const bool joined = d.row == lanes * static_cast<int64_t>(sizeof(D)) &&
                            a.row == lanes * static_cast<int64_t>(sizeof(A)) &&
                            b.row == lanes * static_cast<int64_t>(sizeof(B));
        if (joined || walk.rows == 1) {
            const size_t count = static_cast<size_t>(walk.rows - 1) * walk.active + walk.lastActive;
            kernel(reinterpret_cast<D*>(d.base), reinterpret_cast<const A*>(a.base),
                   reinterpret_cast<const B*>(b.base), count);
            return;
        }
        for (uint32_t r = 0; r < walk.rows; ++r) {
            kernel(reinterpret_cast<D*>(d.base + r * d.row),
                   reinterpret_cast<const A*>(a.base + r * a.row),
                   reinterpret_cast<const B*>(b.base + r * b.row), walk.ActiveIn(r));
        }
        return;
    }
    if constexpr (HasBlock<Kernel>::value) {
        if (!walk.bits && b.block == 0 && Packed(d, walk) && Packed(a, walk)) {
            for (uint32_t r = 0; r < walk.rows; ++r) {
                kernel.Block(reinterpret_cast<D*>(d.base + r * d.row),
                             reinterpret_cast<const A*>(a.base + r * a.row),
                             reinterpret_cast<const B*>(b.base + r * b.row), walk.ActiveIn(r));
            }
            return;
        }
    }
    if constexpr (sizeof(D) == sizeof(A) && sizeof(A) == sizeof(B)) {
        // A broadcast column or blocks picked from several rows: whole blocks are what stays
        // together, and a constant count lets each become a vector instruction or two.
        if (!walk.bits) {
            RunBlocks<D, A, B>(walk, d, a, b, kernel);
            return;
        }
    }
    alignas(64) uint8_t rowD[256 * 8];
    alignas(64) uint8_t rowA[256 * 8];
    alignas(64) uint8_t rowB[256 * 8];
    const bool plainD = !walk.bits && Packed(d, walk);
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const uint32_t lanes = walk.ActiveIn(r);
        const A* pa = reinterpret_cast<const A*>(a.base + r * a.row);
        const B* pb = reinterpret_cast<const B*>(b.base + r * b.row);
        D* pd = reinterpret_cast<D*>(d.base + r * d.row);
        if (!Packed(a, walk)) {
            GatherRow(rowA, a, r, lanes);
            pa = reinterpret_cast<const A*>(rowA);
        }
        if (!Packed(b, walk)) {
            GatherRow(rowB, b, r, lanes);
            pb = reinterpret_cast<const B*>(rowB);
        }
        if (!plainD) {
            GatherRow(rowD, d, r, lanes);
            pd = reinterpret_cast<D*>(rowD);
        }
        kernel(pd, pa, pb, lanes);
        if (!plainD) {
            ScatterRow(d, rowD, r, lanes, walk);
        }
    }
}

}  // namespace sim

#endif  // SIM_VECTOR_ENGINE_H
