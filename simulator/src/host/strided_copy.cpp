// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "strided_copy.h"

#include <cstring>

namespace sim {
namespace {

// Calls `copy(viewByteOffset, contiguousByteOffset, bytes)` for each run of adjacent elements.
template <typename Copy>
void ForEachRun(const aclTensor& view, Copy copy) {
    const int64_t bytes = static_cast<int64_t>(view.ElementBytes());
    const int64_t total = view.ElementCount();
    size_t rank = view.viewDims.size();
    int64_t run = 1;
    while (rank > 0 && (view.viewDims[rank - 1] == 1 || view.strides[rank - 1] == run)) {
        run *= view.viewDims[rank - 1];
        --rank;
    }
    std::vector<int64_t> index(rank, 0);
    int64_t element = 0;
    for (int64_t done = 0; done < total; done += run) {
        copy(element * bytes, done * bytes, static_cast<size_t>(run * bytes));
        for (size_t i = rank; i > 0; --i) {
            element += view.strides[i - 1];
            if (++index[i - 1] < view.viewDims[i - 1]) {
                break;
            }
            element -= view.strides[i - 1] * view.viewDims[i - 1];
            index[i - 1] = 0;
        }
    }
}

}  // namespace

void GatherView(const aclTensor& view, uint8_t* contiguous) {
    const uint8_t* source = view.First();
    ForEachRun(view, [&](int64_t from, int64_t to, size_t bytes) {
        std::memcpy(contiguous + to, source + from, bytes);
    });
}

void ScatterView(const uint8_t* contiguous, const aclTensor& view) {
    uint8_t* destination = view.First();
    ForEachRun(view, [&](int64_t to, int64_t from, size_t bytes) {
        std::memcpy(destination + to, contiguous + from, bytes);
    });
}

}  // namespace sim
