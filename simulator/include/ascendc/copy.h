// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_COPY_H
#define ASCENDC_COPY_H

#include "ascendc/copy_params.h"
#include "ascendc/tensor.h"
#include "sim/copy_ops.h"

namespace AscendC {

// DataCopy: whole 32 B blocks.

template <typename T>
void DataCopy(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcGlobal,
              const DataCopyParams& repeatParams, SIM_WHERE) {
    const sim::BlockCopy copy{repeatParams.blockCount, repeatParams.blockLen * 32ll,
                              (repeatParams.blockLen + repeatParams.srcStride) * 32ll,
                              (repeatParams.blockLen + repeatParams.dstStride) * 32ll};
    sim::CopyGmToLocal(dstLocal.Ref(), srcGlobal.Ref(), copy, where);
}

template <typename T>
void DataCopy(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcGlobal,
              const uint32_t calCount, SIM_WHERE) {
    const int64_t bytes = static_cast<int64_t>(calCount) * sizeof(T);
    sim::CopyGmToLocal(dstLocal.Ref(), srcGlobal.Ref(), sim::BlockCopy{1, bytes, bytes, bytes},
                       where);
}

template <typename T>
void DataCopy(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcGlobal,
              const Nd2NzParams& intriParams, SIM_WHERE) {
    static_assert(sizeof(T) <= 4, "DataCopy Nd2Nz: 8, 16 and 32 bit elements only");
    sim::CopyNd2Nz(dstLocal.Ref(), srcGlobal.Ref(), sim::TypeTag<T>::value, intriParams, where);
}

template <typename T>
void DataCopy(const GlobalTensor<T>& dstGlobal, const LocalTensor<T>& srcLocal,
              const DataCopyParams& repeatParams, SIM_WHERE) {
    const sim::BlockCopy copy{repeatParams.blockCount, repeatParams.blockLen * 32ll,
                              (repeatParams.blockLen + repeatParams.srcStride) * 32ll,
                              (repeatParams.blockLen + repeatParams.dstStride) * 32ll};
    sim::CopyLocalToGm(dstGlobal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, copy, where);
}

template <typename T>
void DataCopy(const GlobalTensor<T>& dstGlobal, const LocalTensor<T>& srcLocal,
              const uint32_t calCount, SIM_WHERE) {
    const int64_t bytes = static_cast<int64_t>(calCount) * sizeof(T);
    sim::CopyLocalToGm(dstGlobal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value,
                       sim::BlockCopy{1, bytes, bytes, bytes}, where);
}

// UB to UB, or L1 to the bias table.
template <typename T>
void DataCopy(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
              const DataCopyParams& repeatParams, SIM_WHERE) {
    const sim::BlockCopy copy{repeatParams.blockCount, repeatParams.blockLen * 32ll,
                              (repeatParams.blockLen + repeatParams.srcStride) * 32ll,
                              (repeatParams.blockLen + repeatParams.dstStride) * 32ll};
    sim::CopyLocalToLocal(dstLocal.Ref(), srcLocal.Ref(), copy, where);
}

template <typename T>
void DataCopy(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
              const uint32_t calCount, SIM_WHERE) {
    const int64_t bytes = static_cast<int64_t>(calCount) * sizeof(T);
    sim::CopyLocalToLocal(dstLocal.Ref(), srcLocal.Ref(), sim::BlockCopy{1, bytes, bytes, bytes},
                          where);
}

// DataCopyPad: blocks of any length on the GM side.

template <typename T>
void DataCopyPad(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcGlobal,
                 const DataCopyExtParams& dataCopyParams, const DataCopyPadExtParams<T>& padParams,
                 SIM_WHERE) {
    uint64_t bits = 0;
    std::memcpy(&bits, &padParams.paddingValue, sizeof(T));
    const sim::PadIn copy{dataCopyParams.blockCount,
                          dataCopyParams.blockLen,
                          static_cast<int64_t>(dataCopyParams.srcStride),
                          static_cast<int64_t>(dataCopyParams.dstStride),
                          padParams.isPad,
                          padParams.leftPadding,
                          padParams.rightPadding,
                          bits};
    sim::CopyPadIn(dstLocal.Ref(), srcGlobal.Ref(), sim::TypeTag<T>::value, copy, where);
}

template <typename T>
void DataCopyPad(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcGlobal,
                 const DataCopyParams& dataCopyParams, const DataCopyPadParams& padParams,
                 SIM_WHERE) {
    const sim::PadIn copy{dataCopyParams.blockCount, dataCopyParams.blockLen,
                          dataCopyParams.srcStride,  dataCopyParams.dstStride,
                          padParams.isPad,           padParams.leftPadding,
                          padParams.rightPadding,    padParams.paddingValue};
    sim::CopyPadIn(dstLocal.Ref(), srcGlobal.Ref(), sim::TypeTag<T>::value, copy, where);
}

template <typename T>
void DataCopyPad(const GlobalTensor<T>& dstGlobal, const LocalTensor<T>& srcLocal,
                 const DataCopyExtParams& dataCopyParams, SIM_WHERE) {
    const sim::PadOut copy{dataCopyParams.blockCount, dataCopyParams.blockLen,
                           static_cast<int64_t>(dataCopyParams.srcStride),
                           static_cast<int64_t>(dataCopyParams.dstStride)};
    sim::CopyPadOut(dstGlobal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, copy, where);
}

template <typename T>
void DataCopyPad(const GlobalTensor<T>& dstGlobal, const LocalTensor<T>& srcLocal,
                 const DataCopyParams& dataCopyParams, SIM_WHERE) {
    const sim::PadOut copy{dataCopyParams.blockCount, dataCopyParams.blockLen,
                           dataCopyParams.srcStride, dataCopyParams.dstStride};
    sim::CopyPadOut(dstGlobal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, copy, where);
}

// Atomic modes of the copies to GM.

template <typename T>
void SetAtomicAdd(SIM_WHERE) {
    static_assert(sim::kOneOf<T, float, half, bfloat16_t, int16_t, int32_t, int8_t>,
                  "SetAtomicAdd: unsupported type");
    sim::SetAtomic(sim::AtomicOp::Add, sim::TypeTag<T>::value, where);
}
template <typename T>
void SetAtomicMax(SIM_WHERE) {
    static_assert(sim::kOneOf<T, float, half, bfloat16_t, int16_t, int32_t, int8_t>,
                  "SetAtomicMax: unsupported type");
    sim::SetAtomic(sim::AtomicOp::Max, sim::TypeTag<T>::value, where);
}
template <typename T>
void SetAtomicMin(SIM_WHERE) {
    static_assert(sim::kOneOf<T, float, half, bfloat16_t, int16_t, int32_t, int8_t>,
                  "SetAtomicMin: unsupported type");
    sim::SetAtomic(sim::AtomicOp::Min, sim::TypeTag<T>::value, where);
}
inline void SetAtomicNone(SIM_WHERE) {
    sim::SetAtomic(sim::AtomicOp::None, sim::DType::None, where);
}

}  // namespace AscendC

#endif  // ASCENDC_COPY_H
