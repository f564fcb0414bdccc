// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/race_text.h"

#include <array>

#include "check/clocks.h"

namespace sim {

namespace {

constexpr size_t kHardEvents = static_cast<size_t>(AscendC::HardEvent::MAX);

// By their names: "MTE2_V".
std::array<PipePair, kHardEvents> ReadEvents() {
    std::array<PipePair, kHardEvents> pairs{};
    for (size_t event = 0; event < kHardEvents; ++event) {
        const std::string name = Name(static_cast<AscendC::HardEvent>(event));
        const size_t bar = name.find('_');
        for (uint32_t pipe = 0; pipe < kPipes; ++pipe) {
            const std::string text = Name(static_cast<Pipe>(pipe));
            if (name.substr(0, bar) == text) {
                pairs[event].source = pipe;
            }
            if (name.substr(bar + 1) == text) {
                pairs[event].target = pipe;
            }
        }
    }
    return pairs;
}

std::string PipeName(Pipe pipe) {
    return std::string("PIPE_") + Name(pipe);
}

}  // namespace

PipePair EventPipes(int32_t event) {
    static const std::array<PipePair, kHardEvents> pairs = ReadEvents();
    return pairs[static_cast<size_t>(event)];
}

std::string MissingOrder(const CorePipe& first, const CorePipe& second) {
    const bool sameCore = first.block == second.block && first.slot == second.slot;
    if (sameCore && first.pipe == second.pipe) {
        return "PipeBarrier<" + PipeName(first.pipe) + "> between them";
    }
    if (sameCore) {
        // The AIC has no flags from or to its scalar pipe.
        const bool scalar = first.pipe == Pipe::S || second.pipe == Pipe::S;
        for (size_t event = 0; event < kHardEvents && !(scalar && first.slot == 0); ++event) {
            const PipePair pair = EventPipes(static_cast<int32_t>(event));
            if (pair.source == static_cast<uint32_t>(first.pipe) &&
                pair.target == static_cast<uint32_t>(second.pipe)) {
                const std::string name = Name(static_cast<AscendC::HardEvent>(event));
                return "SetFlag<HardEvent::" + name +
                       "> after the first, WaitFlag<HardEvent::" + name + "> before the second";
            }
        }
        return "PipeBarrier<PIPE_ALL> between them";
    }
    const bool cubes = first.slot == 0 && second.slot == 0;
    const bool vectors = first.slot != 0 && second.slot != 0;
    if (first.block != second.block && !cubes && !vectors) {
        return "SyncAll<false> between them";
    }
    const char* mode = first.block != second.block ? "0" : vectors ? "1" : "2";
    const bool scalar = first.pipe == Pipe::S;
    const Pipe pipe = !scalar ? first.pipe : first.slot == 0 ? Pipe::Fix : Pipe::Mte3;
    std::string text = "CrossCoreSetFlag<" + std::string(mode) + ", " + PipeName(pipe) +
                       "> after the first, CrossCoreWaitFlag before the second";
    if (scalar) {
        text = "PipeBarrier<PIPE_ALL> and " + text;
    }
    if (first.block != second.block) {
        text += ", or SyncAll";
    }
    return text;
}

std::string SiteText(uint32_t site) {
    const Sites::Entry entry = Sites::At(site);
    return Name(entry.op) + AtPlace(entry.where);
}

}  // namespace sim
