// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <string>

namespace sim {

// JSON description of all operators: names, types, defaults and the C signature.
std::string DescribeOperators();
// A JSON string literal.
std::string Quote(const std::string& text);

}  // namespace sim

extern "C" {
// The same text; lives as long as the library.
const char* ascendSimDescribeOps();
// Shapes and types that the operator's own inference gives, as JSON. `arguments` holds one pointer
// per C parameter before the outputs: the object, or the address of a double, int64_t or bool.
// Behind them may stand one pointer per output parameter: an OPTIONAL output with a null one is
// absent and not in the text; without pointers all are present.
// Returns an aclnn status; *needed is the text's length, at most cap bytes are written.
int ascendSimInfer(const char* opType, const void* const* arguments, size_t count, char* buffer,
                   size_t cap, size_t* needed);
}
