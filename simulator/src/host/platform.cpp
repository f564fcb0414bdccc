// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "platform.h"

#include "sim/launch.h"
#include "tiling/platform/platform_ascendc.h"

// PlatformAscendC of an Ascend910B2. The handle only has to be non-null: op_host passes it on.
namespace fe {
class PlatFormInfos {};
}  // namespace fe

namespace sim {

fe::PlatFormInfos* CurrentPlatform() {
    static fe::PlatFormInfos platform;
    return &platform;
}

}  // namespace sim

namespace platform_ascendc {

uint32_t PlatformAscendC::GetCoreNum() const {
    return sim::CoreCount();
}

uint32_t PlatformAscendC::GetCoreNumAic() const {
    return sim::CoreCount();
}

uint32_t PlatformAscendC::GetCoreNumAiv() const {
    return 2 * sim::CoreCount();
}

uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const {
    return static_cast<uint32_t>(sim::kReservedWorkspaceBytes);
}

void PlatformAscendC::GetCoreMemSize(const CoreMemType& memType, uint64_t& size) const {
    switch (memType) {
        case CoreMemType::L0_A:
        case CoreMemType::L0_B:
            size = 64 * 1024;
            break;
        case CoreMemType::L0_C:
            size = 128 * 1024;
            break;
        case CoreMemType::L1:
            size = 512 * 1024;
            break;
        case CoreMemType::UB:
            size = 192 * 1024;
            break;
        case CoreMemType::L2:
            size = 192ull * 1024 * 1024;
            break;
        default:
            size = 0;
            break;
    }
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType& memType, uint64_t& bytesPerCycle) const {
    switch (memType) {
        case CoreMemType::L2:
            bytesPerCycle = 110;
            break;
        case CoreMemType::HBM:
            bytesPerCycle = 32;
            break;
        default:
            bytesPerCycle = 0;
            break;
    }
}

SocVersion PlatformAscendC::GetSocVersion() const {
    return SocVersion::ASCEND910B;
}

}  // namespace platform_ascendc
