// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "op_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace kda::bridge {
namespace {

constexpr const char* kWayOut =
    "Build it again from the sources of this package (./build.sh build), or let the environment "
    "variable HYPER_PARALLEL_KDA_OPAPI name another op library, or unset that variable to use the "
    "library that belongs to the package.";

std::string LastLoaderError() {
    const char* text = dlerror();
    return text == nullptr ? "no further information" : text;
}

// Whether the file ends before its own headers say. dlopen maps such a file and then touches pages
// that do not exist, which ends the process; what else can be wrong with it, dlopen reports itself.
bool IsTruncated(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const uint64_t size = file ? static_cast<uint64_t>(file.tellg()) : 0;
    Elf64_Ehdr header;
    if (size < sizeof(header)) {
        return false;
    }
    file.seekg(0);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
        return false;
    }
    const uint64_t tableBytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (header.e_phoff > size || tableBytes > size - header.e_phoff) {
        return true;
    }
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    file.seekg(static_cast<std::streamoff>(header.e_phoff));
    file.read(reinterpret_cast<char*>(segments.data()), static_cast<std::streamsize>(tableBytes));
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::shared_ptr<OpLibrary> OpLibrary::Open(const std::string& path) {
    static std::mutex mutex;
    static auto* libraries = new std::unordered_map<std::string, std::shared_ptr<OpLibrary>>();
    if (path.empty() || path.front() != '/') {
        throw std::runtime_error("op library: expected an absolute path, got '" + path + "'");
    }
    std::lock_guard<std::mutex> lock(mutex);
    auto found = libraries->find(path);
    if (found != libraries->end()) {
        return found->second;
    }
    const bool isTruncated = IsTruncated(path);
    void* handle = isTruncated ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        throw std::runtime_error("cannot load the op library " + path + ": " +
                                 (isTruncated ? "the file is truncated" : LastLoaderError()) +
                                 ". " + kWayOut);
    }
    std::shared_ptr<OpLibrary> library(new OpLibrary(path, handle));
    libraries->emplace(path, library);
    return library;
}

void* OpLibrary::Find(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = symbols_.find(name);
    if (found != symbols_.end()) {
        return found->second;
    }
    void* symbol = dlsym(handle_, name.c_str());
    if (symbol != nullptr) {
        symbols_.emplace(name, symbol);
    }
    return symbol;
}

void* OpLibrary::StageSymbol(const std::string& name) {
    void* symbol = Find(name);
    if (symbol == nullptr) {
        throw std::runtime_error("symbol " + name + " is not in the op library " + path_ +
                                 ", so this stage cannot run; other stages are not affected. " +
                                 kWayOut);
    }
    return symbol;
}

void* OpLibrary::FindRuntime(const std::string& name) {
    void* symbol = Find(name);
    for (const char* runtime : {"libnnopbase.so", "libascendcl.so"}) {
        if (symbol != nullptr) {
            break;
        }
        // Already loaded by MindSpore on Ascend; absent elsewhere.
        void* handle = dlopen(runtime, RTLD_NOW | RTLD_LOCAL);
        symbol = handle == nullptr ? nullptr : dlsym(handle, name.c_str());
    }
    if (symbol != nullptr) {
        std::lock_guard<std::mutex> lock(mutex_);
        symbols_.emplace(name, symbol);
    }
    return symbol;
}

void* OpLibrary::RuntimeSymbol(const std::string& name) {
    void* symbol = FindRuntime(name);
    if (symbol == nullptr) {
        throw std::runtime_error("ACL function " + name + " is neither in the op library " + path_ +
                                 " nor in libnnopbase.so or libascendcl.so. On Ascend, source "
                                 "CANN's set_env.sh first. " +
                                 kWayOut);
    }
    return symbol;
}

CreateTensorFn OpLibrary::createTensor() {
    return reinterpret_cast<CreateTensorFn>(RuntimeSymbol("aclCreateTensor"));
}

DestroyTensorFn OpLibrary::destroyTensor() {
    return reinterpret_cast<DestroyTensorFn>(RuntimeSymbol("aclDestroyTensor"));
}

CreateIntArrayFn OpLibrary::createIntArray() {
    return reinterpret_cast<CreateIntArrayFn>(RuntimeSymbol("aclCreateIntArray"));
}

DestroyIntArrayFn OpLibrary::destroyIntArray() {
    return reinterpret_cast<DestroyIntArrayFn>(RuntimeSymbol("aclDestroyIntArray"));
}

std::string OpLibrary::RecentError() {
    auto recent = reinterpret_cast<RecentErrMsgFn>(FindRuntime("aclGetRecentErrMsg"));
    const char* text = recent == nullptr ? nullptr : recent();
    return text == nullptr ? "" : text;
}

}  // namespace kda::bridge
