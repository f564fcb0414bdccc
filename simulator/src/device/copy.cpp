// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "sim/copy_ops.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "defined.h"

namespace sim {

std::mutex& AtomicMutex() {
    static std::mutex* mutex = new std::mutex;
    return *mutex;
}

namespace {

constexpr int64_t kMaxBlocks = 4095;

int64_t RoundUp(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

void CheckCount(Core& core, int64_t blocks) {
    if (blocks > kMaxBlocks) {
        core.Fail("blockCount %lld: at most %lld", static_cast<long long>(blocks),
                  static_cast<long long>(kMaxBlocks));
    }
}

// The copy's memory must be the core's own kind.
Space LocalSpace(Core& core, const Local& local, const char* operand) {
    const Space space = SpaceOf(local.position);
    if (local.base == nullptr) {
        core.CheckSpace(local, Space::Ub, operand);
    }
    if (space == Space::Ub) {
        core.NeedVector();
    } else if (space == Space::L1) {
        core.NeedCube();
    } else {
        core.Fail("%s is in %s: UB or L1 only", operand, Name(space));
    }
    return space;
}

void CopyRows(uint8_t* dst, int64_t dstStride, const uint8_t* src, int64_t srcStride,
              uint32_t count, int64_t bytes) {
    if (dstStride == bytes && srcStride == bytes) {
        std::memmove(dst, src, static_cast<size_t>(bytes * count));
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        std::memcpy(dst + i * dstStride, src + i * srcStride, static_cast<size_t>(bytes));
    }
}

// The shadow of a copy of rows; to global memory with the atomic mode that is on. A template, so
// that the plain library does not instantiate it.
template <typename Copy>
void TrackRows(Core& core, const Access& read, const Access& write, const Copy& copy) {
    TrackCopy(core, read, write, [&](uint8_t* to, const uint8_t* from) {
        if (write.space != Space::Gm || core.atomic == AtomicOp::None) {
            CopyRows(to, copy.dstStride, from, copy.srcStride, copy.count, copy.bytes);
            return;
        }
        for (uint32_t i = 0; i < copy.count; ++i) {
            ShadowStore(core, to + i * copy.dstStride, from + i * copy.srcStride, copy.bytes);
        }
    });
}

template <typename T>
void Combine(AtomicOp op, uint8_t* dst, const uint8_t* src, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(sizeof(T))) {
        T old;
        T add;
        std::memcpy(&old, dst + i, sizeof(T));
        std::memcpy(&add, src + i, sizeof(T));
        using Wide = typename std::conditional<std::is_integral<T>::value, int32_t, float>::type;
        const Wide a = static_cast<Wide>(old);
        const Wide b = static_cast<Wide>(add);
        Wide result = op == AtomicOp::Max ? std::max(a, b) : std::min(a, b);
        if (op == AtomicOp::Add) {
            // Integers wrap.
            result = std::is_integral<T>::value
                         ? static_cast<Wide>(static_cast<uint32_t>(static_cast<int32_t>(a)) +
                                             static_cast<uint32_t>(static_cast<int32_t>(b)))
                         : a + b;
        }
        const T value = static_cast<T>(result);
        std::memcpy(dst + i, &value, sizeof(T));
    }
}

}  // namespace

void StoreGm(Core& core, uint8_t* dst, const uint8_t* src, DType type, int64_t bytes) {
    if (core.atomic == AtomicOp::None) {
        std::memcpy(dst, src, static_cast<size_t>(bytes));
        return;
    }
    if (type != core.atomicType) {
        core.Fail("the atomic mode is for %s, the data is %s", Name(core.atomicType), Name(type));
    }
    std::lock_guard<std::mutex> lock(AtomicMutex());
    switch (type) {
        case DType::F32:
            return Combine<float>(core.atomic, dst, src, bytes);
        case DType::F16:
            return Combine<half>(core.atomic, dst, src, bytes);
        case DType::BF16:
            return Combine<bfloat16_t>(core.atomic, dst, src, bytes);
        case DType::I32:
            return Combine<int32_t>(core.atomic, dst, src, bytes);
        case DType::I16:
            return Combine<int16_t>(core.atomic, dst, src, bytes);
        default:  // SetAtomicAdd takes no other type
            return Combine<int8_t>(core.atomic, dst, src, bytes);
    }
}

void CopyGmToLocal(const Local& dst, Global src, const BlockCopy& copy, const Where& where) {
    Core& core = This();
    const Op op = SpaceOf(dst.position) == Space::L1 ? Op::DataCopyGm2L1 : Op::DataCopyGm2Ub;
    core.Begin(op, where, copy.count);
    const Space space = LocalSpace(core, dst, "the destination");
    if (copy.count == 0 || copy.bytes == 0) {
        return;
    }
    CheckCount(core, copy.count);
    if (copy.bytes % kBlockBytes != 0) {
        core.Fail("%lld bytes: DataCopy moves multiples of 32 bytes",
                  static_cast<long long>(copy.bytes));
    }
    core.CheckAlign(dst, kBlockBytes, "the destination");
    const int64_t last = copy.count - 1;
    uint8_t* to = core.Check(dst, 0, last * copy.dstStride + copy.bytes, "the destination");
    core.CheckGm(src.address, last * copy.srcStride + copy.bytes, false, "the source");
    const uint32_t bytes = static_cast<uint32_t>(copy.bytes);
    const Access read{src.address, bytes, false, Space::Gm, copy.count, copy.srcStride};
    const Access write{to, bytes, true, space, copy.count, copy.dstStride};
    Report(core, op, {read, write});
    if constexpr (kTracksDefined) {
        TrackRows(core, read, write, copy);
    }
    CopyRows(to, copy.dstStride, src.address, copy.srcStride, copy.count, copy.bytes);
}

void CopyLocalToGm(Global dst, const Local& src, DType type, const BlockCopy& copy,
                   const Where& where) {
    Core& core = This();
    core.Begin(Op::DataCopyUb2Gm, where, copy.count);
    core.CheckSpace(src, Space::Ub, "the source");
    core.NeedVector();
    if (copy.count == 0 || copy.bytes == 0) {
        return;
    }
    CheckCount(core, copy.count);
    if (copy.bytes % kBlockBytes != 0) {
        core.Fail("%lld bytes: DataCopy moves multiples of 32 bytes",
                  static_cast<long long>(copy.bytes));
    }
    core.CheckAlign(src, kBlockBytes, "the source");
    const int64_t last = copy.count - 1;
    const uint8_t* from = core.Check(src, 0, last * copy.srcStride + copy.bytes, "the source");
    core.CheckGm(dst.address, last * copy.dstStride + copy.bytes, true, "the destination");
    const uint32_t bytes = static_cast<uint32_t>(copy.bytes);
    const Access read{from, bytes, false, Space::Ub, copy.count, copy.srcStride};
    const Access write{dst.address, bytes, true, Space::Gm, copy.count, copy.dstStride};
    Report(core, Op::DataCopyUb2Gm, {read, write});
    if constexpr (kTracksDefined) {
        TrackRows(core, read, write, copy);
    }
    for (uint32_t i = 0; i < copy.count; ++i) {
        StoreGm(core, dst.address + i * copy.dstStride, from + i * copy.srcStride, type,
                copy.bytes);
    }
}

void CopyLocalToLocal(const Local& dst, const Local& src, const BlockCopy& copy,
                      const Where& where) {
    Core& core = This();
    const Space to = SpaceOf(dst.position);
    const Op op = to == Space::Ub ? Op::DataCopyUb : Op::DataCopyL12Bt;
    core.Begin(op, where, static_cast<uint64_t>(RoundUp(copy.count * copy.bytes, 256) / 256));
    if (to == Space::Ub) {
        core.NeedVector();
        core.CheckSpace(src, Space::Ub, "the source");
    } else {
        core.NeedCube();
        core.CheckSpace(dst, Space::BiasTable, "the destination");
        core.CheckSpace(src, Space::L1, "the source");
    }
    if (copy.count == 0 || copy.bytes == 0) {
        return;
    }
    CheckCount(core, copy.count);
    const int64_t unit = to == Space::Ub ? 32 : 64;
    if (copy.bytes % unit != 0) {
        core.Fail("%lld bytes: it moves multiples of %lld bytes",
                  static_cast<long long>(copy.bytes), static_cast<long long>(unit));
    }
    core.CheckAlign(dst, static_cast<uint32_t>(unit), "the destination");
    core.CheckAlign(src, kBlockBytes, "the source");
    const int64_t last = copy.count - 1;
    uint8_t* d = core.Check(dst, 0, last * copy.dstStride + copy.bytes, "the destination");
    const uint8_t* s = core.Check(src, 0, last * copy.srcStride + copy.bytes, "the source");
    const uint32_t bytes = static_cast<uint32_t>(copy.bytes);
    const Access read{s, bytes, false, SpaceOf(src.position), copy.count, copy.srcStride};
    const Access write{d, bytes, true, to, copy.count, copy.dstStride};
    Report(core, op, {read, write});
    if constexpr (kTracksDefined) {
        TrackRows(core, read, write, copy);
    }
    CopyRows(d, copy.dstStride, s, copy.srcStride, copy.count, copy.bytes);
}

void CopyNd2Nz(const Local& dst, Global src, DType type, const AscendC::Nd2NzParams& p,
               const Where& where) {
    Core& core = This();
    core.Begin(Op::DataCopyNd2Nz, where, p.nValue);
    core.NeedCube();
    core.CheckSpace(dst, Space::L1, "the destination");
    if (p.ndNum == 0 || p.nValue == 0 || p.dValue == 0) {
        return;
    }
    if (p.ndNum > kMaxBlocks || p.nValue > 16384) {
        core.Fail("ndNum %u (at most 4095), nValue %u (at most 16384)", p.ndNum, p.nValue);
    }
    if (p.dstNzC0Stride > 16384 || p.dstNzNStride > 16384 || p.dstNzC0Stride == 0 ||
        p.dstNzNStride == 0) {
        core.Fail("dstNzC0Stride %u, dstNzNStride %u: they must be in 1..16384", p.dstNzC0Stride,
                  p.dstNzNStride);
    }
    if (p.srcDValue == 0 || (p.ndNum > 1 && p.dstNzMatrixStride > 16384)) {
        core.Fail("srcDValue %u (at least 1), dstNzMatrixStride %u (at most 16384)", p.srcDValue,
                  p.dstNzMatrixStride);
    }
    if (p.srcDValue < p.dValue && p.nValue > 1) {
        core.Fail("srcDValue %u is less than dValue %u", p.srcDValue, p.dValue);
    }
    const int64_t size = SizeOf(type);
    if (p.ndNum > 1 && (p.dstNzMatrixStride * size) % kBlockBytes != 0) {
        core.Fail("dstNzMatrixStride %u elements: matrices must start on 32 bytes",
                  p.dstNzMatrixStride);
    }
    core.CheckAlign(dst, kBlockBytes, "the destination");
    const int64_t rowBytes = p.dValue * size;
    const int64_t columns = (rowBytes + kBlockBytes - 1) / kBlockBytes;
    const int64_t c0Stride = p.dstNzC0Stride * 32ll;
    const int64_t nStride = p.dstNzNStride * 32ll;
    const int64_t dstMatrix = p.dstNzMatrixStride * size;
    const int64_t srcMatrix = p.srcNdMatrixStride * size;
    const int64_t srcRow = p.srcDValue * size;
    const int64_t lastMatrix = p.ndNum - 1;
    const int64_t lastRow = p.nValue - 1;
    uint8_t* to = core.Check(
        dst, 0, lastMatrix * dstMatrix + (columns - 1) * c0Stride + lastRow * nStride + kBlockBytes,
        "the destination");
    core.CheckGm(src.address, lastMatrix * srcMatrix + lastRow * srcRow + rowBytes, false,
                 "the source");
    const Access read{
        src.address, static_cast<uint32_t>(rowBytes), false, Space::Gm, p.nValue, srcRow, p.ndNum,
        srcMatrix};
    // Matrix by matrix; the columns of one are c0Stride apart.
    const Access write{to,
                       static_cast<uint32_t>(lastRow * nStride + kBlockBytes),
                       true,
                       Space::L1,
                       static_cast<uint32_t>(columns),
                       c0Stride,
                       p.ndNum,
                       dstMatrix};
    Report(core, Op::DataCopyNd2Nz, {read, write});
    const int64_t whole = rowBytes / kBlockBytes;
    const int64_t rest = rowBytes % kBlockBytes;
    const auto run = [&](uint8_t* target, const uint8_t* source) {
        for (uint32_t matrix = 0; matrix < p.ndNum; ++matrix) {
            for (uint32_t n = 0; n < p.nValue; ++n) {
                const uint8_t* row = source + matrix * srcMatrix + n * srcRow;
                uint8_t* out = target + matrix * dstMatrix + n * nStride;
                for (int64_t c = 0; c < whole; ++c) {
                    std::memcpy(out + c * c0Stride, row + c * kBlockBytes, kBlockBytes);
                }
                if (rest != 0) {
                    std::memset(out + whole * c0Stride, 0, kBlockBytes);
                    std::memcpy(out + whole * c0Stride, row + whole * kBlockBytes,
                                static_cast<size_t>(rest));
                }
            }
        }
    };
    if constexpr (kTracksDefined) {
        TrackCopy(core, read, write, run);
    }
    run(to, src.address);
}

void CopyPadIn(const Local& dst, Global src, DType type, const PadIn& copy, const Where& where) {
    Core& core = This();
    core.Begin(Op::DataCopyPadIn, where, copy.count);
    const Space space = LocalSpace(core, dst, "the destination");
    if (copy.count == 0 || copy.bytes == 0) {
        return;
    }
    CheckCount(core, copy.count);
    const int64_t size = SizeOf(type);
    if (copy.bytes > 2097151) {
        core.Fail("blockLen %u bytes: at most 2097151", copy.bytes);
    }
    if (copy.bytes % size != 0) {
        core.Fail("blockLen %u bytes is not a number of %s elements", copy.bytes, Name(type));
    }
    if (copy.left * size > 32 || copy.right * size > 32) {
        core.Fail("leftPadding %u, rightPadding %u elements: at most 32 bytes each", copy.left,
                  copy.right);
    }
    if (!copy.pad && (copy.left != 0 || copy.right != 0)) {
        core.Fail("leftPadding %u, rightPadding %u with isPad false", copy.left, copy.right);
    }
    if (size == 8 && (copy.left != 0 || copy.right != 0)) {
        core.Fail("8 byte elements take no padding");
    }
    core.CheckAlign(dst, kBlockBytes, "the destination");
    const int64_t left = copy.pad ? copy.left * size : 0;
    const int64_t right = copy.pad ? copy.right * size : 0;
    const int64_t blockBytes = RoundUp(left + copy.bytes + right, kBlockBytes);
    const int64_t dstStride = blockBytes + copy.dstGap * 32;
    const int64_t srcStride = copy.bytes + copy.srcGap;
    const int64_t last = copy.count - 1;
    uint8_t* to = core.Check(dst, 0, last * dstStride + blockBytes, "the destination");
    core.CheckGm(src.address, last * srcStride + copy.bytes, false, "the source");
    const Access read{src.address, copy.bytes, false, Space::Gm, copy.count, srcStride};
    const Access write{to, static_cast<uint32_t>(blockBytes), true, space, copy.count, dstStride};
    Report(core, Op::DataCopyPadIn, {read, write});
    const auto run = [&](uint8_t* target, const uint8_t* source, uint64_t value) {
        if (blockBytes == copy.bytes) {
            CopyRows(target, dstStride, source, srcStride, copy.count, copy.bytes);
            return;
        }
        for (uint32_t i = 0; i < copy.count; ++i) {
            uint8_t* block = target + i * dstStride;
            const int64_t end = left + copy.bytes;
            if (copy.pad) {
                for (int64_t b = 0; b < left; b += size) {
                    std::memcpy(block + b, &value, static_cast<size_t>(size));
                }
                for (int64_t b = end; b < blockBytes; b += size) {
                    std::memcpy(block + b, &value, static_cast<size_t>(size));
                }
            } else {
                // Undefined on the device: NaN in every floating format shows who relies on it,
                // and a shadow of ones says that it is unwritten.
                std::memset(block + end, 0xFF, static_cast<size_t>(blockBytes - end));
            }
            std::memcpy(block + left, source + i * srcStride, copy.bytes);
        }
    };
    if constexpr (kTracksDefined) {
        if (!copy.pad && blockBytes != copy.bytes) {
            TrackPadding(core, write, copy.bytes, "padding behind blockLen with isPad false");
        }
        TrackCopy(core, read, write,
                  [&](uint8_t* target, const uint8_t* source) { run(target, source, 0); });
    }
    run(to, src.address, copy.value);
}

void CopyPadOut(Global dst, const Local& src, DType type, const PadOut& copy, const Where& where) {
    Core& core = This();
    core.Begin(Op::DataCopyPadOut, where, copy.count);
    core.CheckSpace(src, Space::Ub, "the source");
    core.NeedVector();
    if (copy.count == 0 || copy.bytes == 0) {
        return;
    }
    CheckCount(core, copy.count);
    if (copy.bytes > 2097151) {
        core.Fail("blockLen %u bytes: at most 2097151", copy.bytes);
    }
    if (copy.bytes % SizeOf(type) != 0) {
        core.Fail("blockLen %u bytes is not a number of %s elements", copy.bytes, Name(type));
    }
    core.CheckAlign(src, kBlockBytes, "the source");
    const int64_t srcStride = RoundUp(copy.bytes, kBlockBytes) + copy.srcGap * 32;
    const int64_t dstStride = copy.bytes + copy.dstGap;
    const int64_t last = copy.count - 1;
    const uint8_t* from = core.Check(src, 0, last * srcStride + copy.bytes, "the source");
    core.CheckGm(dst.address, last * dstStride + copy.bytes, true, "the destination");
    const Access read{from, copy.bytes, false, Space::Ub, copy.count, srcStride};
    const Access write{dst.address, copy.bytes, true, Space::Gm, copy.count, dstStride};
    Report(core, Op::DataCopyPadOut, {read, write});
    if constexpr (kTracksDefined) {
        TrackRows(core, read, write, BlockCopy{copy.count, copy.bytes, srcStride, dstStride});
    }
    if (core.atomic == AtomicOp::None) {
        CopyRows(dst.address, dstStride, from, srcStride, copy.count, copy.bytes);
        return;
    }
    for (uint32_t i = 0; i < copy.count; ++i) {
        StoreGm(core, dst.address + i * dstStride, from + i * srcStride, type, copy.bytes);
    }
}

void SetAtomic(AtomicOp op, DType type, const Where& where) {
    Core& core = This();
    core.Begin(Op::SetAtomic, where);
    core.atomic = op;
    core.atomicType = type;
}

}  // namespace sim
