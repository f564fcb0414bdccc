// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The rules of hyper_parallel_kda/rules.py, in the same words: a caller of the C functions learns
// the same as one of the Python package.
#ifndef KDA_OP_HOST_COMMON_RULES_H
#define KDA_OP_HOST_COMMON_RULES_H

#include <cmath>

#include "stage_tiling.h"

namespace kda {

inline void ExpectScale(StageTiling& tiling, float scale) {
    if (!std::isfinite(scale)) {
        tiling.Fail("scale: expected a finite number, got %g", scale);
    }
}

inline void ExpectEpsilon(StageTiling& tiling, float epsilon) {
    if (!std::isfinite(epsilon) || epsilon < 0) {
        tiling.Fail("epsilon: expected a finite number >= 0, got %g", epsilon);
    }
}

inline void ExpectLowerBound(StageTiling& tiling, bool safeGate, float lowerBound) {
    if (safeGate && !(lowerBound >= -5.0f && lowerBound < 0.0f)) {
        tiling.Fail("lower_bound: expected a number in [-5, 0), got %g", lowerBound);
    }
    if (!std::isfinite(lowerBound)) {
        tiling.Fail("lower_bound: expected a finite number, got %g", lowerBound);
    }
}

inline void ExpectBetaOptions(StageTiling& tiling, bool betaSigmoid, bool negEigval) {
    if (negEigval && !betaSigmoid) {
        tiling.Fail(
            "allow_neg_eigval: expected False unless use_beta_sigmoid_in_kernel is True, got True");
    }
}

// a_log and dt_bias belong to the raw gate: an activated one leaves them unread.
inline void ExpectGateOptions(StageTiling& tiling, bool useGate, const Operand& aLog) {
    if (useGate && !aLog.present) {
        tiling.Fail("a_log: expected a float32 tensor [Hv] with use_gate_in_kernel=True, got none");
    }
}

// dt_bias is [Hv, K] or flat.
inline void ExpectGateParameters(StageTiling& tiling, const Operand& aLog, const Operand& dtBias,
                                 int64_t heads) {
    tiling.Expect(aLog, ge::DT_FLOAT, {heads});
    tiling.ExpectType(dtBias, ge::DT_FLOAT);
    const Dims full = {heads, kKeyDim};
    const Dims flat = {heads * kKeyDim};
    if (dtBias.present && dtBias.dims != full && dtBias.dims != flat) {
        tiling.Fail("dt_bias: expected shape %s or %s, got %s", DimsText(full).c_str(),
                    DimsText(flat).c_str(), DimsText(dtBias.dims).c_str());
    }
}

inline void ExpectBothOrNone(StageTiling& tiling, const Operand& first, const Operand& second) {
    if (first.present != second.present) {
        tiling.Fail("%s and %s: expected both or none, got only %s", first.name.c_str(),
                    second.name.c_str(), (first.present ? first : second).name.c_str());
    }
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_RULES_H
