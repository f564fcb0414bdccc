// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>
#include <mutex>

#include "convert.h"
#include "defined.h"
#include "sim/copy_ops.h"
#include "sim/cube_ops.h"

namespace sim {

namespace {

using AscendC::FixpipeParamsV220;

constexpr float kMaxBf16 = 3.38953139e38f;
constexpr float kMaxHalf = 65504.0f;

void CheckParams(Core& core, const FixpipeParamsV220& p, DType type, bool rowMajor) {
    const QuantMode_t expected = type == DType::F32    ? QuantMode_t::NoQuant
                                 : type == DType::BF16 ? QuantMode_t::F322BF16
                                                       : QuantMode_t::F322F16;
    if (p.quantPre != expected) {
        core.Fail("quantPre %d with a result in %s: it must be %d", static_cast<int>(p.quantPre),
                  Name(type), static_cast<int>(expected));
    }
    const uint32_t unit = p.isChannelSplit ? 8 : 16;
    if (p.nSize > 4095 || p.nSize % unit != 0) {
        core.Fail("nSize %u: a multiple of %u up to 4095", p.nSize, unit);
    }
    if (rowMajor && p.mSize > 8192) {
        core.Fail("mSize %u: at most 8192 with NZ2ND", p.mSize);
    }
    if (p.isChannelSplit && (rowMajor || type != DType::F32)) {
        core.Fail("isChannelSplit: only for float in NZ");
    }
    if (p.dstStride == 0) {
        core.Fail("dstStride 0");
    }
    if (p.unitFlag != 0 && p.unitFlag != 2 && p.unitFlag != 3) {
        core.Fail("unitFlag %u: 0, 2 or 3", p.unitFlag);
    }
    if (rowMajor && p.ndNum > 1 &&
        (p.srcNdStride == 0 || p.srcNdStride > 512 || p.dstNdStride == 0)) {
        core.Fail("ndNum %u with srcNdStride %u (1..512), dstNdStride %u (1..65535)", p.ndNum,
                  p.srcNdStride, p.dstNdStride);
    }
}

// 16 floats on their way out: relu, saturation, conversion.
void Convert(const Core& core, uint8_t* dst, const float* src, DType type, bool relu,
             uint32_t count) {
    float row[16];
    if (relu || core.saturate) {
        const float limit = type == DType::F16 ? kMaxHalf : kMaxBf16;
        for (uint32_t i = 0; i < count; ++i) {
            float value = src[i];
            if (relu && value < 0) {
                value = 0;
            }
            if (core.saturate && type != DType::F32) {
                value = value != value   ? 0
                        : value > limit  ? limit
                        : value < -limit ? -limit
                                         : value;
            }
            row[i] = value;
        }
        src = row;
    }
    if (type == DType::F32) {
        std::memcpy(dst, src, count * sizeof(float));
    } else if (type == DType::BF16) {
        FloatToBf16(reinterpret_cast<uint16_t*>(dst), src, count);
    } else {
        FloatToHalf(reinterpret_cast<uint16_t*>(dst), src, count);
    }
}

// A row of 16-column pieces, `step` floats apart, with nothing but the conversion.
void StoreRow(uint8_t* row, const float* source, uint32_t step, uint32_t stripes, DType type) {
    for (uint32_t n1 = 0; n1 < stripes; ++n1, source += step) {
        if (type == DType::F32) {
            std::memcpy(row + n1 * 64, source, 64);
        } else if (type == DType::BF16) {
            FloatToBf16(reinterpret_cast<uint16_t*>(row + n1 * 32), source, 16);
        } else {
            FloatToHalf(reinterpret_cast<uint16_t*>(row + n1 * 32), source, 16);
        }
    }
}

const float* Source(Core& core, const Local& src, const FixpipeParamsV220& p, uint32_t matrices) {
    const int64_t stripes = (p.nSize + 15) / 16;
    const int64_t last = (matrices - 1) * p.srcNdStride * 1024ll +
                         (stripes - 1) * p.srcStride * 64ll + p.mSize * 64ll;
    return reinterpret_cast<const float*>(core.Check(src, 0, last, "the source"));
}

}  // namespace

void FixpipeToGm(Global dst, const Local& src, DType type, bool rowMajor,
                 const FixpipeParamsV220& p, const Where& where) {
    Core& core = This();
    core.Begin(Op::Fixpipe, where);
    core.NeedCube();
    core.CheckSpace(src, Space::L0C, "the source");
    core.CheckAlign(src, kSpaceAlign[static_cast<size_t>(Space::L0C)], "the source");
    const uint32_t matrices = rowMajor ? p.ndNum : 1;
    if (p.nSize == 0 || p.mSize == 0 || matrices == 0) {
        return;
    }
    CheckParams(core, p, type, rowMajor);
    const int64_t size = SizeOf(type);
    const uint32_t stripes = (p.nSize + 15u) / 16;
    const float* from = Source(core, src, p, matrices);
    const Access read{from,    p.mSize * 64u,      false,    Space::L0C,
                      stripes, p.srcStride * 64ll, matrices, p.srcNdStride * 1024ll};
    if (rowMajor) {
        const int64_t rowBytes = p.nSize * size;
        const int64_t pitch = p.dstStride * size;
        const int64_t matrix = p.dstNdStride * size;
        core.CheckGm(dst.address, (matrices - 1) * matrix + (p.mSize - 1) * pitch + rowBytes, true,
                     "the destination");
        const Access write{
            dst.address, static_cast<uint32_t>(rowBytes), true, Space::Gm, p.mSize, pitch, matrices,
            matrix};
        Report(core, Op::Fixpipe, {read, write});
        if constexpr (kTracksDefined) {
            TrackCopy(core, read, write, [&](uint8_t* to, const uint8_t* shadow) {
                for (uint32_t nd = 0; nd < matrices; ++nd) {
                    for (uint32_t i = 0; i < p.mSize; ++i) {
                        for (uint32_t n1 = 0; n1 < stripes; ++n1) {
                            ShadowElements(to + nd * matrix + i * pitch + n1 * 16 * size,
                                           static_cast<uint32_t>(size),
                                           shadow + nd * p.srcNdStride * 1024ll +
                                               (n1 * p.srcStride + i) * 64ll,
                                           4, 16, core.atomic != AtomicOp::None);
                        }
                    }
                }
            });
        }
        const bool plain = core.atomic == AtomicOp::None;
        const bool direct = plain && !p.reluEn && !core.saturate;
        for (uint32_t nd = 0; nd < matrices; ++nd) {
            const float* source = from + nd * p.srcNdStride * 256;
            for (uint32_t i = 0; i < p.mSize; ++i) {
                uint8_t* row = dst.address + nd * matrix + i * pitch;
                if (direct) {
                    StoreRow(row, source + i * 16, p.srcStride * 16u, stripes, type);
                    continue;
                }
                for (uint32_t n1 = 0; n1 < stripes; ++n1) {
                    const float* at = source + (n1 * p.srcStride + i) * 16;
                    if (plain) {
                        Convert(core, row + n1 * 16 * size, at, type, p.reluEn, 16);
                        continue;
                    }
                    uint8_t value[64];
                    Convert(core, value, at, type, p.reluEn, 16);
                    StoreGm(core, row + n1 * 16 * size, value, type, 16 * size);
                }
            }
        }
        return;
    }
    // NZ to NZ. Split channels make 8-column stripes out of 16-column ones.
    const uint32_t columns = p.isChannelSplit ? 8 : 16;
    const uint32_t outStripes = (p.nSize + columns - 1) / columns;
    const int64_t pitch = p.dstStride * 32ll;
    const int64_t blockBytes = columns * size;
    core.CheckGm(dst.address, (outStripes - 1) * pitch + p.mSize * blockBytes, true,
                 "the destination");
    const Access write{dst.address, static_cast<uint32_t>(p.mSize * blockBytes),
                       true,        Space::Gm,
                       outStripes,  pitch};
    Report(core, Op::Fixpipe, {read, write});
    if constexpr (kTracksDefined) {
        TrackCopy(core, read, write, [&](uint8_t* to, const uint8_t* shadow) {
            for (uint32_t s = 0; s < outStripes; ++s) {
                const uint32_t column = s * columns;
                for (uint32_t i = 0; i < p.mSize; ++i) {
                    ShadowElements(
                        to + s * pitch + i * blockBytes, static_cast<uint32_t>(size),
                        shadow + (column / 16 * p.srcStride + i) * 64ll + column % 16 * 4, 4,
                        columns, core.atomic != AtomicOp::None);
                }
            }
        });
    }
    for (uint32_t s = 0; s < outStripes; ++s) {
        const uint32_t column = s * columns;
        for (uint32_t i = 0; i < p.mSize; ++i) {
            uint8_t value[64];
            Convert(core, value, from + (column / 16 * p.srcStride + i) * 16 + column % 16, type,
                    p.reluEn, columns);
            StoreGm(core, dst.address + s * pitch + i * blockBytes, value, type, blockBytes);
        }
    }
}

void FixpipeToL1(const Local& dst, const Local& src, DType type, const FixpipeParamsV220& p,
                 const Where& where) {
    Core& core = This();
    core.Begin(Op::Fixpipe, where);
    core.NeedCube();
    core.CheckSpace(src, Space::L0C, "the source");
    core.CheckSpace(dst, Space::L1, "the destination");
    core.CheckAlign(src, kSpaceAlign[static_cast<size_t>(Space::L0C)], "the source");
    core.CheckAlign(dst, kBlockBytes, "the destination");
    if (p.nSize == 0 || p.mSize == 0) {
        return;
    }
    CheckParams(core, p, type, false);
    const uint32_t stripes = (p.nSize + 15u) / 16;
    const float* from = Source(core, src, p, 1);
    const int64_t pitch = p.dstStride * 32ll;
    uint8_t* to = core.Check(dst, 0, (stripes - 1) * pitch + p.mSize * 32ll, "the destination");
    const Access read{from, p.mSize * 64u, false, Space::L0C, stripes, p.srcStride * 64ll};
    const Access write{to, p.mSize * 32u, true, Space::L1, stripes, pitch};
    Report(core, Op::Fixpipe, {read, write});
    if constexpr (kTracksDefined) {
        TrackCopy(core, read, write, [&](uint8_t* target, const uint8_t* shadow) {
            for (uint32_t s = 0; s < stripes; ++s) {
                for (uint32_t i = 0; i < p.mSize; ++i) {
                    ShadowElements(target + s * pitch + i * 32, 2,
                                   shadow + (s * p.srcStride + i) * 64ll, 4, 16, false);
                }
            }
        });
    }
    for (uint32_t s = 0; s < stripes; ++s) {
        for (uint32_t i = 0; i < p.mSize; ++i) {
            Convert(core, to + s * pitch + i * 32, from + (s * p.srcStride + i) * 16, type,
                    p.reluEn, 16);
        }
    }
}

}  // namespace sim
