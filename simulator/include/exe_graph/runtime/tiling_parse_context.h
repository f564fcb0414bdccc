// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

// Accepted so that op_host files may register a parse function; there is no compile info to parse.
class TilingParseContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;
};

}  // namespace gert
