// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "sim/hook.h"
#include "sim/launch.h"
#include "sim/local.h"
#include "sim/machine.h"

// The state of one core (an AIC or an AIV) while a kernel runs on it.
namespace sim {

constexpr uint32_t kEvents = 64;      // >= HardEvent::MAX
constexpr uint32_t kEventIds = 8;     // per event
constexpr uint32_t kCrossFlags = 16;  // cross-core flag ids
constexpr uint32_t kCrossMax = 15;    // a flag's counter
constexpr uint32_t kRegions = 8;      // TRACE regions a kernel may use
constexpr uint32_t kFractals = 128;   // of 512 B in L0A or L0B

struct Counters {
    uint64_t calls[kOps];
    uint64_t repeats[kOps];
    uint64_t macs;
    void Add(const Counters& other);
};

struct Region {
    uint32_t id;
    Counters counters;
};

enum class AtomicOp : uint8_t { None, Add, Max, Min };

// The vector mask register.
struct VectorMask {
    bool counter = false;  // counter mode: `count` elements in all
    bool bits = false;     // a bit pattern rather than the first `count` lanes
    uint32_t count = 0;    // 0 with !counter && !bits: every lane
    uint64_t low = ~0ull;
    uint64_t high = ~0ull;
};

class Fiber;
class Block;
struct LaunchState;

enum class Wait : uint8_t { None, CrossFlag, SyncAll };

// A check failed outside a kernel, after its cores have ended.
struct BlockFault {};

struct Core {
    // Who it is.
    bool isCube = false;
    uint32_t block = 0;
    uint32_t sub = 0;       // AIV within its block
    uint32_t blockIdx = 0;  // what GetBlockIdx gives
    Block* owner = nullptr;
    LaunchState* launch = nullptr;
    Fiber* fiber = nullptr;

    // Memories. Capacity checks go against these addresses.
    uint8_t* memory[static_cast<size_t>(Space::Count)] = {};
    // L0A and L0B hold their fractals as float, ready for Mmad: 16x16 (or 16x8 for float) each,
    // A as [m][k], B as [k][n]. fractalType says what was loaded.
    float* fractals[2] = {};
    DType fractalType[2][kFractals] = {};

    // The instruction in flight, for messages.
    Op op = Op::Kernel;
    Where where{"", 0};

    Region* region = nullptr;
    Region regions[kRegions];
    uint32_t regionCount = 1;
    uint32_t regionStack[kRegions];
    uint32_t regionDepth = 0;

    VectorMask mask;
    bool counterMode = false;
    uint64_t compareMask[4] = {};
    AtomicOp atomic = AtomicOp::None;
    DType atomicType = DType::None;
    bool saturate = false;  // Fixpipe clamps infinities and NaN

    // Flags between pipes: one bit an id.
    uint8_t eventSet[kEvents] = {};
    uint8_t eventTaken[kEvents] = {};    // by AllocEventID, queues and the pipe itself
    uint8_t eventSystem[kEvents] = {};   // of these, the ones that kernels may not touch
    uint8_t eventFetched[kEvents] = {};  // given out by FetchEventID, which takes nothing
    void* pipe = nullptr;                // the living TPipe
    uint32_t openEnQue = 0;

    // Cross-core flags.
    uint8_t crossCount[kCrossFlags] = {};     // modes 1 and 2
    uint8_t crossMode[kCrossFlags] = {};      // mode + 1 of the last set
    uint32_t crossPartial[kCrossFlags] = {};  // sets seen from this core, for joint releases
    uint32_t globalSets[kCrossFlags] = {};    // mode 0: sets by this core
    uint32_t globalWaits[kCrossFlags] = {};   // mode 0: waits by this core
    uint32_t syncAlls[2] = {};                // of every core; of the vector cores only

    Wait wait = Wait::None;
    uint16_t waitFlag = 0;
    bool vectorSync = false;  // a SyncAll among the AIVs only

    // Under a seeded schedule: GM accesses and cross-core flags until the turn ends; 0 = no end.
    uint32_t turn = 0;
    uint8_t pace = 0;

    uint64_t tilingKey = 0;
    void* checks[3] = {};  // what a hook's checks keep for this core
    size_t lastRange = 0;  // of the launch's GM ranges: the one hit last

    // Starts an instruction: counts it, notes it for messages.
    void Begin(Op which, const Where& at, uint64_t repeatCount = 1) {
        op = which;
        where = at;
        Counters& c = region->counters;
        ++c.calls[static_cast<size_t>(which)];
        c.repeats[static_cast<size_t>(which)] += repeatCount;
    }
    void NeedVector() {
        if (isCube) {
            WrongCore();
        }
    }
    void NeedCube() {
        if (!isCube) {
            WrongCore();
        }
    }

    // In front of everything that other cores can see or do something about.
    void MayEndTurn();

    [[noreturn]] void WrongCore() const;
    [[noreturn]] void Fail(const char* format, ...) const __attribute__((format(printf, 2, 3)));
    std::string Title() const;

    // Checks `bytes` from `local` + `offset` against its buffer; returns the host address.
    uint8_t* Check(const Local& local, int64_t offset, int64_t bytes, const char* operand) {
        const int64_t start = local.offset + offset;
        if (local.base == nullptr || offset < 0 || bytes < 0 ||
            start + bytes > static_cast<int64_t>(local.capacity)) {
            OutOfBuffer(local, offset, bytes, operand);
        }
        return local.base + start;
    }
    // `align` is a power of two.
    void CheckAlign(const Local& local, uint32_t align, const char* operand) const {
        if ((reinterpret_cast<uintptr_t>(local.Address()) & (align - 1)) != 0) {
            Misaligned(local, align, operand);
        }
    }
    void CheckSpace(const Local& local, Space space, const char* operand) const {
        if (SpaceOf(local.position) != space) {
            WrongSpace(local, space, operand);
        }
    }
    // Checks a stretch of global memory against the launch's tensors.
    void CheckGm(const void* address, int64_t bytes, bool write, const char* operand);
    // One element that the scalar pipe reads or writes: checked, reported, its host address.
    uint8_t* ScalarLocal(Op which, const Local& local, int64_t offset, uint32_t bytes, bool write,
                         const Where& at);
    uint8_t* ScalarGm(Op which, uint8_t* address, uint32_t bytes, bool write, const Where& at);

    [[noreturn]] void OutOfBuffer(const Local& local, int64_t offset, int64_t bytes,
                                  const char* operand) const;
    [[noreturn]] void Misaligned(const Local& local, uint32_t align, const char* operand) const;
    [[noreturn]] void WrongSpace(const Local& local, Space space, const char* operand) const;

    void Reset();
};

extern __attribute__((tls_model("initial-exec"))) thread_local Core* currentCore;

// " at file.cpp:12"; nothing for no place.
std::string AtPlace(const Where& where);

// The core this code runs on. Only inside a launch.
inline Core& This() {
    return *currentCore;
}

// Gives up the processor until the core's wait condition holds. Does not return when the launch
// ends early.
void Yield(Core& core);

inline void Core::MayEndTurn() {
    if (turn != 0 && --turn == 0) {
        Yield(*this);
    }
}

}  // namespace sim

#endif  // SIM_CORE_H
