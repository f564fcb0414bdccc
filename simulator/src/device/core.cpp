// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "sim/core.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "fiber.h"
#include "launch_state.h"

namespace sim {

thread_local Core* currentCore = nullptr;

std::string AtPlace(const Where& where) {
    if (where.line <= 0) {
        return std::string();
    }
    const char* slash = std::strrchr(where.file, '/');
    return std::string(" at ") + (slash != nullptr ? slash + 1 : where.file) + ":" +
           std::to_string(where.line);
}

void Counters::Add(const Counters& other) {
    for (size_t i = 0; i < kOps; ++i) {
        calls[i] += other.calls[i];
        repeats[i] += other.repeats[i];
    }
    macs += other.macs;
}

std::string Core::Title() const {
    char text[96];
    if (isCube) {
        std::snprintf(text, sizeof(text), "AIC %u", block);
    } else {
        std::snprintf(text, sizeof(text), "AIV %u (block %u, sub-block %u)", blockIdx, block, sub);
    }
    return text;
}

void Core::Fail(const char* format, ...) const {
    char detail[768];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);

    launch->Abort("kernel " + launch->spec->kernel + ", " + Title() + ", " + Name(op) +
                  AtPlace(where) + ": " + detail);
    if (currentCore != this) {
        throw BlockFault{};
    }
    // The kernel is left, not unwound: device code owns nothing, and an exception could not pass
    // a destructor that issues instructions.
    fiber->Abandon();
}

void Core::WrongCore() const {
    Fail("this belongs to %s, but it runs on %s", isCube ? "an AIV" : "an AIC",
         isCube ? "an AIC" : "an AIV");
}

void Core::OutOfBuffer(const Local& local, int64_t offset, int64_t bytes,
                       const char* operand) const {
    if (local.base == nullptr) {
        Fail("%s is a tensor without a buffer", operand);
    }
    Fail("%s: bytes %lld to %lld of a buffer of %u bytes in %s (%s)", operand,
         static_cast<long long>(local.offset + offset),
         static_cast<long long>(local.offset + offset + bytes), local.capacity,
         Name(SpaceOf(local.position)), Name(local.position));
}

void Core::Misaligned(const Local& local, uint32_t align, const char* operand) const {
    const Space space = SpaceOf(local.position);
    const uint8_t* start = memory[static_cast<size_t>(space)];
    Fail("%s at byte %lld of %s is not aligned to %u bytes", operand,
         static_cast<long long>(local.Address() - start), Name(space), align);
}

void Core::WrongSpace(const Local& local, Space space, const char* operand) const {
    if (local.base == nullptr) {
        Fail("%s is a tensor without a buffer", operand);
    }
    Fail("%s is in %s (%s), it must be in %s", operand, Name(SpaceOf(local.position)),
         Name(local.position), Name(space));
}

void Core::CheckGm(const void* address, int64_t bytes, bool write, const char* operand) {
    MayEndTurn();
    const std::vector<GmSpan>& spans = launch->spans;
    const uint8_t* begin = static_cast<const uint8_t*>(address);
    const uint8_t* end = begin + bytes;
    if (lastRange >= spans.size() || begin < spans[lastRange].begin || end > spans[lastRange].end ||
        (write && !spans[lastRange].range->writable)) {
        // The last span that starts at or before the address.
        size_t low = 0;
        size_t high = spans.size();
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (spans[middle].begin <= begin) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (address == nullptr) {
            Fail("%s: a null GM address", operand);
        }
        if (low == 0) {
            Fail("%s: %lld bytes at a GM address in front of every tensor of this launch", operand,
                 static_cast<long long>(bytes));
        }
        // Spans may overlap: an in-place operand appears twice, once as an input.
        for (size_t i = low; i-- > 0;) {
            if (end <= spans[i].end && (!write || spans[i].range->writable)) {
                lastRange = i;
                return;
            }
        }
        const GmSpan& span = spans[low - 1];
        if (end > span.end) {
            Fail("%s: bytes %lld to %lld of GM tensor '%s', which has %zu bytes", operand,
                 static_cast<long long>(begin - span.begin),
                 static_cast<long long>(end - span.begin), span.range->name.c_str(),
                 span.range->bytes);
        }
        Fail("%s: a write to GM tensor '%s', which is an input", operand, span.range->name.c_str());
    }
}

uint8_t* Core::ScalarLocal(Op which, const Local& local, int64_t offset, uint32_t bytes, bool write,
                           const Where& at) {
    Begin(which, at);
    const Space space = SpaceOf(local.position);
    if (space != Space::Ub) {
        Fail("a scalar access to a tensor in %s: only UB has one", Name(space));
    }
    NeedVector();
    uint8_t* address = Check(local, offset, bytes, "the tensor");
    Report(*this, which, {{address, bytes, write, space}});
    return address;
}

uint8_t* Core::ScalarGm(Op which, uint8_t* address, uint32_t bytes, bool write, const Where& at) {
    Begin(which, at);
    CheckGm(address, bytes, write, "the tensor");
    Report(*this, which, {{address, bytes, write, Space::Gm}});
    return address;
}

void Core::Reset() {
    op = Op::Kernel;
    where = Where{"", 0};
    std::memset(&regions[0], 0, sizeof(Region));
    region = &regions[0];
    regionCount = 1;
    regionDepth = 0;
    mask = VectorMask();
    counterMode = false;
    std::memset(compareMask, 0, sizeof(compareMask));
    atomic = AtomicOp::None;
    atomicType = DType::None;
    saturate = false;
    for (auto& types : fractalType) {
        for (DType& type : types) {
            type = DType::None;
        }
    }
    std::memset(eventSet, 0, sizeof(eventSet));
    std::memset(eventTaken, 0, sizeof(eventTaken));
    std::memset(eventSystem, 0, sizeof(eventSystem));
    std::memset(eventFetched, 0, sizeof(eventFetched));
    pipe = nullptr;
    openEnQue = 0;
    std::memset(crossCount, 0, sizeof(crossCount));
    std::memset(crossMode, 0, sizeof(crossMode));
    std::memset(crossPartial, 0, sizeof(crossPartial));
    std::memset(globalSets, 0, sizeof(globalSets));
    std::memset(globalWaits, 0, sizeof(globalWaits));
    syncAlls[0] = syncAlls[1] = 0;
    wait = Wait::None;
    vectorSync = false;
    checks[0] = checks[1] = nullptr;
    turn = 0;
    pace = 0;
    lastRange = 0;
}

}  // namespace sim
