// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

#include <cstdint>

namespace fe {
class PlatFormInfos;
}  // namespace fe

namespace platform_ascendc {

enum class CoreMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B,
    ASCEND310P,
    ASCEND310B,
    RESERVED_VERSION = 99999
};

// The figures of the simulated machine (an Ascend910B2; the core count can be set).
class PlatformAscendC {
public:
    PlatformAscendC() = delete;
    explicit PlatformAscendC(fe::PlatFormInfos* platformInfo) : platformInfo_(platformInfo) {}
    // On a split AIC/AIV chip this is the number of AI cores, each one AIC with two AIVs.
    uint32_t GetCoreNum() const;
    uint32_t GetCoreNumAic() const;
    uint32_t GetCoreNumAiv() const;
    uint32_t GetLibApiWorkSpaceSize() const;
    void GetCoreMemSize(const CoreMemType& memType, uint64_t& size) const;
    void GetCoreMemBw(const CoreMemType& memType, uint64_t& bytesPerCycle) const;
    SocVersion GetSocVersion() const;

private:
    fe::PlatFormInfos* platformInfo_;
};

}  // namespace platform_ascendc
