// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_DEFINED_H
#define SIM_DEFINED_H

#include "block.h"
#include "vector_engine.h"

// Tracking of memory that nothing has written. Every memory has a shadow of the same geometry,
// whose bits say which bits of it are unwritten; an instruction moves the shadow as it moves the
// data, so that an unwritten byte is reported where it shows, not where a tail is merely carried
// along. Callers stand in `if constexpr (kTracksDefined)`: the plain library has none of it.
// Everything declared here is implemented in src/check.
namespace sim {

#ifdef SIM_TRACKS_DEFINED
constexpr bool kTracksDefined = true;
#else
constexpr bool kTracksDefined = false;
#endif

// From a byte of a core's memory (or of its fractals) to its shadow.
constexpr int64_t kShadowOffset = Block::kMemoryBytes;

template <typename T>
T* ShadowOf(T* local) {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(local) + kShadowOffset);
}

// A copy under way: the shadows of both ends.
struct ShadowCopy {
    const uint8_t* from = nullptr;
    uint8_t* to = nullptr;
    Access source{};
    Access target{};
    bool dirty = false;  // the source has unwritten bytes
};

// False when the check is off. `from` may cover more than the instruction reads.
bool BeginCopy(Core& core, const Access& from, const Access& to, ShadowCopy* copy);
void EndCopy(Core& core, const ShadowCopy& copy);

// Before a copy's effect. `run(to, from)` does with the shadows of the first bytes of `to` and
// `from` what the copy does with the data.
template <typename Run>
void TrackCopy(Core& core, const Access& from, const Access& to, const Run& run) {
    ShadowCopy copy;
    if (BeginCopy(core, from, to, &copy)) {
        run(copy.to, copy.from);
        EndCopy(core, copy);
    }
}

// The same for loads into L0A or L0B: `run` makes the float fractals of the shadow, which is done
// only for sources with something unwritten. `fractals` of them follow `first`, `step` apart.
struct Loaded {
    uint32_t side;
    uint32_t first;
    uint32_t fractals;
    uint32_t step;
    uint32_t pair = 0;  // from a fractal to the second one that comes with it
};
void NoteLoaded(Core& core, const Loaded& loaded, bool dirty);
template <typename Run>
void TrackLoad(Core& core, const Access& from, const Access& to, const Loaded& loaded,
               const Run& run) {
    ShadowCopy copy;
    if (BeginCopy(core, from, to, &copy)) {
        NoteLoaded(core, loaded, copy.dirty);
        if (copy.dirty) {
            run(ShadowOf(core.fractals[loaded.side]), copy.from);
        }
        EndCopy(core, copy);
    }
}

// One element of `toBytes` from one of `fromBytes`: unwritten in full or not at all. `add`: an
// atomic mode keeps what is there.
void ShadowElements(uint8_t* to, uint32_t toBytes, const uint8_t* from, uint32_t fromBytes,
                    uint32_t count, bool add);
// What StoreGm does to the shadow.
void ShadowStore(Core& core, uint8_t* to, const uint8_t* from, int64_t bytes);

// From byte `skip` on, what the instruction leaves in `target` is undefined.
void TrackPadding(Core& core, const Access& target, int64_t skip, const char* what);
void TrackWrite(Core& core, const Access& target);

struct LaneSource {
    const Operand* operand;
    const char* name;
};

enum class Merge : uint8_t {
    Any,     // a lane is unwritten when one of its sources is
    Keep,    // or when it was before: the target is read as well
    BitAnd,  // bit by bit; a written 0 decides
    BitOr,   // bit by bit; a written 1 decides
};

// Vector instructions, before their effect: lanes are independent of each other.
void TrackLanes(Core& core, const Walk& walk, const Operand& to,
                std::initializer_list<LaneSource> sources, Merge merge = Merge::Any);
// `group` lanes of a row give one result of `resultBytes`, a row's results are `step` apart.
void TrackGroups(Core& core, const Walk& walk, const Operand& from, uint8_t* to, int64_t step,
                 uint32_t group, uint32_t resultBytes);
// Every lane of every row gives the one result.
void TrackTotal(Core& core, const Walk& walk, const Operand& from, uint8_t* to,
                uint32_t resultBytes);
// One bit a lane. b null: a scalar.
void TrackCompare(Core& core, const Walk& walk, const Operand& a, const Operand* b, uint8_t* bits,
                  uint32_t rowBytes);
void TrackSelect(Core& core, const Walk& walk, const Operand& to, const Operand& a,
                 const Operand* b, const uint8_t* bits, uint32_t maskStep);
void TrackCompareMask(Core& core, uint8_t* bits, bool load);
// An element or block that an offset or a pattern picked.
void TrackMove(Core& core, uint8_t* to, const uint8_t* from, uint32_t bytes);
// The origin of what is unwritten in 16 blocks, for the blocks that they turn into.
void TrackTranspose(Core& core, uint8_t* const* to, const uint8_t* const* from);
// Offsets and patterns decide what an instruction does: they are reported at once.
void TrackControl(Core& core, const void* address, int64_t bytes, const char* operand);

void TrackMmad(Core& core, const Local& c, const Local& a, const Local& b, const uint8_t* bias,
               uint32_t ck, uint32_t m, uint32_t n, uint32_t k, bool accumulate);

// Buffers: what InitBuffer and AllocTensor hand out is unwritten.
void TrackBuffer(Core& core, const void* buffer, Space space, uint32_t offset, uint32_t bytes);

}  // namespace sim

#endif  // SIM_DEFINED_H
