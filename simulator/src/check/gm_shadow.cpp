// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/gm_shadow.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "check/shadow.h"

namespace sim {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kPageGranules = kPageBytes / kGranule;

// Bits that no Epoch has: a cell's word may stand for more.
constexpr uint64_t kSet = 1ull << 63;    // index of a list of Epochs
constexpr uint64_t kSplit = 1ull << 62;  // index of cells byte by byte

struct Cell {
    uint64_t write = 0;
    uint64_t read = 0;
};

// What few pages have: granules touched in part, several readers, several atomic writers.
struct Side {
    std::vector<std::array<Cell, kGranule>> splits;
    std::vector<std::vector<Epoch>> sets;
    std::vector<uint32_t> freeSets;
};

}  // namespace

struct GmPage {
    std::atomic<bool> locked{false};
    Cell cells[kPageGranules];
    std::unique_ptr<Side> side;
};

namespace {

class PageLock {
public:
    explicit PageLock(GmPage& page) : page_(page) {
        while (page_.locked.exchange(true, std::memory_order_acquire)) {
        }
    }
    ~PageLock() { page_.locked.store(false, std::memory_order_release); }

private:
    GmPage& page_;
};

struct PageStock {
    std::mutex mutex;
    std::vector<GmPage*> pages;
};

PageStock& ThePages() {
    static PageStock* stock = new PageStock;
    return *stock;
}

// One instruction's walk over some cells of a page, with the page's lock held.
class Walker {
public:
    Walker(const GmToucher& who, bool write, GmPage& page, std::vector<GmConflict>* conflicts)
        : who_(who), write_(write), page_(page), conflicts_(conflicts) {}

    // Bytes [from, to) of the page, which starts at `address`.
    void Run(const uint8_t* address, size_t from, size_t to) {
        for (size_t at = from; at < to;) {
            const size_t granule = at / kGranule;
            const size_t end = std::min(to, (granule + 1) * kGranule);
            Cell& cell = page_.cells[granule];
            const bool whole = end - at == kGranule;
            if (whole && cell.write == lastWrite_ && cell.read == lastRead_) {
                cell = last_;
            } else if (whole && (cell.write & kSplit) == 0) {
                TouchWhole(cell, address + at);
            } else {
                TouchBytes(cell, address + granule * kGranule, at % kGranule,
                           end - granule * kGranule);
            }
            at = end;
        }
    }

private:
    void TouchWhole(Cell& cell, const uint8_t* address) {
        const Cell before = cell;
        const size_t found = conflicts_->size();
        const size_t extended = extended_;
        Touch(cell, address, kGranule);
        // The next granule is mostly in the same state, and then nothing is new about it.
        const uint64_t lists = before.write | before.read | cell.write | cell.read;
        if ((lists & kSet) == 0 && conflicts_->size() == found && extended_ == extended) {
            lastWrite_ = before.write;
            lastRead_ = before.read;
            last_ = cell;
        }
    }

    void TouchBytes(Cell& cell, const uint8_t* address, size_t from, size_t to) {
        Side& side = TheSide();
        if ((cell.write & kSplit) == 0) {
            std::array<Cell, kGranule> bytes;
            bytes.fill(cell);
            // A list belongs to one cell.
            for (size_t i = 1; i < kGranule; ++i) {
                bytes[i].write = Copied(bytes[i].write);
                bytes[i].read = Copied(bytes[i].read);
            }
            side.splits.push_back(bytes);
            cell.write = kSplit | (side.splits.size() - 1);
            cell.read = 0;
        }
        const size_t index = cell.write & ~kSplit;
        for (size_t i = from; i < to; ++i) {
            Touch(side.splits[index][i], address + i, 1);
        }
        // After a write to every byte they are all alike. The place of the bytes stays unused.
        const Cell& first = side.splits[index][0];
        if (write_ && to - from == kGranule && (first.write & kSet) == 0) {
            cell = first;
        }
    }

    void Touch(Cell& cell, const uint8_t* address, size_t bytes) {
        ForEach(cell.write, [&](Epoch other) {
            const bool bothAtomic = write_ && who_.me.Atomic() && other.Atomic();
            if (!bothAtomic && !Ordered(other)) {
                Conflict(address, bytes, other, true);
            }
        });
        if (!write_) {
            cell.read = With(cell.read);
            return;
        }
        ForEach(cell.read, [&](Epoch other) {
            if (!Ordered(other)) {
                Conflict(address, bytes, other, false);
            }
        });
        Drop(cell.read);
        cell.read = 0;
        if (who_.me.Atomic()) {
            cell.write = With(cell.write);
        } else {
            Drop(cell.write);
            cell.write = who_.me.bits;
        }
    }

    // Ended before this instruction starts, or part of it.
    bool Ordered(Epoch other) const {
        return Known(other) ||
               (other.SamePipe(who_.me) && (who_.inOrder || other.Number() == who_.me.Number()));
    }
    bool Known(Epoch other) const { return Knows(*who_.clock, who_.me.Block(), other); }

    // `word` and this instruction, without the ones that are complete before it: whoever is
    // ordered behind it is ordered behind them.
    uint64_t With(uint64_t word) {
        if (word == 0) {
            return who_.me.bits;
        }
        if ((word & kSet) == 0) {
            const Epoch other{word};
            if (other.SamePipe(who_.me) || Known(other)) {
                return who_.me.bits;
            }
            return NewSet({other, who_.me});
        }
        std::vector<Epoch>& set = TheSide().sets[word & ~kSet];
        set.erase(
            std::remove_if(set.begin(), set.end(),
                           [&](Epoch other) { return other.SamePipe(who_.me) || Known(other); }),
            set.end());
        set.push_back(who_.me);
        return word;
    }

    template <typename Function>
    void ForEach(uint64_t word, const Function& function) {
        if (word == 0) {
            return;
        }
        if ((word & kSet) == 0) {
            function(Epoch{word});
            return;
        }
        for (Epoch epoch : TheSide().sets[word & ~kSet]) {
            function(epoch);
        }
    }

    void Conflict(const uint8_t* address, size_t bytes, Epoch other, bool otherWrites) {
        for (size_t i = conflicts_->size(); i-- > 0 && i + 4 >= conflicts_->size();) {
            GmConflict& last = (*conflicts_)[i];
            if (last.to == address && last.other.bits == other.bits &&
                last.otherWrites == otherWrites) {
                last.to = address + bytes;
                ++extended_;
                return;
            }
        }
        conflicts_->push_back(GmConflict{address, address + bytes, other, otherWrites});
    }

    Side& TheSide() {
        if (!page_.side) {
            page_.side.reset(new Side);
        }
        return *page_.side;
    }
    uint64_t NewSet(std::vector<Epoch> epochs) {
        Side& side = TheSide();
        if (side.freeSets.empty()) {
            side.sets.push_back(std::move(epochs));
            return kSet | (side.sets.size() - 1);
        }
        const uint32_t index = side.freeSets.back();
        side.freeSets.pop_back();
        side.sets[index] = std::move(epochs);
        return kSet | index;
    }
    uint64_t Copied(uint64_t word) {
        return (word & kSet) == 0 ? word : NewSet(std::vector<Epoch>(TheSide().sets[word & ~kSet]));
    }
    void Drop(uint64_t word) {
        if ((word & kSet) != 0) {
            TheSide().freeSets.push_back(static_cast<uint32_t>(word & ~kSet));
        }
    }

    const GmToucher& who_;
    const bool write_;
    GmPage& page_;
    std::vector<GmConflict>* conflicts_;
    size_t extended_ = 0;
    uint64_t lastWrite_ = ~0ull;  // no cell looks like this
    uint64_t lastRead_ = ~0ull;
    Cell last_;
};

}  // namespace

GmShadow::GmShadow(const std::vector<GmSpan>& spans) {
    for (const GmSpan& span : spans) {
        if (!span.range->writable || span.begin == span.end) {
            continue;
        }
        if (!segments_.empty() && span.begin < segments_.back().end) {
            segments_.back().end = std::max(segments_.back().end, span.end);
            continue;
        }
        const uintptr_t base = reinterpret_cast<uintptr_t>(span.begin) / kGranule * kGranule;
        segments_.push_back(Segment{
            span.begin, span.end, reinterpret_cast<const uint8_t*>(base), {nullptr, &std::free}});
    }
    for (Segment& segment : segments_) {
        const size_t count = static_cast<size_t>(segment.end - segment.base) / kPageBytes + 1;
        // Large ones are zero pages that cost nothing until they are touched.
        void* memory = std::calloc(count, sizeof(std::atomic<GmPage*>));
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        segment.pages.reset(static_cast<std::atomic<GmPage*>*>(memory));
    }
}

GmShadow::~GmShadow() {
    for (GmPage* page : used_) {
        std::memset(static_cast<void*>(page->cells), 0, sizeof(page->cells));
        page->side.reset();
    }
    PageStock& stock = ThePages();
    std::lock_guard<std::mutex> lock(stock.mutex);
    stock.pages.insert(stock.pages.end(), used_.begin(), used_.end());
}

GmShadow::Segment* GmShadow::Find(const uint8_t* address, uint32_t* hint) {
    if (*hint < segments_.size() && address >= segments_[*hint].begin &&
        address < segments_[*hint].end) {
        return &segments_[*hint];
    }
    for (uint32_t i = 0; i < segments_.size() && address >= segments_[i].begin; ++i) {
        if (address < segments_[i].end) {
            *hint = i;
            return &segments_[i];
        }
    }
    return nullptr;
}

GmPage* GmShadow::PageAt(Segment& segment, size_t index) {
    std::atomic<GmPage*>& slot = segment.pages[index];
    GmPage* page = slot.load(std::memory_order_acquire);
    if (page != nullptr) {
        return page;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    page = slot.load(std::memory_order_acquire);
    if (page == nullptr) {
        {
            PageStock& stock = ThePages();
            std::lock_guard<std::mutex> stockLock(stock.mutex);
            if (!stock.pages.empty()) {
                page = stock.pages.back();
                stock.pages.pop_back();
            }
        }
        if (page == nullptr) {
            page = new GmPage;
        }
        used_.push_back(page);
        slot.store(page, std::memory_order_release);
    }
    return page;
}

void GmShadow::Touch(const GmToucher& who, const void* address, size_t bytes, bool write,
                     uint32_t* hint, std::vector<GmConflict>* conflicts) {
    const uint8_t* from = static_cast<const uint8_t*>(address);
    Segment* found = Find(from, hint);
    if (found == nullptr) {
        return;
    }
    Segment& segment = *found;
    const uint8_t* to = std::min(from + bytes, segment.end);
    while (from < to) {
        const size_t index = static_cast<size_t>(from - segment.base) / kPageBytes;
        const uint8_t* start = segment.base + index * kPageBytes;
        const uint8_t* end = std::min(to, start + kPageBytes);
        GmPage& page = *PageAt(segment, index);
        PageLock lock(page);
        Walker(who, write, page, conflicts)
            .Run(start, static_cast<size_t>(from - start), static_cast<size_t>(end - start));
        from = end;
    }
}

}  // namespace sim
