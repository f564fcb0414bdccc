// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "sim/launch.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "block.h"
#include "float_mode.h"
#include "schedule.h"
#include "settings.h"
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

    uint32_t number = 0;
    Schedule schedule;
    size_t planned = 0;  // blocks taken from the worker's plan
    std::vector<std::pair<Block*, uint32_t>> runnable;

    void Work(LaunchState& launch, uint32_t which);
    bool Sweep();
    bool Turn(LaunchState& launch);
    bool Take(LaunchState& launch, uint32_t* index);
    bool StartNext(LaunchState& launch);
    void Retire(LaunchState& launch);
};

bool Worker::Take(LaunchState& launch, uint32_t* index) {
    if (launch.seed == 0) {
        return launch.TakeBlock(number, index);
    }
    const std::vector<uint32_t>& plan = launch.plan[number];
    if (planned == plan.size()) {
        return false;
    }
    *index = plan[planned++];
    return true;
}

bool Worker::StartNext(LaunchState& launch) {
    uint32_t index = 0;
    if (launch.aborted || !Take(launch, &index)) {
        return false;
    }
    if (blocks.empty()) {
        blocks.emplace_back(new Block);
    }
    if (launch.seed != 0) {
        // Whose garbage the block finds in its memories.
        std::swap(blocks.back(), blocks[schedule.Pick(static_cast<uint32_t>(blocks.size()))]);
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

// Every block as far as it goes.
bool Worker::Sweep() {
    bool progress = false;
    for (std::unique_ptr<Block>& block : active) {
        progress |= block->Run();
    }
    return progress;
}

// One turn of one core, or a new block.
bool Worker::Turn(LaunchState& launch) {
    runnable.clear();
    for (std::unique_ptr<Block>& block : active) {
        for (uint32_t i = 0; i < block->CoreCount(); ++i) {
            if (block->CanRun(i)) {
                runnable.emplace_back(block.get(), i);
            }
        }
    }
    if (runnable.empty()) {
        return false;
    }
    if (active.size() < launch.activeLimit && schedule.StartsEarly() && StartNext(launch)) {
        return true;
    }
    const auto [block, core] = runnable[schedule.Pick(static_cast<uint32_t>(runnable.size()))];
    schedule.BeginTurn(block->CoreAt(core));
    block->RunCore(core);
    return true;
}

void Worker::Work(LaunchState& launch, uint32_t which) {
    const FloatMode mode;
    number = which;
    schedule = Schedule(launch.seed, which);
    planned = 0;
    total = Counters();
    regions.clear();
    for (;;) {
        uint64_t seen;
        {
            std::lock_guard<std::mutex> lock(launch.mutex);
            seen = launch.version;
        }
        if (launch.seed == 0 ? Sweep() : Turn(launch)) {
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
        launch.ShareBlocks(count);
        for (uint32_t i = 1; i < count; ++i) {
            members_[i - 1]->Begin(&launch, i);
        }
        main_.Work(launch, 0);
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
        void Begin(LaunchState* launch, uint32_t which) {
            std::lock_guard<std::mutex> lock(mutex);
            job = launch;
            number = which;
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
                worker.Work(*job, number);
                lock.lock();
                job = nullptr;
                signal.notify_all();
            }
        }

        std::mutex mutex;
        std::condition_variable signal;
        LaunchState* job = nullptr;
        uint32_t number = 0;
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
    const std::string settings = SettingsProblem();
    if (!settings.empty()) {
        return "kernel " + spec.kernel + ": " + settings;
    }
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

void LaunchState::ShareBlocks(uint32_t count) {
    shares.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
        shares[i] = BlockShare{static_cast<uint32_t>(uint64_t{blocks} * i / count),
                               static_cast<uint32_t>(uint64_t{blocks} * (i + 1) / count)};
    }
}

bool LaunchState::TakeBlock(uint32_t worker, uint32_t* block) {
    std::lock_guard<std::mutex> lock(mutex);
    if (BlockShare& own = shares[worker]; own.next < own.end) {
        *block = own.next++;
        return true;
    }
    BlockShare& fullest = *std::max_element(
        shares.begin(), shares.end(),
        [](BlockShare a, BlockShare b) { return a.end - a.next < b.end - b.next; });
    if (fullest.next == fullest.end) {
        return false;
    }
    *block = --fullest.end;
    return true;
}

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
        const uint32_t workers = std::max(1u, std::min(threads, spec.blockDim));
        launch->seed = ScheduleSeed();
        if (launch->seed != 0) {
            const uint32_t cores = spec.cores != 0 ? spec.cores : CoreCount();
            launch->plan = PlanBlocks(launch->seed, spec.blockDim, workers);
            launch->activeLimit = (cores + workers - 1) / workers;
        }
        LaunchBegin(*launch);
        ThePool().Run(*launch, workers);
        LaunchEnd(*launch);
        result.status = launch->aborted ? 1 : 0;
        result.error = launch->error;
        if (launch->aborted && launch->seed != 0) {
            result.error += " (under schedule " + std::to_string(launch->seed) + ")";
        }
    } catch (const std::exception& error) {
        result.status = 1;
        result.error = "kernel " + spec.kernel + ": " + error.what();
    }
    return result;
}

}  // namespace sim
