// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/findings.h"

#include <cstring>

#include "device/launch_state.h"

namespace sim {

namespace {

constexpr size_t kListed = 20;

std::string Text(const Site& site) {
    const char* slash = std::strrchr(site.where.file, '/');
    const char* file = slash != nullptr ? slash + 1 : site.where.file;
    std::string text = std::string(Name(site.op)) + " (" + Name(site.pipe) + ") " + file + ":" +
                       std::to_string(site.where.line);
    if (!site.core.empty()) {
        text += " on " + site.core;
    }
    return text;
}

// Digits in front, so that lines sort as numbers.
std::string Key(const Site& site) {
    char line[16];
    std::snprintf(line, sizeof(line), "%08d", site.where.line);
    return std::string("|") + site.where.file + ":" + line + " " + Name(site.op);
}

// Cores by kind and number, whichever thread came first.
bool Before(const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

void Findings::Add(const Core& core, Finding finding) {
    if (finding.core.empty()) {
        finding.core = core.Title();
    }
    Add(std::move(finding));
}

void Findings::Add(Finding finding) {
    std::string key = finding.kind + Key(finding.first) + Key(finding.second);
    if (finding.first.where.line == 0 && finding.second.where.line == 0) {
        key += "|" + finding.memory;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = found_.find(key);
    if (found == found_.end()) {
        found_.emplace(std::move(key), std::move(finding));
    } else if (Before(finding.core, found->second.core)) {
        found->second = std::move(finding);
    }
}

bool Findings::Empty() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return found_.empty();
}

std::string Findings::Text(const std::string& kernel) const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string text = "kernel " + kernel + ": " + std::to_string(found_.size()) +
                       (found_.size() == 1 ? " finding" : " findings");
    size_t listed = 0;
    for (const auto& [key, finding] : found_) {
        if (listed++ == kListed) {
            text += "\nand " + std::to_string(found_.size() - kListed) + " more";
            break;
        }
        text += "\n" + finding.kind + "\n  kernel:  " + kernel + ", " + finding.core;
        if (finding.first.where.line != 0) {
            text += "\n  first:   " + sim::Text(finding.first);
        }
        if (finding.second.where.line != 0) {
            text += "\n  second:  " + sim::Text(finding.second);
        }
        if (!finding.memory.empty()) {
            text += "\n  memory:  " + finding.memory;
        }
        if (!finding.missing.empty()) {
            text += "\n  missing: " + finding.missing;
        }
    }
    return text;
}

std::string Place(const Core& core, Space space, const void* address, size_t bytes) {
    const uint8_t* at = static_cast<const uint8_t*>(address);
    std::string text = Name(space);
    const uint8_t* start = core.memory[static_cast<size_t>(space)];
    if (space == Space::Gm) {
        for (const GmSpan& span : core.launch->spans) {
            if (at >= span.begin && at < span.end) {
                text += " tensor '" + span.range->name + "'";
                start = span.begin;
                break;
            }
        }
    }
    const long long offset = at - start;
    return text + " bytes " + std::to_string(offset) + " to " +
           std::to_string(offset + static_cast<long long>(bytes));
}

}  // namespace sim
