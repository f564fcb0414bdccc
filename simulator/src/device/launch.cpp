// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "sim/launch.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "block.h"
#include "statistics.h"

namespace sim {

namespace {

// A thread's stock of blocks and stacks, kept from launch to launch.
struct Worker {
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<std::unique_ptr<Stack>> stacks;
    std::vector<std::unique_ptr<Block>> active;
    Counters total;
    std::vector<Region> regions;

    void Work(LaunchState& launch);
    bool StartNext(LaunchState& launch);
    void Retire(LaunchState& launch);
};

bool Worker::StartNext(LaunchState& launch) {
    if (launch.aborted) {
        return false;
    }
    const uint32_t index = launch.nextBlock.fetch_add(1);
    if (index >= launch.blocks) {
        return false;
    }
    if (blocks.empty()) {
        blocks.emplace_back(new Block);
    }
    std::unique_ptr<Block> block = std::move(blocks.back());
    blocks.pop_back();
    block->Start(launch, index, stacks);
    std::lock_guard<std::mutex> lock(launch.mutex);
    launch.running.push_back(block.get());
    active.push_back(std::move(block));
    return true;
}

void Worker::Retire(LaunchState& launch) {
    for (size_t i = 0; i < active.size();) {
        if (!active[i]->Done()) {
            ++i;
            continue;
        }
        std::unique_ptr<Block> block = std::move(active[i]);
        active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
        {
            std::lock_guard<std::mutex> lock(launch.mutex);
            launch.running.erase(
                std::find(launch.running.begin(), launch.running.end(), block.get()));
        }
        if (!launch.aborted) {
            block->CheckEnd();
        }
        block->Collect(&total, &regions);
        block->Finish(stacks);
        blocks.push_back(std::move(block));
    }
}

void Worker::Work(LaunchState& launch) {
    total = Counters();
    regions.clear();
    for (;;) {
        uint64_t seen;
        {
            std::lock_guard<std::mutex> lock(launch.mutex);
            seen = launch.version;
        }
        bool progress = false;
        for (std::unique_ptr<Block>& block : active) {
            progress |= block->Run();
        }
        if (progress) {
            Retire(launch);
            continue;
        }
        if (StartNext(launch)) {
            continue;
        }
        if (active.empty()) {
            break;
        }
        // Every core of this worker waits for cores of other workers. `idle` counts the workers
        // that found nothing to do since the last joint release.
        std::unique_lock<std::mutex> lock(launch.mutex);
        if (launch.version != seen) {
            continue;
        }
        ++launch.idle;
        launch.wake.wait(lock, [&] {
            return launch.version != seen || launch.aborted || launch.idle == launch.workers;
        });
        if (launch.version == seen) {
            if (!launch.aborted) {
                launch.Deadlock();
            }
            --launch.idle;
            launch.wake.notify_all();
        }
    }
    std::lock_guard<std::mutex> lock(launch.mutex);
    --launch.workers;
    launch.wake.notify_all();
}

// Threads that sleep between launches. Worker 0 is the launching thread itself.
class Pool {
public:
    void Run(LaunchState& launch, uint32_t count) {
        if (pid_ != getpid()) {
            // The threads did not survive a fork; leave their remains alone.
            new std::vector<std::unique_ptr<Member>>(std::move(members_));
            members_.clear();
            pid_ = getpid();
        }
        while (members_.size() + 1 < count) {
            members_.emplace_back(new Member);
        }
        launch.workers = count;
        for (uint32_t i = 1; i < count; ++i) {
            members_[i - 1]->Begin(&launch);
        }
        main_.Work(launch);
        for (uint32_t i = 1; i < count; ++i) {
            members_[i - 1]->Join();
        }
        Record(launch.spec->kernel, main_.total, main_.regions, true);
        for (uint32_t i = 1; i < count; ++i) {
            Record(launch.spec->kernel, members_[i - 1]->worker.total,
                   members_[i - 1]->worker.regions, false);
        }
    }

private:
    struct Member {
        Member() : thread([this] { Loop(); }) { thread.detach(); }
        void Begin(LaunchState* launch) {
            std::lock_guard<std::mutex> lock(mutex);
            job = launch;
            signal.notify_all();
        }
        void Join() {
            std::unique_lock<std::mutex> lock(mutex);
            signal.wait(lock, [this] { return job == nullptr; });
        }
        void Loop() {
            std::unique_lock<std::mutex> lock(mutex);
            for (;;) {
                signal.wait(lock, [this] { return job != nullptr; });
                lock.unlock();
                worker.Work(*job);
                lock.lock();
                job = nullptr;
                signal.notify_all();
            }
        }

        std::mutex mutex;
        std::condition_variable signal;
        LaunchState* job = nullptr;
        Worker worker;
        std::thread thread;
    };

    Worker main_;
    std::vector<std::unique_ptr<Member>> members_;
    pid_t pid_ = getpid();
};

// Never destroyed: its threads outlive main.
Pool& ThePool() {
    static Pool* pool = new Pool;
    return *pool;
}

std::string Validate(const LaunchSpec& spec, LaunchState& launch) {
    launch.type = spec.type != KernelType::Unset ? spec.type : RegisteredKernelType(spec.kernel);
    if (launch.type == KernelType::Unset) {
        return "kernel " + spec.kernel +
               ": its type is unknown, KERNEL_TASK_TYPE_DEFAULT is missing";
    }
    if (spec.blockDim == 0) {
        return "kernel " + spec.kernel + ": block count 0";
    }
    const uint32_t cores = spec.cores != 0 ? spec.cores : CoreCount();
    const bool vectorOnly = launch.type == KernelType::AivOnly;
    if (spec.allResident && spec.blockDim > (vectorOnly ? 2 * cores : cores)) {
        return "kernel " + spec.kernel + ": " + std::to_string(spec.blockDim) +
               " blocks with SetScheduleMode(1) on " + std::to_string(cores) + " AI cores";
    }
    return "";
}

}  // namespace

void LaunchState::Announce() {
    std::lock_guard<std::mutex> lock(mutex);
    ++version;
    idle = 0;
    wake.notify_all();
}

void LaunchState::Abort(const std::string& message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!aborted) {
        error = message;
        aborted = true;
    }
    wake.notify_all();
}

void LaunchState::Deadlock() {
    std::string text = "kernel " + spec->kernel + ": deadlock, every core waits:";
    std::vector<Block*> blocks = running;
    std::sort(blocks.begin(), blocks.end(),
              [](Block* a, Block* b) { return a->CoreAt(0).block < b->CoreAt(0).block; });
    uint32_t listed = 0;
    for (Block* block : blocks) {
        for (uint32_t i = 0; i < block->CoreCount(); ++i) {
            const Core& core = block->CoreAt(i);
            if (core.wait != Wait::None && listed++ < 80) {
                text += " [" + core.Title() + ": " + WaitText(core) + "]";
            }
        }
    }
    error = text;
    aborted = true;
}

LaunchResult Launch(const LaunchSpec& spec) {
    static std::mutex* launches = new std::mutex;
    LaunchResult result;
    try {
        std::lock_guard<std::mutex> lock(*launches);
        auto launch = std::make_unique<LaunchState>();
        launch->spec = &spec;
        result.error = Validate(spec, *launch);
        if (!result.error.empty()) {
            result.status = 1;
            return result;
        }
        launch->blocks = spec.blockDim;
        launch->cubes = launch->type == KernelType::AivOnly ? 0 : spec.blockDim;
        launch->vectors = launch->type == KernelType::AicOnly ? 0
                          : launch->type == KernelType::Mix12 ? 2 * spec.blockDim
                                                              : spec.blockDim;
        for (const GmRange& range : spec.ranges) {
            if (range.data != nullptr) {
                const uint8_t* begin = static_cast<const uint8_t*>(range.data);
                launch->spans.push_back(GmSpan{begin, begin + range.bytes, &range});
            }
        }
        std::sort(launch->spans.begin(), launch->spans.end(), [](const GmSpan& a, const GmSpan& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
        });
        const uint32_t threads = spec.threads != 0 ? spec.threads : ThreadCount();
        LaunchBegin(*launch);
        ThePool().Run(*launch, std::max(1u, std::min(threads, spec.blockDim)));
        LaunchEnd(*launch);
        result.status = launch->aborted ? 1 : 0;
        result.error = launch->error;
    } catch (const std::exception& error) {
        result.status = 1;
        result.error = "kernel " + spec.kernel + ": " + error.what();
    }
    return result;
}

}  // namespace sim
