// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>

#include "graph/types.h"

// A message from op_host becomes this thread's aclGetRecentErrMsg text.
#define REPORT_INNER_ERR_MSG(errorCode, format, ...)                           \
    (void)ge::ReportInnerErrMsg(__FILE__, __FUNCTION__, __LINE__, (errorCode), \
                                (format), ##__VA_ARGS__)

namespace ge {

// In CANN both symbols are weak (an older toolkit may not have them): op_host compares them with
// nullptr before the call, so they are declared the same way here.
int32_t ReportInnerErrMsg(const char* fileName, const char* function, uint32_t line,
                          const char* errorCode, const char* format, ...)
    __attribute__((format(printf, 5, 6), weak));
int32_t ReportUserDefinedErrMsg(const char* errorCode, const char* format, ...)
    __attribute__((format(printf, 2, 3), weak));

}  // namespace ge
