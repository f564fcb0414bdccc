// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CUBE_OPS_H
#define SIM_CUBE_OPS_H

#include "ascendc/cube_params.h"
#include "sim/core.h"

namespace sim {

void LoadFractals(const Local& dst, const Local& src, DType type,
                  const AscendC::LoadData2DParams& params, const Where& where);
void LoadFractalsGm(const Local& dst, Global src, DType type,
                    const AscendC::LoadData2DParams& params, const Where& where);
void LoadTransposed(const Local& dst, const Local& src, DType type,
                    const AscendC::LoadData2dTransposeParams& params, const Where& where);
void InitFractals(const Local& dst, DType type, uint32_t repeats, uint32_t blocks, uint32_t gap,
                  uint32_t bits, const Where& where);
void MatrixMultiply(const Local& c, const Local& a, const Local& b, DType type, const Local* bias,
                    const AscendC::MmadParams& params, const Where& where);
void FixpipeToGm(Global dst, const Local& src, DType type, bool rowMajor,
                 const AscendC::FixpipeParamsV220& params, const Where& where);
void FixpipeToL1(const Local& dst, const Local& src, DType type,
                 const AscendC::FixpipeParamsV220& params, const Where& where);

// For modes of the matrix unit that are off in every kernel here.
inline void RefuseMode(bool on, const char* name) {
    if (on) {
        This().Fail("%s(true) is not modelled", name);
    }
}

// C[m][n] (+)= A B on fractals held as float; the micro-kernel behind MatrixMultiply.
// a: [ceil(m/16)][kBlocks][16][ck], b: [kBlocks][ceil(n/16)][ck][16] with a pitch of 256 floats a
// fractal, c: [ceil(n/16)][rows][16].
void MultiplyFractals(float* c, const float* a, const float* b, uint32_t m, uint32_t n, uint32_t k,
                      uint32_t blockK, bool accumulate);

}  // namespace sim

#endif  // SIM_CUBE_OPS_H
