// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

namespace sim {

Stack::Stack() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapping_ = mmap(nullptr, kBytes + page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) {
        throw std::bad_alloc();
    }
    mprotect(mapping_, page, PROT_NONE);
    base_ = static_cast<char*>(mapping_) + page;
}

Stack::~Stack() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    munmap(mapping_, kBytes + page);
}

void Fiber::Start(Stack* stack, Function function, void* argument) {
    stack_ = stack;
    function_ = function;
    argument_ = argument;
    done_ = false;
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack->Base();
    own_.uc_stack.ss_size = Stack::kBytes;
    own_.uc_link = &resumer_;
    const uint64_t self = reinterpret_cast<uint64_t>(this);
    makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::Enter(unsigned high, unsigned low) {
    Fiber* self = reinterpret_cast<Fiber*>((static_cast<uint64_t>(high) << 32) | low);
    self->function_(self->argument_);
    self->done_ = true;
}

void Fiber::Resume() {
    swapcontext(&resumer_, &own_);
}

void Fiber::Abandon() {
    done_ = true;
    Suspend();
    __builtin_unreachable();
}

void Fiber::Suspend() {
    swapcontext(&own_, &resumer_);
}

}  // namespace sim
