// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Where the log decay a of a token comes from, and how low it goes; shared by host and kernels.
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

// Where a gate has no bound, what a token decays by counts up to here, in nats. The factor has long
// been zero in fp32, from 104 nats on, and the sums over a chunk keep the decays of the other
// tokens: beside 1e6 nats they would be lost, beside infinity there are no differences.
constexpr float kGateFloor = -105.0f;

}  // namespace kda

#endif  // KDA_OP_KERNEL_COMMON_GATE_KIND_H
