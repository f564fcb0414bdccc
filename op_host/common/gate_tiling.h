// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// The gate's part of a tiling: which kind it is, and the unit of gk.
#ifndef KDA_OP_HOST_COMMON_GATE_TILING_H
#define KDA_OP_HOST_COMMON_GATE_TILING_H

#include "../../op_kernel/common/gate_kind.h"

namespace kda {

// What the kernels multiply gk by before exp: gk is in units of log2 when use_exp2, else in nats.
inline float GateFactor(bool useExp2) {
    return useExp2 ? 0.69314718055994530942f : 1.0f;
}
// gk of one nat.
inline float GateUnit(bool useExp2) {
    return useExp2 ? 1.44269504088896340736f : 1.0f;
}

inline int32_t GateKindOf(bool useGateInKernel, bool safeGate) {
    if (!useGateInKernel) {
        return kGateActivated;
    }
    return safeGate ? kGateSafe : kGateSoftplus;
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_GATE_TILING_H
