// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef TESTS_SIMULATOR_KERNELS_RACE_TILES_H
#define TESTS_SIMULATOR_KERNELS_RACE_TILES_H

#include "launcher.h"

// What the kernels of races.cpp and race_programs.cpp share.
namespace races {

using namespace AscendC;

constexpr int32_t kCount = 256;  // floats: 1 KB
constexpr uint32_t kBytes = 1024;

// A tile in UB and what every kernel on an AIV needs.
struct Vectors {
    explicit Vectors(GM_ADDR tiling) {
        params = *reinterpret_cast<__gm__ TestParams*>(tiling);
        ordered = params.v[0] != 0;
        pipe.InitBuffer(buffer, 8 * kBytes);
        all = buffer.Get<float>();
    }
    LocalTensor<float> Tile(uint32_t i) { return all[i * kCount]; }

    TestParams params;
    bool ordered;
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    LocalTensor<float> all;
};

template <HardEvent kEvent>
void Order(int32_t id = 0) {
    SetFlag<kEvent>(id);
    WaitFlag<kEvent>(id);
}

}  // namespace races

#endif  // TESTS_SIMULATOR_KERNELS_RACE_TILES_H
