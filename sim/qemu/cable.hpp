// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/qemu/wire.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// A QEMU with a NIC, and the end of the NIC's cable.
class Cable {
 public:
  virtual ~Cable() = default;
  /// Moves as much data as possible. If nothing moves, it waits at most `wait_ms`. kUnavailable: QEMU has ended.
  virtual Status turn(int wait_ms) = 0;
  [[nodiscard]] virtual Wire& wire() noexcept = 0;
};

}  // namespace wherry::sim
