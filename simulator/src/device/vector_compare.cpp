// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "convert.h"
#include "defined.h"

namespace sim {

namespace {

using AscendC::CMPMODE;
using AscendC::SELMODE;

struct Less {
    template <typename T>
    bool operator()(T a, T b) const {
        return a < b;
    }
};
struct LessEqual {
    template <typename T>
    bool operator()(T a, T b) const {
        return a <= b;
    }
};
struct Equal {
    template <typename T>
    bool operator()(T a, T b) const {
        return a == b;
    }
};

// Bit i of the result says whether lane i holds; step 0 repeats b's first value.
template <typename Holds, typename T>
void CompareLanes(const T* a, uint32_t stepA, const T* b, uint32_t stepB, bool negate,
                  uint32_t lanes, uint8_t* bits) {
    for (uint32_t first = 0; first < lanes; first += 8) {
        const uint32_t count = std::min(8u, lanes - first);
        uint32_t holds = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const bool is = Holds()(a[(first + i) * stepA], b[(first + i) * stepB]);
            holds |= static_cast<uint32_t>(is != negate) << i;
        }
        const uint32_t keep = bits[first / 8] & ~((1u << count) - 1);
        bits[first / 8] = static_cast<uint8_t>(holds | keep);
    }
}

template <typename T>
void CompareRow(CMPMODE mode, const T* a, const T* b, bool scalar, uint32_t lanes, uint8_t* bits) {
    const uint32_t step = scalar ? 0 : 1;
    switch (mode) {
        case CMPMODE::LT:
            return CompareLanes<Less>(a, 1, b, step, false, lanes, bits);
        case CMPMODE::GT:
            return CompareLanes<Less>(b, step, a, 1, false, lanes, bits);
        case CMPMODE::EQ:
            return CompareLanes<Equal>(a, 1, b, step, false, lanes, bits);
        case CMPMODE::LE:
            return CompareLanes<LessEqual>(a, 1, b, step, false, lanes, bits);
        case CMPMODE::GE:
            return CompareLanes<LessEqual>(b, step, a, 1, false, lanes, bits);
        default:
            return CompareLanes<Equal>(a, 1, b, step, true, lanes, bits);
    }
}

inline uint8_t Byte(Int8 lanes) {
#if defined(__AVX__)
    return static_cast<uint8_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(lanes)));
#else
    uint32_t byte = 0;
    for (int i = 0; i < 8; ++i) {
        byte |= lanes[i] != 0 ? 1u << i : 0;
    }
    return static_cast<uint8_t>(byte);
#endif
}

// Eight floats to a byte; a tail lane by lane.
void CompareFloats(CMPMODE mode, const float* a, const float* b, bool scalar, uint32_t lanes,
                   uint8_t* bits) {
    const Float8 filled = Float8{} + b[0];
    const uint32_t whole = lanes / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8) {
        const Float8 x = LoadFloat8(a + i);
        const Float8 y = scalar ? filled : LoadFloat8(b + i);
        switch (mode) {
            case CMPMODE::LT:
                bits[i / 8] = Byte(x < y);
                break;
            case CMPMODE::GT:
                bits[i / 8] = Byte(x > y);
                break;
            case CMPMODE::EQ:
                bits[i / 8] = Byte(x == y);
                break;
            case CMPMODE::LE:
                bits[i / 8] = Byte(x <= y);
                break;
            case CMPMODE::GE:
                bits[i / 8] = Byte(x >= y);
                break;
            default:
                bits[i / 8] = Byte(x != y);
                break;
        }
    }
    if (whole < lanes) {
        CompareRow(mode, a + whole, scalar ? b : b + whole, scalar, lanes - whole,
                   bits + whole / 8);
    }
}

// One row of an operand as contiguous values; half becomes float.
const void* RowValues(DType type, const Operand& operand, const Walk& walk, uint32_t row,
                      uint32_t lanes, uint8_t* gathered, float* converted) {
    const uint8_t* values = operand.base + row * operand.row;
    if (!Packed(operand, walk)) {
        GatherRow(gathered, operand, row, lanes);
        values = gathered;
    }
    if (type == DType::F16) {
        HalfToFloat(converted, reinterpret_cast<const uint16_t*>(values), lanes);
        return converted;
    }
    return values;
}

}  // namespace

void VecCompare(DType type, CMPMODE mode, const Local* dst, const Local& src0, const Local* src1,
                uint32_t scalar, const Lanes& lanes, Stride s0, Stride s1, const Where& where) {
    Core& core = This();
    StartVector(core, src1 != nullptr ? Op::Compare : Op::CompareScalar, where);
    if (type == DType::I32 && mode != CMPMODE::EQ) {
        core.Fail("int32_t supports EQ only");
    }
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    if (lanes.counted && lanes.count * size % kRepeatBytes != 0) {
        core.Fail("%lld elements: their bytes must be a multiple of 256",
                  static_cast<long long>(lanes.count));
    }
    const Operand a = Bind(core, src0, size, s0, walk, "source 0");
    Operand b = a;
    if (src1 != nullptr) {
        b = Bind(core, *src1, size, s1, walk, "source 1");
    }
    if (walk.rows == 0) {
        return;
    }
    const uint32_t rowBytes = walk.lanes / 8;
    uint8_t* out = reinterpret_cast<uint8_t*>(core.compareMask);
    if (dst != nullptr) {
        core.CheckSpace(*dst, Space::Ub, "the destination");
        core.CheckAlign(*dst, kBlockBytes, "the destination");
        out = core.Check(*dst, 0, static_cast<int64_t>(walk.rows) * rowBytes, "the destination");
    }
    Report(core, core.op,
           {AccessOf(a, walk, false),
            AccessOf(b, walk, false),
            {out, dst != nullptr ? walk.rows * rowBytes : 0, true, Space::Ub}});
    if constexpr (kTracksDefined) {
        TrackCompare(core, walk, a, src1 != nullptr ? &b : nullptr, out, rowBytes);
    }
    float scalarValue =
        type == DType::F16 ? HalfBitsToFloat(static_cast<uint16_t>(scalar)) : FloatOf(scalar);
    const bool scalarForm = src1 == nullptr;
    if (type == DType::F32 && walk.active == walk.lanes && !walk.bits && Contiguous(a, walk) &&
        (scalarForm || Contiguous(b, walk))) {
        const uint32_t count = (walk.rows - 1) * walk.lanes + walk.lastActive;
        return CompareFloats(mode, reinterpret_cast<const float*>(a.base),
                             scalarForm ? &scalarValue : reinterpret_cast<const float*>(b.base),
                             scalarForm, count, out);
    }
    alignas(32) uint8_t rowA[kRepeatBytes];
    alignas(32) uint8_t rowB[kRepeatBytes];
    float floatA[128];
    float floatB[128];
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const uint32_t count = walk.ActiveIn(r);
        const void* x = RowValues(type, a, walk, r, count, rowA, floatA);
        const void* y = src1 != nullptr      ? RowValues(type, b, walk, r, count, rowB, floatB)
                        : type == DType::I32 ? static_cast<const void*>(&scalar)
                                             : &scalarValue;
        uint8_t bits[16];
        std::memcpy(bits, out + r * rowBytes, rowBytes);
        if (type == DType::I32) {
            CompareRow(mode, static_cast<const int32_t*>(x), static_cast<const int32_t*>(y),
                       src1 == nullptr, count, bits);
        } else {
            CompareFloats(mode, static_cast<const float*>(x), static_cast<const float*>(y),
                          src1 == nullptr, count, bits);
        }
        // Lanes outside a mask keep their bits.
        if (walk.bits) {
            for (uint32_t i = 0; i < count; ++i) {
                if (!walk.Takes(i)) {
                    const uint8_t bit = static_cast<uint8_t>(1u << (i % 8));
                    bits[i / 8] = static_cast<uint8_t>((bits[i / 8] & ~bit) |
                                                       (out[r * rowBytes + i / 8] & bit));
                }
            }
        }
        std::memcpy(out + r * rowBytes, bits, rowBytes);
    }
}

void VecCompareMask(const Local& tensor, bool load, const Where& where) {
    Core& core = This();
    StartVector(core, load ? Op::SetCmpMask : Op::GetCmpMask, where);
    core.CheckSpace(tensor, Space::Ub, "the tensor");
    core.CheckAlign(tensor, 16, "the tensor");
    uint8_t* bits = core.Check(tensor, 0, 16, "the tensor");
    Report(core, core.op, {{bits, 16, !load, Space::Ub}});
    if constexpr (kTracksDefined) {
        TrackCompareMask(core, bits, load);
    }
    if (load) {
        std::memcpy(core.compareMask, bits, 16);
    } else {
        std::memcpy(bits, core.compareMask, 16);
    }
}

namespace {

template <typename T>
void SelectRow(T* d, const T* a, const T* b, bool scalar, const uint8_t* bits, uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; ++i) {
        d[i] = ((bits[i / 8] >> (i % 8)) & 1) != 0 ? a[i] : b[scalar ? 0 : i];
    }
}

// Whole bytes of the mask: eight floats at a time.
void SelectRow8(float* d, const float* a, const float* b, bool scalar, const uint8_t* bits,
                uint32_t lanes) {
    const Int8 lane{1, 2, 4, 8, 16, 32, 64, 128};
    const Float8 filled = scalar ? Float8{} + b[0] : Float8{};
    for (uint32_t i = 0; i < lanes; i += 8) {
        const Int8 byte = Int8{} + static_cast<int32_t>(bits[i / 8]);
        const Float8 other = scalar ? filled : LoadFloat8(b + i);
        StoreFloat8(d + i, ((byte & lane) != 0) ? LoadFloat8(a + i) : other);
    }
}

}  // namespace

void VecSelect(DType type, SELMODE mode, const Local& dst, const Local* select, const Local& src0,
               const Local* src1, uint32_t scalar, const Lanes& lanes, Stride d, Stride s0,
               Stride s1, const Where& where) {
    Core& core = This();
    StartVector(core, Op::Select, where);
    if ((mode == SELMODE::VSEL_TENSOR_SCALAR_MODE) != (src1 == nullptr)) {
        core.Fail("mode %d with a %s as the second source", static_cast<int>(mode),
                  src1 == nullptr ? "scalar" : "tensor");
    }
    const uint32_t size = SizeOf(type);
    const Walk walk = Resolve(core, lanes, size);
    const Operand to = Bind(core, dst, size, d, walk, "the destination");
    const Operand a = Bind(core, src0, size, s0, walk, "source 0");
    Operand b = a;
    if (src1 != nullptr) {
        b = Bind(core, *src1, size, s1, walk, "source 1");
    }
    if (walk.rows == 0) {
        return;
    }
    // Mode 0 uses one row of bits for every repeat, the others a row each.
    const uint32_t rowBytes = walk.lanes / 8;
    const uint32_t maskStep = mode == SELMODE::VSEL_CMPMASK_SPR ? 0 : rowBytes;
    const uint8_t* bits = reinterpret_cast<const uint8_t*>(core.compareMask);
    const uint32_t maskBytes = maskStep * (walk.rows - 1) + (walk.lastActive + 7) / 8;
    if (select != nullptr) {
        core.CheckSpace(*select, Space::Ub, "the selection");
        core.CheckAlign(*select, mode == SELMODE::VSEL_CMPMASK_SPR ? 16 : kBlockBytes,
                        "the selection");
        bits = core.Check(*select, 0, maskBytes, "the selection");
    } else if (mode != SELMODE::VSEL_CMPMASK_SPR && maskStep != 0 && walk.rows > 1) {
        core.Fail("the compare mask register serves VSEL_CMPMASK_SPR only");
    }
    CheckOverlap(core, walk, to, a, false);
    if (src1 != nullptr) {
        CheckOverlap(core, walk, to, b, false);
    }
    Report(core, Op::Select,
           {{bits, select != nullptr ? maskBytes : 0, false, Space::Ub},
            AccessOf(a, walk, false),
            AccessOf(b, walk, false),
            AccessOf(to, walk, true)});
    if constexpr (kTracksDefined) {
        TrackSelect(core, walk, to, a, src1 != nullptr ? &b : nullptr, bits, maskStep);
    }
    alignas(32) uint8_t rowA[kRepeatBytes];
    alignas(32) uint8_t rowB[kRepeatBytes];
    alignas(32) uint8_t rowD[kRepeatBytes];
    const bool plainD = !walk.bits && Packed(to, walk);
    for (uint32_t r = 0; r < walk.rows; ++r) {
        const uint32_t count = walk.ActiveIn(r);
        const uint8_t* rowBits = bits + r * maskStep;
        const uint8_t* x = a.base + r * a.row;
        const uint8_t* y =
            src1 != nullptr ? b.base + r * b.row : reinterpret_cast<const uint8_t*>(&scalar);
        if (!Packed(a, walk)) {
            GatherRow(rowA, a, r, count);
            x = rowA;
        }
        if (src1 != nullptr && !Packed(b, walk)) {
            GatherRow(rowB, b, r, count);
            y = rowB;
        }
        uint8_t* out = plainD ? to.base + r * to.row : rowD;
        if (size == 4 && count % 8 == 0) {
            SelectRow8(reinterpret_cast<float*>(out), reinterpret_cast<const float*>(x),
                       reinterpret_cast<const float*>(y), src1 == nullptr, rowBits, count);
        } else if (size == 4) {
            SelectRow(reinterpret_cast<uint32_t*>(out), reinterpret_cast<const uint32_t*>(x),
                      reinterpret_cast<const uint32_t*>(y), src1 == nullptr, rowBits, count);
        } else {
            SelectRow(reinterpret_cast<uint16_t*>(out), reinterpret_cast<const uint16_t*>(x),
                      reinterpret_cast<const uint16_t*>(y), src1 == nullptr, rowBits, count);
        }
        if (!plainD) {
            ScatterRow(to, rowD, r, count, walk);
        }
    }
}

}  // namespace sim
