// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#if SIM_FIBER_ASM
// simSwitchStacks(save, to): pushes the registers that a call preserves, stores the stack pointer
// in *save, continues on the stack `to`. simEnterFiber is where a new stack continues: the fiber is
// in r12, its main function in r13.
extern "C" __attribute__((visibility("hidden"))) void simSwitchStacks(void** save, void* to);
extern "C" __attribute__((visibility("hidden"))) void simEnterFiber();
asm(R"(
    .text
    .p2align 4
    .hidden simSwitchStacks
    .globl simSwitchStacks
    .type simSwitchStacks, @function
simSwitchStacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simSwitchStacks, .-simSwitchStacks
    .hidden simEnterFiber
    .globl simEnterFiber
    .type simEnterFiber, @function
simEnterFiber:
    .cfi_startproc
    .cfi_undefined rip
    movq %r12, %rdi
    callq *%r13
    ud2
    .cfi_endproc
    .size simEnterFiber, .-simEnterFiber
)");
#endif

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

void Fiber::Main(Fiber* self) {
    self->function_(self->argument_);
    self->Abandon();
}

void Fiber::Abandon() {
    done_ = true;
    Suspend();
    __builtin_unreachable();
}

#if SIM_FIBER_ASM

void Fiber::Start(Stack* stack, Function function, void* argument) {
    stack_ = stack;
    function_ = function;
    argument_ = argument;
    done_ = false;
    // What simSwitchStacks pops: control words, r15, r14, r13, r12, rbx, rbp, return address.
    uint64_t frame[8] = {};
    uint32_t controls[2] = {};
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(controls[0]), "=m"(controls[1]));
    std::memcpy(&frame[0], controls, sizeof(controls));
    frame[3] = reinterpret_cast<uint64_t>(&Fiber::Main);
    frame[4] = reinterpret_cast<uint64_t>(this);
    frame[7] = reinterpret_cast<uint64_t>(&simEnterFiber);
    char* top = static_cast<char*>(stack->Base()) + Stack::kBytes - 64;
    own_ = top - sizeof(frame);
    std::memcpy(own_, frame, sizeof(frame));
}

void Fiber::Resume() {
    simSwitchStacks(&resumer_, own_);
}

void Fiber::Suspend() {
    simSwitchStacks(&own_, resumer_);
}

#else

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
    Main(reinterpret_cast<Fiber*>((static_cast<uint64_t>(high) << 32) | low));
}

void Fiber::Resume() {
    swapcontext(&resumer_, &own_);
}

void Fiber::Suspend() {
    swapcontext(&own_, &resumer_);
}

#endif

}  // namespace sim
