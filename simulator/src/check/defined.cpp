// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/defined.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace sim {

namespace {

constexpr size_t kChunk = 16384;
constexpr size_t kListedRanges = 4;
constexpr uint16_t kOrigins = 65535;

// Address space for the shadows of global memory, kept from launch to launch: one launch runs at a
// time. Fresh pages are zero, and the part for inputs is never written.
class Arena {
public:
    uint8_t* Reserve(size_t bytes) {
        if (bytes > bytes_) {
            if (base_ != nullptr) {
                munmap(base_, bytes_);
            }
            base_ = static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
            if (base_ == MAP_FAILED) {
                base_ = nullptr;
                bytes_ = 0;
                throw std::bad_alloc();
            }
            bytes_ = bytes;
        }
        return base_;
    }

private:
    uint8_t* base_ = nullptr;
    size_t bytes_ = 0;
};

Arena& Shadows() {
    static Arena* arena = new Arena;
    return *arena;
}
Arena& Zeros() {
    static Arena* arena = new Arena;
    return *arena;
}

size_t RoundUp(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

std::string Text(const Where& where) {
    const char* slash = std::strrchr(where.file, '/');
    return std::string(slash != nullptr ? slash + 1 : where.file) + ":" +
           std::to_string(where.line);
}

bool InRegister(const Core& core, const void* address) {
    return address >= std::begin(core.compareMask) && address < std::end(core.compareMask);
}

int64_t Extent(const Access& access) {
    return (access.outer - 1) * access.outerStride + (access.inner - 1) * access.innerStride +
           access.bytes;
}

}  // namespace

bool AnySet(const uint8_t* at, size_t bytes) {
    using Word = uint64_t __attribute__((vector_size(32)));
    size_t i = 0;
    for (; i + 256 <= bytes; i += 256) {
        Word any{};
        for (size_t j = 0; j < 8; ++j) {
            Word word;
            std::memcpy(&word, at + i + j * 32, sizeof(word));
            any |= word;
        }
        if ((any[0] | any[1] | any[2] | any[3]) != 0) {
            return true;
        }
    }
    uint64_t any = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word;
        std::memcpy(&word, at + i, sizeof(word));
        any |= word;
    }
    for (; i < bytes; ++i) {
        any |= at[i];
    }
    return any != 0;
}

bool AnySet(const uint8_t* shadow, const Access& access) {
    for (uint32_t o = 0; o < access.outer; ++o) {
        for (uint32_t i = 0; i < access.inner; ++i) {
            if (AnySet(shadow + o * access.outerStride + i * access.innerStride, access.bytes)) {
                return true;
            }
        }
    }
    return false;
}

std::unique_ptr<Check> MakeMemoryCheck(LaunchState& launch, Findings& findings) {
    return std::make_unique<MemoryCheck>(launch, findings);
}

MemoryCheck::MemoryCheck(LaunchState& launch, Findings& findings)
    : launch_(launch), findings_(findings) {
    // Spans are sorted by address. Where they overlap (an operand that is input and output), what
    // one of them brings is there.
    for (const GmSpan& span : launch.spans) {
        if (regions_.empty() || span.begin >= regions_.back().end) {
            regions_.emplace_back();
            regions_.back().begin = span.begin;
            regions_.back().end = span.end;
            regions_.back().range = span.range;
            regions_.back().role = span.range->role;
            regions_.back().writable = span.range->writable;
            continue;
        }
        GmRegion& region = regions_.back();
        region.end = std::max(region.end, span.end);
        region.writable = region.writable || span.range->writable;
        if (span.range->role != region.role) {
            region.role = GmRole::Given;
        }
    }
    size_t zeros = 0;
    size_t shadows = 0;
    for (const GmRegion& region : regions_) {
        const size_t bytes = static_cast<size_t>(region.end - region.begin);
        if (!region.writable) {
            zeros = std::max(zeros, bytes);
        } else {
            shadows += RoundUp(bytes, kChunk) + RoundUp(bytes / kTagBytes * 2 + 4, kChunk);
        }
    }
    uint8_t* zero = Zeros().Reserve(zeros + kChunk);
    uint8_t* next = Shadows().Reserve(shadows + kChunk);
    for (GmRegion& region : regions_) {
        if (!region.writable) {
            region.shadow = zero;
            continue;
        }
        const size_t bytes = static_cast<size_t>(region.end - region.begin);
        region.shadow = next;
        next += RoundUp(bytes, kChunk);
        region.tags = reinterpret_cast<uint16_t*>(next);
        next += RoundUp(bytes / kTagBytes * 2 + 4, kChunk);
        region.filled = std::make_unique<std::atomic<bool>[]>(bytes / kChunk + 1);
        region.mutex = std::make_unique<std::mutex>();
    }
}

MemoryCheck::~MemoryCheck() = default;

GmRegion& MemoryCheck::RegionOf(const void* address) {
    size_t low = 0;
    size_t high = regions_.size();
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (regions_[middle].begin <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return regions_[low];
}

void MemoryCheck::Fill(GmRegion& region, const uint8_t* begin, const uint8_t* end) {
    const size_t last = static_cast<size_t>(end - 1 - region.begin) / kChunk;
    for (size_t i = static_cast<size_t>(begin - region.begin) / kChunk; i <= last; ++i) {
        if (region.filled[i].load(std::memory_order_acquire)) {
            continue;
        }
        std::lock_guard<std::mutex> lock(*region.mutex);
        if (region.filled[i].load(std::memory_order_relaxed)) {
            continue;
        }
        const size_t from = i * kChunk;
        const size_t bytes =
            std::min(kChunk, static_cast<size_t>(region.end - region.begin) - from);
        const bool unwritten = region.role != GmRole::Given;
        std::memset(region.shadow + from, unwritten ? 0xFF : 0, bytes);
        std::memset(region.tags + from / kTagBytes, 0, (bytes + kTagBytes - 1) / kTagBytes * 2);
        if (unwritten) {
            // NaN in every floating format: the results show it as well.
            std::memset(const_cast<uint8_t*>(region.begin) + from, 0xFF, bytes);
        }
        region.filled[i].store(true, std::memory_order_release);
    }
}

uint8_t* MemoryCheck::Shadow(Core& core, const Access& access) {
    if (access.space != Space::Gm) {
        const uint8_t* base = static_cast<const uint8_t*>(access.base);
        if (InRegister(core, base)) {
            return StateOf(core).compareShadow;
        }
        return const_cast<uint8_t*>(ShadowOf(base));
    }
    const uint8_t* at = static_cast<const uint8_t*>(access.base);
    GmRegion& region = RegionOf(at);
    if (region.writable) {
        Fill(region, at, at + Extent(access));
    }
    return region.shadow + (at - region.begin);
}

uint16_t* MemoryCheck::Tags(Core& core, Space space, const void* address) {
    const uint8_t* at = static_cast<const uint8_t*>(address);
    if (space == Space::Gm) {
        GmRegion& region = RegionOf(at);
        return region.tags == nullptr ? nullptr : region.tags + (at - region.begin) / kTagBytes;
    }
    if (InRegister(core, at)) {
        return nullptr;
    }
    const uint8_t* memory = StateOf(core).memory;
    return reinterpret_cast<uint16_t*>(const_cast<uint8_t*>(memory) + 2 * Block::kMemoryBytes) +
           (at - memory) / kTagBytes;
}

void MemoryCheck::Tag(Core& core, const Access& access, uint16_t origin) {
    for (uint32_t o = 0; o < access.outer; ++o) {
        for (uint32_t i = 0; i < access.inner; ++i) {
            const uint8_t* at = static_cast<const uint8_t*>(access.base) + o * access.outerStride +
                                i * access.innerStride;
            uint16_t* first = Tags(core, access.space, at);
            if (first == nullptr) {
                return;
            }
            uint16_t* last = Tags(core, access.space, at + access.bytes - 1);
            std::fill(first, last + 1, origin);
        }
    }
}

// The place, and for a core's memory what handed it out.
std::string MemoryCheck::Describe(Core& core, Space space, const uint8_t* address, int64_t bytes) {
    if (InRegister(core, address)) {
        return "the compare mask register";
    }
    std::string text = Place(core, space, address, static_cast<size_t>(bytes));
    if (space == Space::Gm || core.memory[static_cast<size_t>(space)] == nullptr) {
        return text;
    }
    const int64_t offset = address - core.memory[static_cast<size_t>(space)];
    const std::vector<Allocation>& all = StateOf(core).allocations;
    for (size_t i = all.size(); i-- > 0;) {
        const Allocation& a = all[i];
        if (a.space != space || offset < a.offset || offset >= a.offset + int64_t{a.bytes}) {
            continue;
        }
        text += ", from InitBuffer " + Text(a.init);
        if (a.alloc.line != 0) {
            text += ", AllocTensor " + Text(a.alloc);
        }
        if (a.free.line != 0) {
            text += ", freed before at " + Text(a.free);
        }
        break;
    }
    return text;
}

uint16_t MemoryCheck::NewOrigin(Core& core, Space space, const uint8_t* address, int64_t bytes,
                                const char* operand) {
    const std::pair<uint64_t, const char*> key{static_cast<uint64_t>(core.where.line) << 16 |
                                                   (reinterpret_cast<uintptr_t>(operand) & 0xFFFF),
                                               core.where.file};
    MemoryCore& state = StateOf(core);
    const auto known = state.origins.find(key);
    if (known != state.origins.end()) {
        return known->second;
    }
    Origin origin;
    origin.site.op = core.op;
    origin.site.pipe = PipeOf(core.op);
    origin.site.where = core.where;
    origin.site.core = core.Title();
    origin.memory = std::string(operand) + ", " + Describe(core, space, address, bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    if (origins_.size() + 1 >= kOrigins) {
        return kOrigins;
    }
    origins_.push_back(std::move(origin));
    const uint16_t id = static_cast<uint16_t>(origins_.size());
    state.origins.emplace(key, id);
    return id;
}

uint16_t MemoryCheck::OriginOf(Core& core, Space space, const uint8_t* address, int64_t bytes,
                               const char* operand) {
    const uint16_t* tag = Tags(core, space, address);
    return tag != nullptr && *tag != 0 ? *tag : NewOrigin(core, space, address, bytes, operand);
}

uint16_t MemoryCheck::SourceOrigin(Core& core, const ShadowCopy& copy) {
    const Access& access = copy.source;
    for (uint32_t o = 0; o < access.outer; ++o) {
        for (uint32_t i = 0; i < access.inner; ++i) {
            const int64_t offset = o * access.outerStride + i * access.innerStride;
            for (uint32_t b = 0; b < access.bytes; ++b) {
                if (copy.from[offset + b] == 0) {
                    continue;
                }
                uint32_t end = b;
                while (end < access.bytes && copy.from[offset + end] != 0) {
                    ++end;
                }
                return OriginOf(core, access.space,
                                static_cast<const uint8_t*>(access.base) + offset + b, end - b,
                                "the source");
            }
        }
    }
    return 0;
}

void MemoryCheck::Shows(Core& core, const char* kind, uint16_t origin, const std::string& place) {
    Finding finding;
    finding.kind = kind;
    finding.second.op = core.op;
    finding.second.pipe = PipeOf(core.op);
    finding.second.where = core.where;
    finding.memory = place;
    finding.missing =
        "a write to these bytes before they are read, or a mask, count or m, n, k "
        "that leaves them out";
    if (origin == 0) {
        finding.missing = "a store of what to start from, before the first atomic operation";
    }
    if (origin != 0 && origin != kOrigins) {
        std::lock_guard<std::mutex> lock(mutex_);
        const Origin& from = origins_[origin - 1];
        const bool same =
            from.site.where.line == core.where.line && from.site.where.file == core.where.file;
        if (!same) {
            finding.first = from.site;
            if (finding.first.core == core.Title()) {
                finding.first.core.clear();
            }
        }
        finding.memory = from.memory + (place.empty() ? "" : "; reaches " + place);
    }
    findings_.Add(core, std::move(finding));
}

void MemoryCheck::ShowsInOutput(Core& core, const Access& target, uint8_t* shadow,
                                uint16_t origin) {
    bool shown = false;
    for (uint32_t o = 0; o < target.outer; ++o) {
        for (uint32_t i = 0; i < target.inner; ++i) {
            const int64_t offset = o * target.outerStride + i * target.innerStride;
            if (!AnySet(shadow + offset, target.bytes)) {
                continue;
            }
            if (!shown) {
                uint32_t begin = 0;
                while (shadow[offset + begin] == 0) {
                    ++begin;
                }
                uint32_t end = begin;
                while (end < target.bytes && shadow[offset + end] != 0) {
                    ++end;
                }
                const uint8_t* at = static_cast<const uint8_t*>(target.base) + offset + begin;
                Shows(core,
                      origin != 0 ? "unwritten memory reaches an output"
                                  : "atomic operation on unwritten memory",
                      origin, Place(core, Space::Gm, at, end - begin));
                shown = true;
            }
            // Reported once; and written it is.
            std::memset(shadow + offset, 0, target.bytes);
        }
    }
}

void MemoryCheck::Forget(Core& core, const Allocation& allocation) {
    uint8_t* start = core.memory[static_cast<size_t>(allocation.space)] + allocation.offset;
    std::memset(ShadowOf(start), 0xFF, allocation.bytes);
    Tag(core, Access{start, allocation.bytes, true, allocation.space}, 0);
}

void MemoryCheck::Buffer(Core& core, const void* buffer, Space space, uint32_t offset,
                         uint32_t bytes) {
    std::vector<Allocation>& all = StateOf(core).allocations;
    // A TPipe that was reset hands out its buffers again.
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const Allocation& a) { return a.buffer == buffer; }),
              all.end());
    all.push_back(Allocation{buffer, space, offset, bytes, core.where});
    Forget(core, all.back());
    // NaN in every floating format, so that the results show it as well. Not again when a queue
    // hands the buffer out again: a device keeps what was there, and filling costs time.
    std::memset(core.memory[static_cast<size_t>(space)] + offset, 0xFF, bytes);
}

void MemoryCheck::OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) {
    for (const Access& access : accesses) {
        if (op != Op::GetValue && op != Op::SetValue) {
            continue;
        }
        uint8_t* shadow = Shadow(core, access);
        // A reference to an element may be for writing it.
        if (op == Op::GetValue && !access.write && AnySet(shadow, access.bytes)) {
            const uint8_t* at = static_cast<const uint8_t*>(access.base);
            Shows(core, "unwritten memory read as a scalar",
                  OriginOf(core, access.space, at, access.bytes, "the tensor"), "");
        }
        // Also after a read: one report is enough.
        if (access.space != Space::Gm || RegionOf(access.base).writable) {
            std::memset(shadow, 0, access.bytes);
        }
    }
}

void MemoryCheck::OnOrdering(Core& core, Op op, const Ordering& ordering) {
    if (op == Op::Kernel && ordering.event == 0) {
        MemoryCore* state;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            cores_.emplace_back();
            state = &cores_.back();
        }
        state->memory = core.owner->MemoryBase();
        std::memset(state->compareShadow, 0xFF, sizeof(state->compareShadow));
        core.checks[kMemory] = state;
        return;
    }
    if (op != Op::AllocTensor && op != Op::FreeTensor) {
        return;
    }
    for (Allocation& allocation : StateOf(core).allocations) {
        if (allocation.buffer != ordering.buffer) {
            continue;
        }
        if (op == Op::FreeTensor) {
            allocation.free = core.where;
        } else {
            allocation.alloc = core.where;
            Forget(core, allocation);
        }
        return;
    }
}

void MemoryCheck::CheckOutput(const GmRegion& region) {
    const size_t bytes = static_cast<size_t>(region.end - region.begin);
    std::string listed;
    size_t ranges = 0;
    size_t missing = 0;
    size_t start = 0;
    bool open = false;
    for (size_t i = 0; i <= bytes; ++i) {
        if (!open && i % kChunk == 0 && i + kChunk <= bytes && region.filled[i / kChunk] &&
            !AnySet(region.shadow + i, kChunk)) {
            i += kChunk - 1;
            continue;
        }
        const bool unwritten = i < bytes && (!region.filled[i / kChunk] || region.shadow[i] != 0);
        if (unwritten && !open) {
            start = i;
        } else if (!unwritten && open) {
            missing += i - start;
            if (ranges++ < kListedRanges) {
                listed +=
                    (ranges == 1 ? "" : ", ") + std::to_string(start) + " to " + std::to_string(i);
            }
        }
        open = unwritten;
    }
    if (missing == 0) {
        return;
    }
    Finding finding;
    finding.kind = "output never written";
    finding.core = "end of the launch";
    finding.memory = "GM tensor '" + region.range->name + "' bytes " + listed +
                     (ranges > kListedRanges ? ", ..." : "") + ": " + std::to_string(missing) +
                     " of " + std::to_string(bytes) + " bytes";
    finding.missing = "a store to them";
    findings_.Add(std::move(finding));
}

void MemoryCheck::OnEnd(LaunchState& launch) {
    if (launch.aborted) {
        return;
    }
    for (GmRegion& region : regions_) {
        if (region.role != GmRole::Result || region.begin == region.end) {
            continue;
        }
        CheckOutput(region);
        Fill(region, region.begin, region.end);
    }
}

// The entry points of device/defined.h that are no vector or matrix instruction.

bool BeginCopy(Core& core, const Access& from, const Access& to, ShadowCopy* copy) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return false;
    }
    copy->source = from;
    copy->target = to;
    copy->from = check->Shadow(core, from);
    copy->to = check->Shadow(core, to);
    copy->dirty = (from.space != Space::Gm || check->RegionOf(from.base).writable) &&
                  AnySet(copy->from, from);
    return true;
}

void EndCopy(Core& core, const ShadowCopy& copy) {
    const bool atomic = core.atomic != AtomicOp::None && copy.target.space == Space::Gm;
    if (!copy.dirty && !atomic) {
        return;
    }
    MemoryCheck& check = *MemoryOf(core);
    const uint16_t origin = copy.dirty ? check.SourceOrigin(core, copy) : 0;
    if (copy.target.space == Space::Gm &&
        check.RegionOf(copy.target.base).role != GmRole::Scratch) {
        check.ShowsInOutput(core, copy.target, copy.to, origin);
    } else if (copy.dirty) {
        check.Tag(core, copy.target, origin);
    }
}

void ShadowStore(Core& core, uint8_t* to, const uint8_t* from, int64_t bytes) {
    if (core.atomic == AtomicOp::None) {
        std::memcpy(to, from, static_cast<size_t>(bytes));
        return;
    }
    std::lock_guard<std::mutex> lock(AtomicMutex());
    for (int64_t i = 0; i < bytes; ++i) {
        to[i] |= from[i];
    }
}

void TrackPadding(Core& core, const Access& target, int64_t skip, const char* what) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    const uint8_t* at = static_cast<const uint8_t*>(target.base) + skip;
    check->Tag(core, target, check->NewOrigin(core, target.space, at, target.bytes - skip, what));
}

void TrackWrite(Core& core, const Access& target) {
    MemoryCheck* check = MemoryOf(core);
    if (check == nullptr) {
        return;
    }
    uint8_t* shadow = check->Shadow(core, target);
    for (uint32_t o = 0; o < target.outer; ++o) {
        for (uint32_t i = 0; i < target.inner; ++i) {
            std::memset(shadow + o * target.outerStride + i * target.innerStride, 0, target.bytes);
        }
    }
}

void TrackControl(Core& core, const void* address, int64_t bytes, const char* operand) {
    MemoryCheck* check = MemoryOf(core);
    uint8_t* shadow = ShadowOf(static_cast<uint8_t*>(const_cast<void*>(address)));
    if (check == nullptr || !AnySet(shadow, static_cast<size_t>(bytes))) {
        return;
    }
    const uint8_t* at = static_cast<const uint8_t*>(address);
    int64_t begin = 0;
    while (shadow[begin] == 0) {
        ++begin;
    }
    check->Shows(core, "unwritten memory decides what an instruction does",
                 check->OriginOf(core, Space::Ub, at + begin, bytes - begin, operand), "");
    std::memset(shadow, 0, static_cast<size_t>(bytes));
}

void TrackBuffer(Core& core, const void* buffer, Space space, uint32_t offset, uint32_t bytes) {
    if (MemoryCheck* check = MemoryOf(core)) {
        check->Buffer(core, buffer, space, offset, bytes);
    }
}

}  // namespace sim
