# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Builds op libraries that compute nothing: they write down what they are called with, fill each
output with its position in the C signature (from 1), and fail or lack symbols on demand."""

import ctypes
import subprocess

from hyper_parallel_kda.stage_table import STAGES, HostArraySpec

RUNTIME = r"""
#include <cstdint>
#include <cstring>
#include <string>
#include <sstream>
#include <vector>
struct aclTensor { std::vector<int64_t> shape, strides; int32_t dtype; void* data; };
struct aclIntArray { std::vector<int64_t> values; };
struct Output { aclTensor* tensor; int position; };
struct aclOpExecutor { std::vector<Output> outputs; std::string op; };
namespace {
std::string trace;
std::string failing;
std::string error;
uint64_t workspaceBytes = 0;
int64_t live = 0;
int32_t Fail(const std::string& symbol, int32_t status) {
    if (failing != symbol) return 0;
    error = "made to fail: " + symbol;
    return status;
}
void Write(std::ostream& out, const aclTensor* t) {
    if (!t) { out << " -"; return; }
    out << " t" << t->dtype << "[";
    for (size_t i = 0; i < t->shape.size(); ++i) out << (i ? "," : "") << t->shape[i];
    out << "]";
    int64_t expected = 1;
    for (size_t i = t->shape.size(); i-- > 0;) {
        if (t->strides[i] != expected) out << "!strides";
        expected *= t->shape[i];
    }
}
void Write(std::ostream& out, const aclIntArray* a) {
    out << (a ? " a" : " -");
    for (size_t i = 0; a && i < a->values.size(); ++i) out << (i ? "," : "") << a->values[i];
}
void Write(std::ostream& out, double value) { out << " d" << value; }
void Write(std::ostream& out, int64_t value) { out << " i" << value; }
void Write(std::ostream& out, bool value) { out << " b" << value; }
void Write(std::ostream& out, char* value) { out << " s" << value; }
void Fill(const Output& output) {
    size_t count = 1;
    for (int64_t size : output.tensor->shape) count *= size;
    const float value = static_cast<float>(output.position);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    for (size_t i = 0; i < count; ++i) {
        if (output.tensor->dtype == 0) static_cast<float*>(output.tensor->data)[i] = value;
        else static_cast<uint16_t*>(output.tensor->data)[i] = bits >> 16;
    }
}
int32_t Run(void* workspace, uint64_t size, aclOpExecutor* executor) {
    if (size != workspaceBytes || (size && !workspace)) { error = "no workspace"; return 361001; }
    if (size) std::memset(workspace, 0xff, size);
    const int32_t status = Fail("aclnn" + executor->op, 361001);
    for (const Output& output : executor->outputs) if (!status && output.tensor) Fill(output);
    delete executor;
    return status;
}
}  // namespace
extern "C" {
aclTensor* aclCreateTensor(const int64_t* dims, uint64_t count, int32_t dtype,
                           const int64_t* strides, int64_t, int32_t, const int64_t*,
                           uint64_t, void* data) {
    ++live;
    return new aclTensor{{dims, dims + count}, {strides, strides + count}, dtype, data};
}
int32_t aclDestroyTensor(const aclTensor* tensor) { --live; delete tensor; return 0; }
aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
    ++live;
    return new aclIntArray{{values, values + count}};
}
int32_t aclDestroyIntArray(const aclIntArray* array) { --live; delete array; return 0; }
const char* aclGetRecentErrMsg() { return error.c_str(); }
const char* fakeTrace() { return trace.c_str(); }
void fakeFail(const char* symbol) { failing = symbol; }
void fakeWorkspace(uint64_t bytes) { workspaceBytes = bytes; }
int64_t fakeLiveObjects() { return live; }
}
"""

C_TYPES = {"float": "double", "int": "int64_t", "bool": "bool", "str": "char*"}


def _stage_source(stage, missing):
    parameters, outputs = [], []
    for spec in stage.inputs:
        array = isinstance(spec, HostArraySpec)
        parameters.append(("aclIntArray*" if array else "aclTensor*", spec.name))
        if spec.name == stage.in_place:
            outputs.append((spec.name, len(parameters)))
    parameters += [(C_TYPES[attr.kind], attr.name) for attr in stage.attrs]
    for spec in stage.outputs:
        if spec.name != stage.in_place:
            parameters.append(("aclTensor*", spec.name + "Out"))
            outputs.append((spec.name + "Out", len(parameters)))
    declared = ", ".join(f"{kind} {name}" for kind, name in parameters)
    written = " ".join(f"Write(text, {name});" for _, name in parameters)
    made = ", ".join(f"{{{name}, {position}}}" for name, position in outputs)
    source = ""
    if stage.workspace_symbol not in missing:
        source += f"""
extern "C" int32_t {stage.workspace_symbol}({declared}, uint64_t* size, aclOpExecutor** executor) {{
    std::ostringstream text;
    text << "{stage.op}"; {written}
    trace = text.str();
    *size = workspaceBytes;
    *executor = nullptr;
    if (int32_t status = Fail("{stage.workspace_symbol}", 161002)) return status;
    *executor = new aclOpExecutor{{{{{made}}}, "{stage.op}"}};
    return 0;
}}"""
    if stage.symbol not in missing:
        source += f"""
extern "C" int32_t {stage.symbol}(void* w, uint64_t size, aclOpExecutor* e, void*) {{
    return Run(w, size, e);
}}"""
    return source


def build(folder, name, missing=()):
    """Compiles a fake library; ``missing`` symbols are left out. Returns its path."""
    source = folder / f"{name}.cpp"
    source.write_text(RUNTIME + "".join(_stage_source(stage, missing) for stage in STAGES))
    path = folder / f"lib{name}.so"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-O0", str(source), "-o", str(path)]
    subprocess.run(command, check=True)
    return path


class Fake:
    """The controls of a loaded fake library."""

    def __init__(self, path):
        self.path = path
        self._library = ctypes.CDLL(str(path))
        self._library.fakeTrace.restype = ctypes.c_char_p
        self._library.fakeLiveObjects.restype = ctypes.c_int64

    @property
    def trace(self):
        return self._library.fakeTrace().decode()

    @property
    def live_objects(self):
        return self._library.fakeLiveObjects()

    def fail(self, symbol):
        self._library.fakeFail(symbol.encode())

    def workspace(self, size):
        self._library.fakeWorkspace(ctypes.c_uint64(size))
