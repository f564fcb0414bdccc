// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "settings.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/launch.h"

namespace sim {

namespace {

// A whole number that comes from the environment until a C function replaces it. What the
// environment says is judged once; a value that is not a number in range stays an error, which
// every call reports, until the C function gives a good one.
class Setting {
public:
    Setting(const char* name, uint64_t low, uint64_t high, uint64_t otherwise)
        : low_(low), high_(high), value_(otherwise) {
        const char* text = std::getenv(name);
        if (text == nullptr) {
            return;
        }
        uint64_t number = 0;
        if (Parse(text, &number) && Fits(number)) {
            value_ = number;
            return;
        }
        problem_ = std::string(name) + ": expected a whole number from " + std::to_string(low) +
                   " to " + std::to_string(high) + ", got '" + std::string(text).substr(0, 80) +
                   "'";
        bad_ = true;
    }
    bool Fits(uint64_t number) const { return number >= low_ && number <= high_; }
    bool Set(uint64_t number) {
        if (!Fits(number)) {
            return false;
        }
        value_ = number;
        bad_ = false;
        return true;
    }
    uint64_t Value() const { return value_; }
    std::string Problem() const { return bad_ ? problem_ : std::string(); }

private:
    // Decimal digits and nothing else.
    static bool Parse(const char* text, uint64_t* number) {
        constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
        if (*text == '\0') {
            return false;
        }
        for (; *text != '\0'; ++text) {
            const uint64_t digit = static_cast<uint64_t>(*text) - '0';
            if (digit > 9 || *number > (kMax - digit) / 10) {
                return false;
            }
            *number = *number * 10 + digit;
        }
        return true;
    }

    const uint64_t low_;
    const uint64_t high_;
    std::string problem_;
    std::atomic<uint64_t> value_;
    std::atomic<bool> bad_{false};
};

// The checks of the checked library: all of them, a list with commas, or "off". Read anew for every
// launch, so that one process can run with some and then with others.
struct Checks {
    Checks() {
        const char* text = std::getenv("ASCEND_SIM_CHECK");
        if (text == nullptr || std::string(text) == "off") {
            selected = text == nullptr ? std::vector<std::string>{kKnown[0], kKnown[1]}
                                       : std::vector<std::string>{};
            return;
        }
        std::stringstream list(std::string(text) + ",");
        for (std::string name; std::getline(list, name, ',');) {
            if (name != kKnown[0] && name != kKnown[1]) {
                problem = std::string(
                              "ASCEND_SIM_CHECK: expected off, races, memory or "
                              "races,memory, got '") +
                          std::string(text).substr(0, 80) + "'";
            }
            selected.push_back(name);
        }
    }
    static constexpr const char* kKnown[] = {"races", "memory"};
    std::vector<std::string> selected;
    std::string problem;
};

Setting& Threads() {
    static Setting* setting = new Setting("ASCEND_SIM_THREADS", 1, 4096,
                                          std::max(1u, std::thread::hardware_concurrency()));
    return *setting;
}

Setting& Cores() {
    static Setting* setting = new Setting("ASCEND_SIM_CORES", 1, 4096, 24);
    return *setting;
}

Setting& Seed() {
    static Setting* setting =
        new Setting("ASCEND_SIM_SCHEDULE", 0, std::numeric_limits<uint64_t>::max(), 0);
    return *setting;
}

Setting& Poisoned() {
    static Setting* setting = new Setting("ASCEND_SIM_POISON", 0, 1, 0);
    return *setting;
}

Setting& Subnormals() {
    static Setting* setting = new Setting("ASCEND_SIM_SUBNORMALS", 0, 1, 0);
    return *setting;
}

}  // namespace

uint32_t ThreadCount() {
    return static_cast<uint32_t>(Threads().Value());
}
uint32_t CoreCount() {
    return static_cast<uint32_t>(Cores().Value());
}
uint64_t ScheduleSeed() {
    return Seed().Value();
}
bool Poison() {
    return Poisoned().Value() != 0;
}
bool KeepSubnormals() {
    return Subnormals().Value() != 0;
}

bool CheckSelected(const std::string& name) {
    const std::vector<std::string> selected = Checks().selected;
    return std::find(selected.begin(), selected.end(), name) != selected.end();
}

std::string SettingsProblem() {
    for (const Setting* setting : {&Threads(), &Cores(), &Seed(), &Poisoned(), &Subnormals()}) {
        const std::string problem = setting->Problem();
        if (!problem.empty()) {
            return problem;
        }
    }
    return Checks().problem;
}

}  // namespace sim

extern "C" {

int ascendSimSetThreads(int threads) {
    return threads > 0 && sim::Threads().Set(static_cast<uint64_t>(threads)) ? 0 : 1;
}

int ascendSimSetCores(int cores) {
    return cores > 0 && sim::Cores().Set(static_cast<uint64_t>(cores)) ? 0 : 1;
}

int ascendSimSetSchedule(uint64_t seed) {
    return sim::Seed().Set(seed) ? 0 : 1;
}

int ascendSimSetSubnormals(int keep) {
    return keep >= 0 && sim::Subnormals().Set(static_cast<uint64_t>(keep)) ? 0 : 1;
}
}
