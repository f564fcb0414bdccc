// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "statistics.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "launch_state.h"
#include "sim/sync_ops.h"

// Every shared object has its own list of kernels; weak, because it may have none.
extern "C" {
extern sim::KernelNote __start_sim_kernel_notes[] __attribute__((weak, visibility("hidden")));
extern sim::KernelNote __stop_sim_kernel_notes[] __attribute__((weak, visibility("hidden")));
}

namespace sim {

namespace {

struct KernelFigures {
    uint64_t launches = 0;
    Counters total{};
    std::map<uint32_t, Counters> regions;
};

std::mutex& FiguresMutex() {
    static std::mutex* mutex = new std::mutex;
    return *mutex;
}

std::map<std::string, KernelFigures>& Figures() {
    static auto* figures = new std::map<std::string, KernelFigures>;
    return *figures;
}

std::string Summary(const Counters& counters) {
    uint64_t calls = 0;
    uint64_t repeats = 0;
    for (size_t i = 0; i < kOps; ++i) {
        if (PipeOf(static_cast<Op>(i)) == Pipe::V) {
            calls += counters.calls[i];
            repeats += counters.repeats[i];
        }
    }
    return "\"mmad_macs\": " + std::to_string(counters.macs) +
           ", \"vector_instructions\": " + std::to_string(calls) +
           ", \"vector_repeats\": " + std::to_string(repeats) + ", \"scalar_reads\": " +
           std::to_string(counters.calls[static_cast<size_t>(Op::GetValue)]) +
           ", \"scalar_writes\": " +
           std::to_string(counters.calls[static_cast<size_t>(Op::SetValue)]);
}

std::string PerInstruction(const Counters& counters, bool repeats) {
    std::string text;
    for (size_t i = 0; i < kOps; ++i) {
        if (counters.calls[i] != 0) {
            text += (text.empty() ? "\"" : ", \"") + std::string(Name(static_cast<Op>(i))) +
                    "\": " + std::to_string(repeats ? counters.repeats[i] : counters.calls[i]);
        }
    }
    return "{" + text + "}";
}

std::string Json() {
    std::lock_guard<std::mutex> lock(FiguresMutex());
    std::string text = "{";
    for (const auto& [name, figures] : Figures()) {
        text += (text.size() == 1 ? "\"" : ", \"") + name +
                "\": {\"launches\": " + std::to_string(figures.launches) + ", " +
                Summary(figures.total) +
                ", \"instructions\": " + PerInstruction(figures.total, false) +
                ", \"repeats\": " + PerInstruction(figures.total, true) + ", \"regions\": {";
        bool first = true;
        for (const auto& [id, counters] : figures.regions) {
            text += (first ? "\"" : ", \"") + std::to_string(id) + "\": {" + Summary(counters) +
                    ", \"instructions\": " + PerInstruction(counters, false) +
                    ", \"repeats\": " + PerInstruction(counters, true) + "}";
            first = false;
        }
        text += "}}";
    }
    return text + "}";
}

}  // namespace

void Record(const std::string& kernel, const Counters& total, const std::vector<Region>& regions,
            bool newLaunch) {
    std::lock_guard<std::mutex> lock(FiguresMutex());
    KernelFigures& figures = Figures()[kernel];
    figures.launches += newLaunch ? 1 : 0;
    figures.total.Add(total);
    for (const Region& region : regions) {
        figures.regions[region.id].Add(region.counters);
    }
}

KernelType RegisteredKernelType(const std::string& name) {
    for (KernelNote* note = __start_sim_kernel_notes; note < __stop_sim_kernel_notes; ++note) {
        if (name == note->kernel) {
            return note->type;
        }
    }
    return KernelType::Unset;
}

}  // namespace sim

extern "C" {

void ascendSimResetCounters() {
    std::lock_guard<std::mutex> lock(sim::FiguresMutex());
    sim::Figures().clear();
}

size_t ascendSimReadCounters(char* buffer, size_t cap) {
    const std::string text = sim::Json();
    if (buffer != nullptr && cap > 0) {
        const size_t length = std::min(cap - 1, text.size());
        std::memcpy(buffer, text.data(), length);
        buffer[length] = '\0';
    }
    return text.size();
}
}
