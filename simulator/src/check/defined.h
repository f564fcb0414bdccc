// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_DEFINED_H
#define SIM_CHECK_DEFINED_H

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "check/checker.h"
#include "device/defined.h"
#include "device/launch_state.h"

// Unwritten memory. Copies and computations carry it along (device/defined.h); what is reported is
// where it can be seen: a store to an output, a scalar read, an offset. Every 32 bytes of shadow
// have a tag that names their origin, the first instruction that read them while unwritten.
namespace sim {

constexpr uint32_t kTagBytes = 32;

// The first instruction that read some unwritten memory.
struct Origin {
    Site site;
    std::string memory;
};

// A stretch of global memory that tensors of the launch share.
struct GmRegion {
    const uint8_t* begin = nullptr;
    const uint8_t* end = nullptr;
    const GmRange* range = nullptr;
    GmRole role = GmRole::Given;
    bool writable = false;
    uint8_t* shadow = nullptr;
    uint16_t* tags = nullptr;
    // Shadow and data of a chunk are filled when the kernel first touches it: most of a workspace
    // is never used.
    std::unique_ptr<std::atomic<bool>[]> filled{};
    std::unique_ptr<std::mutex> mutex{};
};

// What InitBuffer handed out.
struct Allocation {
    const void* buffer;
    Space space;
    uint32_t offset;
    uint32_t bytes;
    Where init;
    Where alloc{"", 0};
    Where free{"", 0};
};

struct MemoryCore {
    std::vector<Allocation> allocations;
    std::map<std::pair<uint64_t, const char*>, uint16_t> origins;  // by line and operand, by file
    uint8_t* memory = nullptr;                                     // of the block
    alignas(32) uint8_t compareShadow[32];
    bool dirty[2][kFractals] = {};  // of L0A and L0B; only the shadows of dirty ones hold anything
};

class MemoryCheck : public Check {
public:
    MemoryCheck(LaunchState& launch, Findings& findings);
    ~MemoryCheck() override;
    void OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) override;
    void OnOrdering(Core& core, Op op, const Ordering& ordering) override;
    void OnEnd(LaunchState& launch) override;

    GmRegion& RegionOf(const void* address);
    // The shadow of the access' first byte; global memory is filled on the way.
    uint8_t* Shadow(Core& core, const Access& access);
    uint16_t* Tags(Core& core, Space space, const void* address);

    void Buffer(Core& core, const void* buffer, Space space, uint32_t offset, uint32_t bytes);
    // Where unwritten bytes at `address` come from: their tag, else this instruction.
    uint16_t OriginOf(Core& core, Space space, const uint8_t* address, int64_t bytes,
                      const char* operand);
    uint16_t NewOrigin(Core& core, Space space, const uint8_t* address, int64_t bytes,
                       const char* operand);
    void Tag(Core& core, const Access& access, uint16_t origin);
    // The instruction in flight shows unwritten memory. `place`: what it writes or reads.
    void Shows(Core& core, const char* kind, uint16_t origin, const std::string& place);
    void ShowsInOutput(Core& core, const Access& target, uint8_t* shadow, uint16_t origin);

    // Of the source of the copy under way.
    uint16_t SourceOrigin(Core& core, const ShadowCopy& copy);

private:
    void Fill(GmRegion& region, const uint8_t* begin, const uint8_t* end);
    void Forget(Core& core, const Allocation& allocation);
    std::string Describe(Core& core, Space space, const uint8_t* address, int64_t bytes);
    void CheckOutput(const GmRegion& region);

    LaunchState& launch_;
    Findings& findings_;
    std::vector<GmRegion> regions_;
    std::mutex mutex_;  // of the origins and the cores
    std::deque<Origin> origins_;
    std::deque<MemoryCore> cores_;
};

inline MemoryCheck* MemoryOf(Core& core) {
    return static_cast<MemoryCheck*>(
        static_cast<Checker*>(core.launch->checker)->checks[kMemory].get());
}
inline MemoryCore& StateOf(Core& core) {
    return *static_cast<MemoryCore*>(core.checks[kMemory]);
}

bool AnySet(const uint8_t* at, size_t bytes);
bool AnySet(const uint8_t* shadow, const Access& access);

}  // namespace sim

#endif  // SIM_CHECK_DEFINED_H
