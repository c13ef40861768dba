// SPDX-License-Identifier: Apache-2.0
// The clock of leases. Keeper, nodes and clients measure leases with CLOCK_BOOTTIME, which continues while the machine
// sleeps, because the leases also expire on other machines in that time.
#pragma once

#include "base/clock.hpp"
#include "kv/message.hpp"

namespace wherry::kv {

inline Cycles lease_clock() noexcept { return boot_ns() / kCycleNs; }

}  // namespace wherry::kv
