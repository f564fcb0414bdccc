// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Where the log decay a of a token comes from, shared by host and kernels.
#ifndef KDA_OP_KERNEL_COMMON_GATE_KIND_H
#define KDA_OP_KERNEL_COMMON_GATE_KIND_H

#include <cstdint>

namespace kda {

// Only the safe gate has a bound that the kernels may rely on.
enum GateKind : int32_t {
    kGateActivated = 0,  // a = g, whatever it is
    kGateSoftplus = 1,   // a = -exp(a_log) softplus(g + dt_bias)
    kGateSafe = 2        // a = lower_bound sigmoid(exp(a_log) (g + dt_bias))
};

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_GATE_KIND_H
