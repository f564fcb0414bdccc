// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_CUBE_H
#define ASCENDC_CUBE_H

#include "ascendc/cube_params.h"
#include "ascendc/tensor.h"
#include "sim/cube_ops.h"

namespace AscendC {

template <typename T>
void LoadData(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
              const LoadData2DParams& loadDataParams, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, float>,
                  "LoadData: this simulator knows half, bfloat16_t and float");
    sim::LoadFractals(dstLocal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, loadDataParams,
                      where);
}

template <typename T>
void LoadData(const LocalTensor<T>& dstLocal, const GlobalTensor<T>& srcLocal,
              const LoadData2DParams& loadDataParams, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, float>,
                  "LoadData: this simulator knows half, bfloat16_t and float");
    sim::LoadFractalsGm(dstLocal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, loadDataParams,
                        where);
}

template <typename T>
void LoadDataWithTranspose(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                           const LoadData2dTransposeParams& loadDataParams, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, float>,
                  "LoadDataWithTranspose: this simulator knows half, bfloat16_t and float");
    sim::LoadTransposed(dstLocal.Ref(), srcLocal.Ref(), sim::TypeTag<T>::value, loadDataParams,
                        where);
}

template <typename T, typename U = PrimT<T>,
          typename std::enable_if<IsSameType<PrimT<T>, U>::value, bool>::type = true>
void InitConstValue(const LocalTensor<T>& dstLocal,
                    const InitConstValueParams<U>& initConstValueParams, SIM_WHERE) {
    static_assert(sim::kOneOf<T, half, bfloat16_t, float>,
                  "InitConstValue: this simulator knows half, bfloat16_t and float");
    uint32_t bits = 0;
    std::memcpy(&bits, &initConstValueParams.initValue, sizeof(T));
    sim::InitFractals(dstLocal.Ref(), sim::TypeTag<T>::value, initConstValueParams.repeatTimes,
                      initConstValueParams.blockNum, initConstValueParams.dstGap, bits, where);
}

template <typename DstT, typename Src0T, typename Src1T>
void Mmad(const LocalTensor<DstT>& dstLocal, const LocalTensor<Src0T>& fmLocal,
          const LocalTensor<Src1T>& filterLocal, const MmadParams& mmadParams, SIM_WHERE) {
    static_assert(sim::kOneOf<DstT, float> && sim::kOneOf<Src0T, half, bfloat16_t, float> &&
                      IsSameType<Src0T, Src1T>::value,
                  "Mmad: half, bfloat16_t or float operands of one type, float result");
    sim::MatrixMultiply(dstLocal.Ref(), fmLocal.Ref(), filterLocal.Ref(),
                        sim::TypeTag<Src0T>::value, nullptr, mmadParams, where);
}

template <typename DstT, typename Src0T, typename Src1T, typename BiasT>
void Mmad(const LocalTensor<DstT>& dstLocal, const LocalTensor<Src0T>& fmLocal,
          const LocalTensor<Src1T>& filterLocal, const LocalTensor<BiasT>& biasLocal,
          const MmadParams& mmadParams, SIM_WHERE) {
    static_assert(sim::kOneOf<DstT, float> && sim::kOneOf<Src0T, half, bfloat16_t, float> &&
                      IsSameType<Src0T, Src1T>::value && sim::kOneOf<BiasT, float>,
                  "Mmad: half, bfloat16_t or float operands of one type, float result and bias");
    sim::MatrixMultiply(dstLocal.Ref(), fmLocal.Ref(), filterLocal.Ref(),
                        sim::TypeTag<Src0T>::value, &biasLocal.Ref(), mmadParams, where);
}

template <typename DstT, typename SrcT, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<DstT>& dstGlobal, const LocalTensor<SrcT>& srcLocal,
             const FixpipeParamsV220& intriParams, SIM_WHERE) {
    static_assert(sim::kOneOf<SrcT, float> && sim::kOneOf<DstT, float, half, bfloat16_t>,
                  "Fixpipe: this simulator knows float to float, half and bfloat16_t");
    static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe: no COLUMN_MAJOR on A2");
    sim::FixpipeToGm(dstGlobal.Ref(), srcLocal.Ref(), sim::TypeTag<DstT>::value,
                     config.format == CO2Layout::ROW_MAJOR, intriParams, where);
}

template <typename DstT, typename SrcT, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<DstT>& dstLocal, const LocalTensor<SrcT>& srcLocal,
             const FixpipeParamsV220& intriParams, SIM_WHERE) {
    static_assert(sim::kOneOf<SrcT, float> && sim::kOneOf<DstT, half, bfloat16_t>,
                  "Fixpipe to L1: float to half or bfloat16_t only");
    static_assert(config.format == CO2Layout::NZ, "Fixpipe to L1: NZ only (CFG_NZ)");
    sim::FixpipeToL1(dstLocal.Ref(), srcLocal.Ref(), sim::TypeTag<DstT>::value, intriParams, where);
}

class AscendCUtils {
public:
    // 1: infinities and NaN leave as they are; 0: they saturate.
    static void SetOverflow(uint64_t ctrlValue) { sim::This().saturate = ctrlValue == 0; }
};

// A core keeps these modes from the kernel before, so a kernel that needs one off says so. None is
// modelled.
inline void SetHF32Mode(bool on) {
    sim::RefuseMode(on, "SetHF32Mode");
}
inline void SetHF32TransMode(bool on) {
    sim::RefuseMode(on, "SetHF32TransMode");
}
inline void SetMMLayoutTransform(bool on) {
    sim::RefuseMode(on, "SetMMLayoutTransform");
}

}  // namespace AscendC

#endif  // ASCENDC_CUBE_H
