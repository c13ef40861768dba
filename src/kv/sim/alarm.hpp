// SPDX-License-Identifier: Apache-2.0
// The one time at which a process wants to be woken.
#pragma once

#include <algorithm>

#include "kv/sim/network.hpp"

namespace wherry::kv::sim {

/// The network cannot cancel a wake, so the receiver must recognise a wake that an earlier one replaced. A wake's tag
/// is its time.
class Alarm {
 public:
  void ask(Network& network, Port port, Cycles when) {
    when = std::max(when, network.now());
    if (when >= at_) return;
    at_ = when;
    network.wake_at(when, port, when);
  }
  /// Whether this is the expected wake.
  bool rings(std::uint64_t tag) noexcept {
    if (tag != at_) return false;
    at_ = ~Cycles{0};
    return true;
  }
  /// The process starts again, so earlier requests for wakes are forgotten.
  void forget() noexcept { at_ = ~Cycles{0}; }

 private:
  Cycles at_ = ~Cycles{0};
};

}  // namespace wherry::kv::sim
