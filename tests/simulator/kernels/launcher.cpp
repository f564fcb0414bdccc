// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

#include <cstring>
#include <map>
#include <string>

#include "sim/launch.h"

namespace {

std::map<std::string, TestKernel>& Kernels() {
    static std::map<std::string, TestKernel> kernels;
    return kernels;
}

}  // namespace

// Whether `out` is an output, of which nothing is there at the start. Else it is read and written.
static bool freshOutput = false;
extern "C" void simTestSetFresh(int fresh) {
    freshOutput = fresh != 0;
}

TestRegistrar::TestRegistrar(const char* name, TestKernel kernel) {
    Kernels()[name] = kernel;
}

// buffers: in0, in1, in2, out, workspace, tiling; a null one is absent.
extern "C" int simTestLaunch(const char* name, void** buffers, const uint64_t* bytes,
                             uint32_t blocks, uint32_t threads, int allResident, uint32_t cores,
                             char* error, size_t errorBytes) {
    static const char* const names[] = {"in0", "in1", "in2", "out", "workspace", "tiling"};
    sim::LaunchSpec spec;
    spec.kernel = name;
    spec.blockDim = blocks;
    spec.threads = threads;
    spec.allResident = allResident != 0;
    spec.cores = cores;
    for (int i = 0; i < 6; ++i) {
        const sim::GmRole role = i == 4                  ? sim::GmRole::Scratch
                                 : i == 3 && freshOutput ? sim::GmRole::Result
                                                         : sim::GmRole::Given;
        spec.ranges.push_back(sim::GmRange{buffers[i], static_cast<size_t>(bytes[i]), names[i],
                                           i == 3 || i == 4, role});
    }
    const auto found = Kernels().find(name);
    if (found == Kernels().end()) {
        std::strncpy(error, "no such kernel", errorBytes);
        return -1;
    }
    uint8_t* pointers[6];
    for (int i = 0; i < 6; ++i) {
        pointers[i] = static_cast<uint8_t*>(buffers[i]);
    }
    spec.entry = [&] {
        found->second(pointers[0], pointers[1], pointers[2], pointers[3], pointers[4], pointers[5]);
    };
    const sim::LaunchResult result = sim::Launch(spec);
    std::strncpy(error, result.error.c_str(), errorBytes - 1);
    error[errorBytes - 1] = '\0';
    return result.status;
}
