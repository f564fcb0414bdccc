// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "block.h"

#include <sys/mman.h>

#include <cstring>
#include <exception>
#include <new>

#include "defined.h"
#include "settings.h"

namespace sim {

namespace {

constexpr size_t Slot(Space space) {
    return static_cast<size_t>(space);
}

}  // namespace

struct Block::Memory {
    // L0A and L0B are address space only: their contents live in the float fractals.
    static constexpr size_t kBytes =
        kTracksDefined ? 2 * kMemoryBytes + kMemoryBytes / 16 : kMemoryBytes;

    Memory() {
        base = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (base == MAP_FAILED) {
            throw std::bad_alloc();
        }
        uint8_t* next = base;
        for (uint8_t*& buffer : ub) {
            buffer = Take(next, 196608);
        }
        l1 = Take(next, 524288);
        l0c = Take(next, 131072);
        biasTable = Take(next, 4096);
        fixBuf = Take(next, 8192);
        for (float*& shadow : shadows) {
            shadow = reinterpret_cast<float*>(Take(next, kFractalFloatBytes));
        }
        l0a = Take(next, 65536);
        l0b = Take(next, 65536);
    }
    ~Memory() { munmap(base, kBytes); }
    static uint8_t* Take(uint8_t*& next, size_t bytes) {
        uint8_t* start = next;
        next += bytes;
        return start;
    }

    uint8_t* base;
    uint8_t* ub[2];
    uint8_t* l1;
    uint8_t* l0c;
    uint8_t* biasTable;
    uint8_t* fixBuf;
    uint8_t* l0a;
    uint8_t* l0b;
    float* shadows[2];
};

Block::Block() : memory_(new Memory), all_(new Core[3]) {
    Core& cube = all_[0];
    cube.isCube = true;
    cube.memory[Slot(Space::L1)] = memory_->l1;
    cube.memory[Slot(Space::L0A)] = memory_->l0a;
    cube.memory[Slot(Space::L0B)] = memory_->l0b;
    cube.memory[Slot(Space::L0C)] = memory_->l0c;
    cube.memory[Slot(Space::BiasTable)] = memory_->biasTable;
    cube.memory[Slot(Space::FixBuf)] = memory_->fixBuf;
    cube.fractals[0] = memory_->shadows[0];
    cube.fractals[1] = memory_->shadows[1];
    for (uint32_t sub = 0; sub < 2; ++sub) {
        all_[1 + sub].sub = sub;
        all_[1 + sub].memory[Slot(Space::Ub)] = memory_->ub[sub];
    }
}

Block::~Block() = default;

uint8_t* Block::MemoryBase() const {
    return memory_->base;
}

void Block::Start(LaunchState& launch, uint32_t index,
                  std::vector<std::unique_ptr<Stack>>& stacks) {
    const KernelType type = launch.type;
    vectorCount_ = type == KernelType::AicOnly ? 0 : type == KernelType::Mix12 ? 2 : 1;
    cube_ = type == KernelType::AivOnly ? nullptr : &all_[0];
    count_ = 0;
    if (cube_ != nullptr) {
        cores_[count_++] = cube_;
    }
    vectors_[0] = vectors_[1] = nullptr;
    for (uint32_t sub = 0; sub < vectorCount_; ++sub) {
        vectors_[sub] = &all_[1 + sub];
        cores_[count_++] = vectors_[sub];
    }
    if (Poison()) {
        std::memset(memory_->base, 0xFF, kFixedBytes);
    }
    for (uint32_t i = 0; i < count_; ++i) {
        Core& core = *cores_[i];
        core.Reset();
        core.block = index;
        core.blockIdx = core.isCube ? index : index * vectorCount_ + core.sub;
        core.owner = this;
        core.launch = &launch;
        core.fiber = &fibers_[i];
        core.tilingKey = launch.spec->tilingKey;
        if (stacks.empty()) {
            stacks.emplace_back(new Stack);
        }
        fibers_[i].Start(stacks.back().release(), &Block::Main, &core);
        stacks.pop_back();
    }
}

void Block::Main(void* argument) {
    Core& core = *static_cast<Core*>(argument);
    try {
        Report(core, Op::Kernel, Ordering{0});
        core.launch->spec->entry();
        sim::CheckEnd(core);
        Report(core, Op::Kernel, Ordering{1});
    } catch (const std::exception& error) {
        core.launch->Abort("kernel " + core.launch->spec->kernel + ", " + core.Title() +
                           ": C++ exception: " + error.what());
    } catch (...) {
        core.launch->Abort("kernel " + core.launch->spec->kernel + ", " + core.Title() +
                           ": unknown C++ exception");
    }
}

bool Block::CanRun(uint32_t index) const {
    return !fibers_[index].Done() && (cores_[index]->launch->aborted || Ready(*cores_[index]));
}

void Block::RunCore(uint32_t index) {
    currentCore = cores_[index];
    fibers_[index].Resume();
    currentCore = nullptr;
}

bool Block::Run() {
    bool progress = false;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < count_; ++i) {
            if (CanRun(i)) {
                RunCore(i);
                again = progress = true;
            }
        }
    }
    return progress;
}

bool Block::Done() const {
    for (uint32_t i = 0; i < count_; ++i) {
        if (!fibers_[i].Done()) {
            return false;
        }
    }
    return true;
}

void Block::CheckEnd() {
    try {
        for (uint32_t i = 0; i < count_; ++i) {
            Core& core = *cores_[i];
            core.op = Op::Kernel;
            core.where = Where{"", 0};
            for (uint32_t id = 0; id < kCrossFlags; ++id) {
                if (core.crossCount[id] != 0) {
                    core.Fail("cross-core flag %u was set %u more times than waited for%s", id,
                              core.crossCount[id], CrossHistory(core, id).c_str());
                }
                if (!core.isCube && core.crossPartial[id] != vectors_[0]->crossPartial[id]) {
                    core.Fail("cross-core flag %u: set %u times here, %u times on the other AIV%s",
                              id, core.crossPartial[id], vectors_[0]->crossPartial[id],
                              CrossHistory(core, id).c_str());
                }
            }
        }
    } catch (const BlockFault&) {
        // Recorded where it was thrown.
    }
}

void Block::Collect(Counters* total, std::vector<Region>* regions) const {
    for (uint32_t i = 0; i < count_; ++i) {
        const Core& core = *cores_[i];
        for (uint32_t r = 0; r < core.regionCount; ++r) {
            total->Add(core.regions[r].counters);
            if (r == 0) {
                continue;
            }
            Region* found = nullptr;
            for (Region& region : *regions) {
                if (region.id == core.regions[r].id) {
                    found = &region;
                }
            }
            if (found == nullptr) {
                regions->push_back(core.regions[r]);
            } else {
                found->counters.Add(core.regions[r].counters);
            }
        }
    }
}

void Block::Finish(std::vector<std::unique_ptr<Stack>>& stacks) {
    for (uint32_t i = 0; i < count_; ++i) {
        stacks.emplace_back(fibers_[i].TheStack());
    }
}

}  // namespace sim
