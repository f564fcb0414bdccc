// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <algorithm>
#include <cstring>

#include "convert.h"
#include "defined.h"
#include "sim/cube_ops.h"

namespace sim {

namespace {

struct L0 {
    uint32_t side;   // 0: L0A, 1: L0B
    uint32_t first;  // fractal
};

// Where `local` + its fractal lies in L0A or L0B.
L0 FractalOf(Core& core, const Local& local) {
    const Space space = SpaceOf(local.position);
    if (space != Space::L0A && space != Space::L0B) {
        core.CheckSpace(local, Space::L0A, "the destination");
    }
    core.CheckAlign(local, kFractalBytes, "the destination");
    const int64_t offset = local.Address() - core.memory[static_cast<size_t>(space)];
    return L0{space == Space::L0A ? 0u : 1u, static_cast<uint32_t>(offset / kFractalBytes)};
}

// One source fractal into the float form: as it is (A: [m][k] from [m][k]; B: [k][n] from [k][n]),
// or turned round.
void Put(float* dst, const uint8_t* src, DType type, bool turn) {
    if (type == DType::F32) {
        const float* from = reinterpret_cast<const float*>(src);
        if (!turn) {
            std::memcpy(dst, from, kFractalBytes);
            return;
        }
        for (uint32_t r = 0; r < 16; ++r) {
            for (uint32_t c = 0; c < 8; ++c) {
                dst[c * 16 + r] = from[r * 8 + c];
            }
        }
        return;
    }
    const uint16_t* from = reinterpret_cast<const uint16_t*>(src);
    float plain[256];
    float* out = turn ? plain : dst;
    if (type == DType::BF16) {
        Bf16ToFloat(out, from, 256);
    } else {
        HalfToFloat(out, from, 256);
    }
    if (turn) {
        Transpose16x16(dst, plain);
    }
}

// Two 16x8 fractals of float are the columns of one square; transposed, they split again.
void PutTransposed(float* dst, uint32_t second, const uint8_t* square, uint32_t side) {
    float turned[16][16];
    const float* source = reinterpret_cast<const float*>(square);
    for (uint32_t r = 0; r < 16; ++r) {
        for (uint32_t c = 0; c < 16; ++c) {
            turned[c][r] = source[(c / 8) * 128 + r * 8 + c % 8];
        }
    }
    for (uint32_t part = 0; part < 2; ++part) {
        float* out = dst + part * second;
        for (uint32_t r = 0; r < 16; ++r) {
            for (uint32_t c = 0; c < 8; ++c) {
                out[side == 0 ? r * 8 + c : c * 16 + r] = turned[r][part * 8 + c];
            }
        }
    }
}

}  // namespace

void LoadFractals(const Local& dst, const Local& src, DType type,
                  const AscendC::LoadData2DParams& p, const Where& where) {
    Core& core = This();
    core.Begin(Op::LoadData, where, p.repeatTimes);
    core.NeedCube();
    core.CheckSpace(src, Space::L1, "the source");
    if (p.ifTranspose && type == DType::F32) {
        core.Fail("ifTranspose with float: use LoadDataWithTranspose");
    }
    const L0 to = FractalOf(core, dst);
    core.CheckAlign(src, kBlockBytes, "the source");
    if (p.repeatTimes == 0) {
        return;
    }
    const int64_t last = p.repeatTimes - 1;
    const int64_t step = p.addrMode != 0 ? -static_cast<int64_t>(p.srcStride) : p.srcStride;
    const int64_t lastSource = p.startIndex + last * step;
    const int64_t low = std::min<int64_t>(p.startIndex, lastSource);
    const int64_t high = std::max<int64_t>(p.startIndex, lastSource) + 1;
    if (low < 0) {
        core.Fail("the source index falls below 0");
    }
    const uint8_t* from = core.Check(src, 0, high * kFractalBytes, "the source");
    core.Check(dst, 0, (last * (p.dstGap + 1) + 1) * kFractalBytes, "the destination");
    const Access read{from + low * kFractalBytes,
                      kFractalBytes,
                      false,
                      Space::L1,
                      p.repeatTimes,
                      p.srcStride * static_cast<int64_t>(kFractalBytes)};
    const Access write{dst.Address(), kFractalBytes,
                       true,          SpaceOf(dst.position),
                       p.repeatTimes, (p.dstGap + 1) * static_cast<int64_t>(kFractalBytes)};
    Report(core, Op::LoadData, {read, write});
    // L0A wants [m][k], which is the source's own order; L0B wants [k][n] from [n][k].
    const bool turn = (to.side == 1) != p.ifTranspose;
    const auto run = [&](float* fractals, const uint8_t* source) {
        for (uint32_t i = 0; i < p.repeatTimes; ++i) {
            const uint32_t fractal = to.first + i * (p.dstGap + 1u);
            Put(fractals + fractal * 256, source + (p.startIndex + i * step) * kFractalBytes, type,
                turn);
            core.fractalType[to.side][fractal] = type;
        }
    };
    if constexpr (kTracksDefined) {
        TrackLoad(core, read, write, Loaded{to.side, to.first, p.repeatTimes, p.dstGap + 1u},
                  [&](float* fractals, const uint8_t* source) {
                      run(fractals, source - low * kFractalBytes);
                  });
    }
    run(core.fractals[to.side], from);
}

void LoadFractalsGm(const Local& dst, Global src, DType type, const AscendC::LoadData2DParams& p,
                    const Where& where) {
    Core& core = This();
    core.Begin(Op::LoadDataGm, where, p.repeatTimes);
    core.NeedCube();
    if (p.ifTranspose) {
        core.Fail("ifTranspose from GM is not supported");
    }
    if (p.repeatTimes == 0) {
        return;
    }
    const Space space = SpaceOf(dst.position);
    const int64_t last = p.repeatTimes - 1;
    const int64_t sourceBytes = (p.startIndex + last * p.srcStride + 1) * kFractalBytes;
    const int64_t targetBytes = (last * (p.dstGap + 1) + 1) * kFractalBytes;
    core.CheckGm(src.address, sourceBytes, false, "the source");
    uint8_t* to = core.Check(dst, 0, targetBytes, "the destination");
    const uint8_t* from = src.address + p.startIndex * static_cast<int64_t>(kFractalBytes);
    const int64_t sourceStep = p.srcStride * static_cast<int64_t>(kFractalBytes);
    const int64_t targetStep = (p.dstGap + 1) * static_cast<int64_t>(kFractalBytes);
    const Access read{from, kFractalBytes, false, Space::Gm, p.repeatTimes, sourceStep};
    const Access write{to, kFractalBytes, true, space, p.repeatTimes, targetStep};
    Report(core, Op::LoadDataGm, {read, write});
    if (space == Space::L1) {
        core.CheckAlign(dst, kBlockBytes, "the destination");
        const auto run = [&](uint8_t* target, const uint8_t* source) {
            for (uint32_t i = 0; i < p.repeatTimes; ++i) {
                std::memcpy(target + i * targetStep, source + i * sourceStep, kFractalBytes);
            }
        };
        if constexpr (kTracksDefined) {
            TrackCopy(core, read, write, run);
        }
        run(to, from);
        return;
    }
    const L0 target = FractalOf(core, dst);
    const auto run = [&](float* fractals, const uint8_t* source) {
        for (uint32_t i = 0; i < p.repeatTimes; ++i) {
            const uint32_t fractal = target.first + i * (p.dstGap + 1u);
            Put(fractals + fractal * 256, source + i * sourceStep, type, target.side == 1);
            core.fractalType[target.side][fractal] = type;
        }
    };
    if constexpr (kTracksDefined) {
        TrackLoad(core, read, write,
                  Loaded{target.side, target.first, p.repeatTimes, p.dstGap + 1u}, run);
    }
    run(core.fractals[target.side], from);
}

void LoadTransposed(const Local& dst, const Local& src, DType type,
                    const AscendC::LoadData2dTransposeParams& p, const Where& where) {
    Core& core = This();
    core.Begin(Op::LoadDataWithTranspose, where, p.repeatTimes);
    core.NeedCube();
    core.CheckSpace(src, Space::L1, "the source");
    const L0 to = FractalOf(core, dst);
    core.CheckAlign(src, kBlockBytes, "the source");
    if (p.repeatTimes == 0) {
        return;
    }
    const bool wide = type == DType::F32;
    const int64_t square = wide ? 2 * kFractalBytes : kFractalBytes;
    const int64_t last = p.repeatTimes - 1;
    const int64_t step = p.addrMode != 0 ? -static_cast<int64_t>(p.srcStride) : p.srcStride;
    const int64_t lastSource = p.startIndex + last * step;
    const int64_t low = std::min<int64_t>(p.startIndex, lastSource);
    const int64_t high = std::max<int64_t>(p.startIndex, lastSource) + 1;
    if (low < 0) {
        core.Fail("the source index falls below 0");
    }
    const uint32_t second = wide ? p.dstFracGap + 1u : 0u;
    const uint8_t* from = core.Check(src, 0, high * square, "the source");
    core.Check(dst, 0, (last * (p.dstGap + 1) + second + 1) * kFractalBytes, "the destination");
    const Access read{from + low * square, static_cast<uint32_t>(square), false, Space::L1,
                      p.repeatTimes,       p.srcStride * square};
    const Access write{dst.Address(),  kFractalBytes,
                       true,           SpaceOf(dst.position),
                       wide ? 2u : 1u, second * static_cast<int64_t>(kFractalBytes),
                       p.repeatTimes,  (p.dstGap + 1) * static_cast<int64_t>(kFractalBytes)};
    Report(core, Op::LoadDataWithTranspose, {read, write});
    const auto run = [&](float* fractals, const uint8_t* start) {
        for (uint32_t i = 0; i < p.repeatTimes; ++i) {
            const uint8_t* block = start + (p.startIndex + i * step) * square;
            const uint32_t fractal = to.first + i * (p.dstGap + 1u);
            core.fractalType[to.side][fractal] = type;
            core.fractalType[to.side][fractal + second] = type;
            if (wide) {
                PutTransposed(fractals + fractal * 256, second * 256, block, to.side);
            } else {
                Put(fractals + fractal * 256, block, type, to.side == 0);
            }
        }
    };
    if constexpr (kTracksDefined) {
        TrackLoad(
            core, read, write, Loaded{to.side, to.first, p.repeatTimes, p.dstGap + 1u, second},
            [&](float* fractals, const uint8_t* source) { run(fractals, source - low * square); });
    }
    run(core.fractals[to.side], from);
}

void InitFractals(const Local& dst, DType type, uint32_t repeats, uint32_t blocks, uint32_t gap,
                  uint32_t bits, const Where& where) {
    Core& core = This();
    core.Begin(Op::InitConstValue, where, repeats);
    core.NeedCube();
    const Space space = SpaceOf(dst.position);
    const uint32_t unit = space == Space::L1 ? kBlockBytes : kFractalBytes;
    if (space != Space::L1 && space != Space::L0A && space != Space::L0B) {
        core.CheckSpace(dst, Space::L1, "the destination");
    }
    if (repeats == 0 || blocks == 0) {
        return;
    }
    core.CheckAlign(dst, unit, "the destination");
    const int64_t pitch = static_cast<int64_t>(blocks + gap) * unit;
    uint8_t* to = core.Check(dst, 0, (repeats - 1) * pitch + static_cast<int64_t>(blocks) * unit,
                             "the destination");
    const Access write{to, blocks * unit, true, space, repeats, pitch};
    Report(core, Op::InitConstValue, {write});
    const uint32_t size = SizeOf(type);
    if constexpr (kTracksDefined) {
        TrackWrite(core, write);
    }
    if (space == Space::L1) {
        for (uint32_t r = 0; r < repeats; ++r) {
            for (uint32_t b = 0; b < blocks * unit; b += size) {
                std::memcpy(to + r * pitch + b, &bits, size);
            }
        }
        return;
    }
    const uint32_t side = space == Space::L0A ? 0 : 1;
    const float value = type == DType::F32    ? FloatOf(bits)
                        : type == DType::BF16 ? Bf16BitsToFloat(static_cast<uint16_t>(bits))
                                              : HalfBitsToFloat(static_cast<uint16_t>(bits));
    const uint32_t first =
        static_cast<uint32_t>((to - core.memory[static_cast<size_t>(space)]) / kFractalBytes);
    if constexpr (kTracksDefined) {
        for (uint32_t r = 0; r < repeats; ++r) {
            NoteLoaded(core, Loaded{side, first + r * (blocks + gap), blocks, 1}, false);
        }
    }
    for (uint32_t r = 0; r < repeats; ++r) {
        for (uint32_t b = 0; b < blocks; ++b) {
            const uint32_t fractal = first + r * (blocks + gap) + b;
            for (uint32_t i = 0; i < 256; ++i) {
                core.fractals[side][fractal * 256 + i] = value;
            }
            core.fractalType[side][fractal] = type;
        }
    }
}

}  // namespace sim
