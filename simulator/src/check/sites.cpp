// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "check/sites.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace sim {

namespace {

struct Table {
    std::mutex mutex;
    std::map<std::tuple<const char*, int, Op, bool>, uint32_t> numbers;
    std::vector<Sites::Entry> entries;
};

// Never destroyed: worker threads outlive main.
Table& TheTable() {
    static Table* table = new Table;
    return *table;
}

}  // namespace

uint32_t Sites::Number(const Entry& entry) {
    Table& table = TheTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    const auto key = std::make_tuple(entry.where.file, entry.where.line, entry.op, entry.inOrder);
    const auto found = table.numbers.emplace(key, static_cast<uint32_t>(table.entries.size()));
    if (found.second) {
        table.entries.push_back(entry);
    }
    return found.first->second;
}

Sites::Entry Sites::At(uint32_t number) {
    Table& table = TheTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    return table.entries[number];
}

}  // namespace sim
