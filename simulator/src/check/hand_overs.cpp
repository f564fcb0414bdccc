// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <memory>
#include <vector>

#include "check/checker.h"
#include "device/launch_state.h"
#include "sim/pipe_state.h"

// Queues hand buffers from one pipe to the next: the producer may write between AllocTensor and
// EnQue, the consumer may read and write between DeQue and FreeTensor. A use outside of these is
// reported even where some other flag happens to order it: the queue does not, and the next change
// to the kernel takes that flag away.
namespace sim {

namespace {

// A buffer that belongs to its queue for the moment.
struct Held {
    const Buffer* buffer;
    const uint8_t* begin;
    const uint8_t* end;
    Where since;
    Op by;  // EnQue or FreeTensor
};

struct HandOverCore {
    std::vector<Held> held[static_cast<size_t>(Space::Count)];
};

class HandOverCheck : public Check {
public:
    explicit HandOverCheck(Findings& findings) : findings_(findings) {}

    void OnAccess(Core& core, Op op, std::initializer_list<Access> accesses) override {
        const HandOverCore& state = *static_cast<HandOverCore*>(core.checks[kHandOvers]);
        for (const Access& access : accesses) {
            // An operand lies in one buffer, so its first byte tells.
            const uint8_t* at = static_cast<const uint8_t*>(access.base);
            for (const Held& held : state.held[static_cast<size_t>(access.space)]) {
                if (at >= held.begin && at < held.end) {
                    Used(core, op, access, held);
                }
            }
        }
    }

    void OnOrdering(Core& core, Op op, const Ordering& ordering) override {
        if (op == Op::Kernel && ordering.event == 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            cores_.emplace_back(new HandOverCore);
            core.checks[kHandOvers] = cores_.back().get();
            return;
        }
        const bool gives = op == Op::EnQue || op == Op::FreeTensor;
        if (!gives && op != Op::AllocTensor && op != Op::DeQue) {
            return;
        }
        const Buffer* buffer = static_cast<const Buffer*>(ordering.buffer);
        HandOverCore& state = *static_cast<HandOverCore*>(core.checks[kHandOvers]);
        std::vector<Held>& held = state.held[static_cast<size_t>(buffer->space)];
        for (size_t i = 0; i < held.size(); ++i) {
            if (held[i].buffer == buffer) {
                held[i] = held.back();
                held.pop_back();
                break;
            }
        }
        if (gives) {
            const uint8_t* begin = core.memory[static_cast<size_t>(buffer->space)] + buffer->offset;
            held.push_back(Held{buffer, begin, begin + buffer->bytes, core.where, op});
        }
    }

    void OnEnd(LaunchState&) override {}

private:
    void Used(Core& core, Op op, const Access& access, const Held& held) {
        Finding finding;
        const bool freed = held.by == Op::FreeTensor;
        finding.kind = freed ? "queue: buffer used after FreeTensor"
                             : "queue: buffer used between EnQue and DeQue";
        finding.first.op = held.by;
        finding.first.where = held.since;
        finding.second.op = op;
        finding.second.pipe = PipeOf(op);
        finding.second.where = core.where;
        finding.memory = Place(core, access.space, access.base, access.bytes);
        finding.missing = freed ? "FreeTensor behind the last use of the tensor"
                                : "EnQue behind the last use by its producer, or DeQue before this";
        findings_.Add(core, std::move(finding));
    }

    Findings& findings_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<HandOverCore>> cores_;
};

}  // namespace

std::unique_ptr<Check> MakeHandOverCheck(LaunchState&, Findings& findings) {
    return std::unique_ptr<Check>(new HandOverCheck(findings));
}

}  // namespace sim
