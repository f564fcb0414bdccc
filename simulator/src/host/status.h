// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdarg>
#include <stdexcept>
#include <string>

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"

namespace sim {

// A failure on its way to the C boundary, where it becomes a status and this thread's error text.
class StatusError : public std::runtime_error {
public:
    StatusError(aclnnStatus status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    aclnnStatus Status() const { return status_; }

private:
    aclnnStatus status_;
};

void ClearErrorText();
void SetErrorText(const std::string& text);
const char* ErrorText();

// What op_host reported through base/err_msg.h since the last take.
std::string TakeReportedText();

// Runs `body`; no exception leaves. Returns ACLNN_SUCCESS or the failure's status.
template <typename Body>
aclnnStatus GuardStatus(const char* function, Body body) noexcept {
    try {
        ClearErrorText();
        body();
        return ACLNN_SUCCESS;
    } catch (const StatusError& error) {
        SetErrorText(std::string(function) + ": " + error.what());
        return error.Status();
    } catch (const std::exception& error) {
        SetErrorText(std::string(function) + ": " + error.what());
        return ACLNN_ERR_INNER;
    } catch (...) {
        SetErrorText(std::string(function) + ": unknown exception");
        return ACLNN_ERR_INNER;
    }
}

}  // namespace sim
