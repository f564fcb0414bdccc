// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "status.h"

#include <cstdio>

#include "base/err_msg.h"

namespace sim {
namespace {

thread_local std::string errorText;
thread_local std::string reportedText;

void Report(const char* errorCode, const char* format, va_list arguments) {
    char text[2048];
    std::vsnprintf(text, sizeof(text), format, arguments);
    if (!reportedText.empty()) {
        reportedText += "; ";
    }
    reportedText += std::string(text) + " [" + (errorCode == nullptr ? "" : errorCode) + "]";
}

}  // namespace

void ClearErrorText() {
    errorText.clear();
}

void SetErrorText(const std::string& text) {
    errorText = text;
}

const char* ErrorText() {
    return errorText.c_str();
}

std::string TakeReportedText() {
    std::string text;
    text.swap(reportedText);
    return text;
}

}  // namespace sim

namespace ge {

int32_t ReportInnerErrMsg(const char*, const char*, uint32_t, const char* errorCode,
                          const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sim::Report(errorCode, format, arguments);
    va_end(arguments);
    return 0;
}

int32_t ReportUserDefinedErrMsg(const char* errorCode, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sim::Report(errorCode, format, arguments);
    va_end(arguments);
    return 0;
}

}  // namespace ge

extern "C" const char* aclGetRecentErrMsg() {
    return sim::ErrorText();
}
