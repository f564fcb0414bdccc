// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_CLOCKS_H
#define SIM_CHECK_CLOCKS_H

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/machine.h"

// Vector clocks over the pipes of a launch.
//
// Every instruction has a number, counted up on its pipe. A clock says for every pipe of the launch
// up to which number the instructions are known to be complete: both flags and barriers wait for
// all earlier instructions of a pipe, so one number a pipe says it all.
namespace sim {

constexpr uint32_t kPipes = 7;       // Pipe::S to Pipe::Fix
constexpr uint32_t kBlockCores = 3;  // AIC, AIV 0, AIV 1
constexpr uint32_t kBlockPipes = kBlockCores * kPipes;

// Knowledge about other blocks comes only from mode-0 flags and SyncAll. Then every core of a kind
// shares it, so a clock points to it. Indexed by block * kBlockPipes + core * kPipes + pipe.
struct Remote {
    std::vector<uint32_t> known;
};

// Owns the Remotes of a launch.
class Remotes {
public:
    // What holds when both hold: `a` or `b` where one includes the other.
    const Remote* Join(const Remote* a, const Remote* b);
    const Remote* Add(std::vector<uint32_t> known);

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Remote>> all_;
};

struct alignas(32) Clock {
    uint32_t known[24] = {};  // of the own block: core * kPipes + pipe; padded for vector code
    const Remote* remote = nullptr;

    void Join(const Clock& other, Remotes& remotes) {
        for (uint32_t i = 0; i < 24; ++i) {
            known[i] = known[i] > other.known[i] ? known[i] : other.known[i];
        }
        if (other.remote != remote && other.remote != nullptr) {
            remote = remotes.Join(remote, other.remote);
        }
    }
    // What holds when one of both holds.
    void Meet(const Clock& other) {
        for (uint32_t i = 0; i < 24; ++i) {
            known[i] = known[i] < other.known[i] ? known[i] : other.known[i];
        }
        if (other.remote != remote) {
            remote = nullptr;
        }
    }
};

// An instruction of any core, in 64 bits. 0: none.
struct Epoch {
    uint64_t bits;

    static Epoch Of(uint32_t block, uint32_t core, uint32_t pipe, bool atomic, uint32_t number) {
        return Epoch{static_cast<uint64_t>(block) << 38 | static_cast<uint64_t>(core) << 36 |
                     static_cast<uint64_t>(pipe) << 33 | static_cast<uint64_t>(atomic) << 32 |
                     number};
    }
    uint32_t Number() const { return static_cast<uint32_t>(bits); }
    bool Atomic() const { return (bits >> 32) & 1; }
    uint32_t Pipe() const { return (bits >> 33) & 7; }
    uint32_t Core() const { return (bits >> 36) & 3; }
    uint32_t Block() const { return (bits >> 38) & 0xFFFFFF; }
    // The same pipe of the same core.
    bool SamePipe(Epoch other) const { return ((bits ^ other.bits) >> 33) == 0; }
};

// Whether the instruction is complete as far as a pipe of `block` with this clock knows.
inline bool Knows(const Clock& clock, uint32_t block, Epoch epoch) {
    const uint32_t pipe = epoch.Core() * kPipes + epoch.Pipe();
    if (epoch.Block() == block) {
        return epoch.Number() <= clock.known[pipe];
    }
    return clock.remote != nullptr &&
           epoch.Number() <= clock.remote->known[epoch.Block() * kBlockPipes + pipe];
}

// Which instruction had a number: an append-only list that other threads may read while it grows,
// as long as they learnt the number under a lock that the owner held after appending.
class InstructionLog {
public:
    void Append(uint32_t site) {
        const uint32_t part = Part(count_);
        if (parts_[part] == nullptr) {
            parts_[part].reset(new uint32_t[kFirst << part]);
        }
        parts_[part][count_ - Start(part)] = site;
        ++count_;
    }
    uint32_t At(uint32_t index) const { return parts_[Part(index)][index - Start(Part(index))]; }
    uint32_t Count() const { return count_; }

private:
    static constexpr uint32_t kFirst = 64;  // parts double
    static uint32_t Part(uint32_t index) {
        return 31u - static_cast<uint32_t>(__builtin_clz(index / kFirst + 1));
    }
    static uint32_t Start(uint32_t part) { return kFirst * ((1u << part) - 1); }

    std::unique_ptr<uint32_t[]> parts_[26];
    uint32_t count_ = 0;
};

}  // namespace sim

#endif  // SIM_CHECK_CLOCKS_H
