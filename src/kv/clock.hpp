// SPDX-License-Identifier: Apache-2.0
// The clock of leases. Keeper, nodes and clients count leases on a clock that continues while the machine sleeps,
// because the other machines let them expire in that time. The kernel's clock for all of them is CLOCK_BOOTTIME.
#pragma once

#include "base/clock.hpp"
#include "kv/message.hpp"

namespace wherry::kv {

inline Cycles lease_clock() noexcept { return boot_ns() / kCycleNs; }

}  // namespace wherry::kv
