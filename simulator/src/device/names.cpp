// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "ascendc/types.h"
#include "sim/machine.h"

namespace sim {

const char* Name(Space space) {
    static const char* const names[] = {"GM",  "UB",  "L1",         "L0A",
                                        "L0B", "L0C", "bias table", "fixpipe buffer"};
    return names[static_cast<size_t>(space)];
}

const char* Name(Pipe pipe) {
    static const char* const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
    return names[static_cast<size_t>(pipe)];
}

const char* Name(DType type) {
    static const char* const names[] = {"float",    "half",    "bfloat16_t", "int8_t",
                                        "uint8_t",  "int16_t", "uint16_t",   "int32_t",
                                        "uint32_t", "int64_t", "uint64_t",   "nothing"};
    return names[static_cast<size_t>(type)];
}

uint32_t SizeOf(DType type) {
    static const uint8_t sizes[] = {4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
    return sizes[static_cast<size_t>(type)];
}

const char* Name(Op op) {
    static const char* const names[] = {
#define SIM_NAME(name, pipe) #name,
        SIM_INSTRUCTIONS(SIM_NAME)
#undef SIM_NAME
    };
    return names[static_cast<size_t>(op)];
}

Pipe PipeOf(Op op) {
    static const Pipe pipes[] = {
#define SIM_PIPE(name, pipe) Pipe::pipe,
        SIM_INSTRUCTIONS(SIM_PIPE)
#undef SIM_PIPE
    };
    return pipes[static_cast<size_t>(op)];
}

const char* Name(AscendC::TPosition position) {
    static const char* const names[] = {
        "GM",    "A1",     "A2",      "B1",  "B2",   "C1",        "C2",           "CO1", "CO2",
        "VECIN", "VECOUT", "VECCALC", "SPM", "TSCM", "C2PIPE2GM", "C2PIPE2LOCAL", "MAX"};
    return names[static_cast<size_t>(position)];
}

const char* Name(AscendC::HardEvent event) {
    static const char* const names[] = {
        "MTE2_MTE1", "MTE1_MTE2", "MTE1_M",    "M_MTE1",   "MTE2_V",   "V_MTE2",
        "MTE3_V",    "V_MTE3",    "M_V",       "V_M",      "V_V",      "MTE3_MTE1",
        "MTE1_MTE3", "MTE1_V",    "MTE2_M",    "M_MTE2",   "V_MTE1",   "M_FIX",
        "FIX_M",     "MTE3_MTE2", "MTE2_MTE3", "S_V",      "V_S",      "S_MTE2",
        "MTE2_S",    "S_MTE3",    "MTE3_S",    "MTE2_FIX", "FIX_MTE2", "FIX_S",
        "M_S",       "FIX_MTE3",  "MTE1_FIX",  "FIX_MTE1", "FIX_FIX",  "MAX"};
    return names[static_cast<size_t>(event)];
}

}  // namespace sim
