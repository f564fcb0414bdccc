// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "acl_api.h"

namespace kda::bridge {

// An op library: the vendor library of an Ascend op package, or the simulator's. Loaded with
// RTLD_LOCAL, so that two libraries with the same symbols can live in one process; each symbol is
// looked up on its first use, so that a missing one fails only the call that needs it.
class OpLibrary {
public:
    // The library at `path` (absolute), opened on first use and then kept for the process: kernels
    // may still be in flight when the last caller is done with it.
    static std::shared_ptr<OpLibrary> Open(const std::string& path);

    OpLibrary(const OpLibrary&) = delete;
    OpLibrary& operator=(const OpLibrary&) = delete;

    const std::string& path() const { return path_; }

    bool Has(const std::string& name) { return Find(name) != nullptr; }

    // A stage's symbol; throws std::runtime_error that names symbol, library and the way out.
    void* StageSymbol(const std::string& name);

    // ACL runtime functions come from this library or what it is linked against, else, on Ascend,
    // from CANN's own libraries.
    CreateTensorFn createTensor();
    DestroyTensorFn destroyTensor();
    CreateIntArrayFn createIntArray();
    DestroyIntArrayFn destroyIntArray();

    // The runtime's last error text on this thread; empty when it offers none.
    std::string RecentError();

private:
    OpLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

    void* Find(const std::string& name);
    void* FindRuntime(const std::string& name);
    void* RuntimeSymbol(const std::string& name);

    std::string path_;
    void* handle_;
    std::mutex mutex_;
    std::unordered_map<std::string, void*> symbols_;
};

}  // namespace kda::bridge
