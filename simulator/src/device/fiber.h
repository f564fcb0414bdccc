// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <cstddef>

// A switch of our own costs a few nanoseconds; swapcontext makes two system calls to keep a signal
// mask that never changes. With shadow stacks only the library knows how.
#if defined(__x86_64__) && defined(__GNUC__) && !(defined(__CET__) && (__CET__ & 2))
#define SIM_FIBER_ASM 1
#else
#define SIM_FIBER_ASM 0
#include <ucontext.h>
#endif

namespace sim {

// A stack with a guard page; recycled, because a kernel's cores come and go with every launch.
class Stack {
public:
    Stack();
    ~Stack();
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    void* Base() const { return base_; }
    static constexpr size_t kBytes = 512 * 1024;

private:
    void* mapping_;
    void* base_;
};

// A function on a stack of its own that can be left and resumed on the thread that started it.
class Fiber {
public:
    using Function = void (*)(void*);
    void Start(Stack* stack, Function function, void* argument);
    // Runs the fiber until it suspends or ends.
    void Resume();
    // Called on the fiber: back to where Resume was called.
    void Suspend();
    // The same for good. Nothing on the fiber's stack is destroyed.
    [[noreturn]] void Abandon();
    bool Done() const { return done_; }
    Stack* TheStack() const { return stack_; }

private:
    [[noreturn]] static void Main(Fiber* self);

#if SIM_FIBER_ASM
    void* own_ = nullptr;
    void* resumer_ = nullptr;
#else
    static void Enter(unsigned high, unsigned low);
    ucontext_t own_;
    ucontext_t resumer_;
#endif
    Stack* stack_ = nullptr;
    Function function_ = nullptr;
    void* argument_ = nullptr;
    bool done_ = false;
};

}  // namespace sim

#endif  // SIM_FIBER_H
