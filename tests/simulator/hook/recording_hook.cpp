// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>
#include <mutex>
#include <string>

#include "sim/core.h"

namespace {

std::mutex recordMutex;
std::string recorded;

// "<core> <pipe> <instruction> <line>" and one item an access or ordering, a line an instruction.
void Begin(const sim::Core& core, sim::Op op) {
    recorded += (core.isCube ? "AIC " : "AIV ") + std::string(sim::Name(sim::PipeOf(op))) + " " +
                sim::Name(op) + " " + std::to_string(core.where.line);
}

}  // namespace

namespace sim {

void Report(Core& core, Op op, std::initializer_list<Access> accesses) {
    std::lock_guard<std::mutex> lock(recordMutex);
    Begin(core, op);
    for (const Access& access : accesses) {
        if (access.bytes == 0) {
            continue;  // an operand that this call does not have
        }
        // Local accesses by their place in the core's memory, GM by its place in its tensor.
        const uint8_t* base = static_cast<const uint8_t*>(access.base);
        const uint8_t* memory = core.memory[static_cast<size_t>(access.space)];
        const long long at = memory != nullptr ? base - memory : -1;
        recorded += std::string(access.write ? " W " : " R ") + Name(access.space) + " " +
                    std::to_string(at) + " " + std::to_string(access.bytes) + " " +
                    std::to_string(access.inner) + " " + std::to_string(access.innerStride) + " " +
                    std::to_string(access.outer) + " " + std::to_string(access.outerStride);
    }
    recorded += "\n";
}

void Report(Core& core, Op op, const Ordering& ordering) {
    std::lock_guard<std::mutex> lock(recordMutex);
    Begin(core, op);
    recorded += " O " + std::to_string(ordering.event) + " " + std::to_string(ordering.id) + "\n";
}

}  // namespace sim

extern "C" size_t simTestTakeRecord(char* buffer, size_t cap) {
    std::lock_guard<std::mutex> lock(recordMutex);
    const size_t size = recorded.size();
    if (buffer != nullptr && cap > size) {
        std::memcpy(buffer, recorded.c_str(), size + 1);
        recorded.clear();
    }
    return size;
}
