// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include <memory>
#include <vector>

#include "fiber.h"
#include "launch_state.h"

namespace sim {

// One block of a launch: its cores, their memories and their fibers. Blocks are recycled; what a
// kernel left in the memories is the next block's garbage, as on the device.
class Block {
public:
    Block();
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    void Start(LaunchState& launch, uint32_t index, std::vector<std::unique_ptr<Stack>>& stacks);
    // Runs every core that can run until none can. True when something ran.
    bool Run();
    // The same in parts, for seeded schedules: whether a core can run, and one turn of it.
    bool CanRun(uint32_t index) const;
    void RunCore(uint32_t index);
    bool Done() const;
    void CheckEnd();
    void Collect(Counters* total, std::vector<Region>* regions) const;
    void Finish(std::vector<std::unique_ptr<Stack>>& stacks);

    uint32_t CoreCount() const { return count_; }
    Core& CoreAt(uint32_t index) { return *cores_[index]; }
    Core* Cube() { return cube_; }
    Core* Vector(uint32_t sub) { return vectors_[sub]; }
    uint32_t VectorCount() const { return vectorCount_; }
    uint8_t* MemoryBase() const;

    // The memories of one block, with L0A and L0B twice: as addresses and as float fractals. A
    // checked library has as much again behind them, and two bytes for every 32 (defined.h).
    static constexpr size_t kFixedBytes = 2 * 196608 + 524288 + 131072 + 4096 + 8192;
    static constexpr size_t kFractalFloatBytes = kFractals * 256 * sizeof(float);
    static constexpr size_t kMemoryBytes = kFixedBytes + 2 * 65536 + 2 * kFractalFloatBytes;

private:
    static void Main(void* argument);

    struct Memory;
    std::unique_ptr<Memory> memory_;
    std::unique_ptr<Core[]> all_;  // AIC, AIV 0, AIV 1
    Fiber fibers_[3];
    Core* cores_[3];
    Core* cube_ = nullptr;
    Core* vectors_[2] = {};
    uint32_t count_ = 0;
    uint32_t vectorCount_ = 0;
};

}  // namespace sim

#endif  // SIM_BLOCK_H
