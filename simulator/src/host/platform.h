// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#pragma once

namespace fe {
class PlatFormInfos;
}  // namespace fe

namespace sim {

// The platform handle that tiling contexts carry.
fe::PlatFormInfos* CurrentPlatform();

}  // namespace sim
