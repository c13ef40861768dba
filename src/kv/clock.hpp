// SPDX-License-Identifier: Apache-2.0
// The clock of leases. Keeper, nodes and clients count them on one that goes on while the machine sleeps: the others
// let them run out meanwhile. The kernel's clock for all of them is CLOCK_BOOTTIME.
#pragma once

#include "base/clock.hpp"
#include "kv/message.hpp"

namespace wherry::kv {

inline Cycles lease_clock() noexcept { return boot_ns() / kCycleNs; }

}  // namespace wherry::kv
