// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_SYSTEM_H
#define ASCENDC_SYSTEM_H

#include "ascendc/tensor.h"
#include "sim/sync_ops.h"

// What the kernel asks of its surroundings: which core it is, its tiling, its workspace.

// Without parentheses, as on the device, where the macro starts with constexpr.
#define ASCEND_IS_AIC (::sim::This().isCube)
#define ASCEND_IS_AIV (!::sim::This().isCube)
#define ASCEND_IS_NOT_AIC (!::sim::This().isCube)
#define ASCEND_IS_NOT_AIV (::sim::This().isCube)

enum KernelMetaType : uint8_t {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2,
    KERNEL_TYPE_AICORE,
    KERNEL_TYPE_VECTORCORE,
    KERNEL_TYPE_MIX_AICORE,
    KERNEL_TYPE_MIX_VECTOR_CORE,
    KERNEL_TYPE_MAX,
};

namespace sim {
constexpr KernelType TypeOfKernel(KernelMetaType type) {
    return type == KERNEL_TYPE_AIV_ONLY || type == KERNEL_TYPE_MIX_AIV_1_0   ? KernelType::AivOnly
           : type == KERNEL_TYPE_AIC_ONLY || type == KERNEL_TYPE_MIX_AIC_1_0 ? KernelType::AicOnly
           : type == KERNEL_TYPE_MIX_AIC_1_1                                 ? KernelType::Mix11
           : type == KERNEL_TYPE_MIX_AIC_1_2                                 ? KernelType::Mix12
                                                                             : KernelType::Unset;
}
}  // namespace sim

#define KERNEL_TASK_TYPE_DEFAULT(value)                                                            \
    do {                                                                                           \
        static_assert(::sim::TypeOfKernel(value) != ::sim::KernelType::Unset,                      \
                      "KERNEL_TASK_TYPE_DEFAULT: not a type of this chip");                        \
        static ::sim::KernelNote kernelNote __attribute__((section("sim_kernel_notes"), used)) = { \
            __func__, ::sim::TypeOfKernel(value)};                                                 \
        (void)kernelNote;                                                                          \
    } while (0)

#define REGISTER_TILING_DEFAULT(tiling_struct)                               \
    static_assert(::std::is_standard_layout<tiling_struct>::value &&         \
                      ::std::is_trivially_copyable<tiling_struct>::value &&  \
                      ::std::is_default_constructible<tiling_struct>::value, \
                  "a tiling struct is plain data");                          \
    static_assert(sizeof(tiling_struct) % 8 == 0, "a tiling struct's size is a multiple of 8")

#define GET_TILING_DATA_WITH_STRUCT(tiling_struct, tiling_data, tiling_arg) \
    tiling_struct tiling_data;                                              \
    ::sim::CopyTiling(&tiling_data, tiling_arg, sizeof(tiling_struct),      \
                      ::sim::Where{__FILE__, __LINE__})

#define TILING_KEY_IS(k) (::sim::TilingKey() == (k))
#define TRACE_START(apid) ::sim::EnterRegion(static_cast<uint32_t>(apid))
#define TRACE_STOP(apid) ::sim::LeaveRegion(static_cast<uint32_t>(apid))

namespace sim {
inline uint64_t TilingKey() {
    return This().tilingKey;
}
}  // namespace sim

namespace AscendC {

inline int64_t GetBlockIdx() {
    return sim::BlockIdx();
}
inline int64_t GetBlockNum() {
    return sim::BlockNum();
}
inline int64_t GetSubBlockIdx() {
    return sim::SubBlockIdx();
}
inline int64_t GetSubBlockNum() {
    return sim::SubBlockNum();
}
inline int64_t GetTaskRation() {
    return sim::TaskRatio();
}
inline int16_t GetDataBlockSizeInBytes() {
    return 32;
}
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace, SIM_WHERE) {
    return sim::UserWorkspace(workspace, where);
}

}  // namespace AscendC

#endif  // ASCENDC_SYSTEM_H
