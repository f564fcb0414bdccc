// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace sim {

Plane::Plane(uint32_t bytes) {
    const size_t granules = (bytes + kGranule - 1) / kGranule;
    mapped_ = granules * (2 + kGranule) * sizeof(uint32_t);
    // Address space only: the marks of single bytes are rarely needed.
    mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) {
        throw std::bad_alloc();
    }
    marks_ = static_cast<uint32_t*>(mapping_);
    split_ = marks_ + granules;
    bytes_ = split_ + granules;
}

Plane::~Plane() {
    munmap(mapping_, mapped_);
}

void Plane::MarkPart(uint32_t granule, uint32_t from, uint32_t to, uint32_t number) {
    uint32_t* bytes = bytes_ + static_cast<size_t>(granule) * kGranule;
    if (split_[granule] != marks_[granule]) {
        std::fill_n(bytes, kGranule, marks_[granule]);
    }
    std::fill(bytes + from, bytes + to, number);
    split_[granule] = marks_[granule] = number;
}

void Plane::Mark(uint32_t from, uint32_t to, uint32_t number) {
    last_ = number;
    uint32_t granule = from / kGranule;
    const uint32_t end = to / kGranule;
    const uint32_t head = from % kGranule;
    const uint32_t tail = to % kGranule;
    if (head != 0) {
        MarkPart(granule, head, granule == end ? tail : kGranule, number);
        if (granule == end) {
            return;
        }
        ++granule;
    }
    std::fill(marks_ + granule, marks_ + end, number);
    if (tail != 0) {
        MarkPart(end, 0, tail, number);
    }
}

void Plane::Collect(uint32_t from, uint32_t to, uint32_t known, std::vector<Stretch>* found) const {
    for (uint32_t at = from; at < to;) {
        const uint32_t granule = at / kGranule;
        const bool split = split_[granule] == marks_[granule];
        const uint32_t number = split ? bytes_[at] : marks_[granule];
        const uint32_t next = std::min(to, split ? at + 1 : (granule + 1) * kGranule);
        if (number > known) {
            if (!found->empty() && found->back().number == number && found->back().to == at) {
                found->back().to = next;
            } else {
                found->push_back(Stretch{at, next, number});
            }
        }
        at = next;
    }
}

Plane& Shadow::At(Space space, bool write, uint32_t pipe) {
    std::unique_ptr<Plane>& plane = planes[static_cast<size_t>(space)][write][pipe];
    if (!plane) {
        plane.reset(new Plane(kSpaceBytes[static_cast<size_t>(space)]));
    }
    return *plane;
}

namespace {

struct Stock {
    std::mutex mutex;
    std::vector<std::unique_ptr<Shadow>> shadows;
};

// Never destroyed: worker threads outlive main.
Stock& TheStock() {
    static Stock* stock = new Stock;
    return *stock;
}

// Numbers have 32 bits.
constexpr uint32_t kWorn = 1u << 31;

}  // namespace

std::unique_ptr<Shadow> TakeShadow() {
    Stock& stock = TheStock();
    std::lock_guard<std::mutex> lock(stock.mutex);
    if (stock.shadows.empty()) {
        return std::make_unique<Shadow>();
    }
    std::unique_ptr<Shadow> shadow = std::move(stock.shadows.back());
    stock.shadows.pop_back();
    return shadow;
}

void ReturnShadow(std::unique_ptr<Shadow> shadow) {
    if (!shadow || *std::max_element(shadow->numbers, shadow->numbers + kPipes) > kWorn) {
        return;
    }
    Stock& stock = TheStock();
    std::lock_guard<std::mutex> lock(stock.mutex);
    stock.shadows.push_back(std::move(shadow));
}

}  // namespace sim
