// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_CHECK_FINDINGS_H
#define SIM_CHECK_FINDINGS_H

#include <map>
#include <mutex>
#include <string>

#include "sim/core.h"

namespace sim {

// An instruction of a report.
struct Site {
    Op op = Op::Kernel;
    Pipe pipe = Pipe::S;
    Where where{"", 0};
    std::string core;  // its Title(); empty: the finding's own core
};

// What a check found. A report has one line for every field that is not empty.
struct Finding {
    std::string kind;     // "race: read after write"
    std::string core;     // Title() of the core that ran `second`
    Site first;           // the earlier instruction; line 0: there is none
    Site second;          // the instruction at which it showed; line 0: the end of the launch
    std::string memory;   // Place(...)
    std::string missing;  // what would mend it, e.g. the flag to add
};

// The findings of one launch, each pair of source lines once a kind, for the lowest core that met
// it. Thread-safe.
class Findings {
public:
    void Add(const Core& core, Finding finding);
    void Add(Finding finding);  // that belongs to no core
    bool Empty() const;
    // The reports, ordered by kind and lines: the same text for every number of threads.
    std::string Text(const std::string& kernel) const;

private:
    mutable std::mutex mutex_;
    std::map<std::string, Finding> found_;  // by kind and both instructions
};

// "GM tensor 'q' bytes 0 to 64", "UB bytes 32 to 64".
std::string Place(const Core& core, Space space, const void* address, size_t bytes);

}  // namespace sim

#endif  // SIM_CHECK_FINDINGS_H
