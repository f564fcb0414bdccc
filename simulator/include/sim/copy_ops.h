// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_COPY_OPS_H
#define SIM_COPY_OPS_H

#include "ascendc/copy_params.h"
#include "sim/core.h"

namespace sim {

// Strides and lengths in bytes; strides from start to start.
struct BlockCopy {
    uint32_t count;
    int64_t bytes;
    int64_t srcStride;
    int64_t dstStride;
};

void CopyGmToLocal(const Local& dst, Global src, const BlockCopy& copy, const Where& where);
void CopyLocalToGm(Global dst, const Local& src, DType type, const BlockCopy& copy,
                   const Where& where);
void CopyLocalToLocal(const Local& dst, const Local& src, const BlockCopy& copy,
                      const Where& where);
void CopyNd2Nz(const Local& dst, Global src, DType type, const AscendC::Nd2NzParams& params,
               const Where& where);

struct PadIn {
    uint32_t count;
    uint32_t bytes;  // of a block
    int64_t srcGap;  // bytes
    int64_t dstGap;  // 32 B blocks
    bool pad;
    uint8_t left;  // elements
    uint8_t right;
    uint64_t value;  // the padding element's bits
};
void CopyPadIn(const Local& dst, Global src, DType type, const PadIn& copy, const Where& where);

struct PadOut {
    uint32_t count;
    uint32_t bytes;
    int64_t srcGap;  // 32 B blocks
    int64_t dstGap;  // bytes
};
void CopyPadOut(Global dst, const Local& src, DType type, const PadOut& copy, const Where& where);

void SetAtomic(AtomicOp op, DType type, const Where& where);

// Writes `count` elements to global memory, or adds them when an atomic mode is on.
void StoreGm(Core& core, uint8_t* dst, const uint8_t* src, DType type, int64_t bytes);

}  // namespace sim

#endif  // SIM_COPY_OPS_H
