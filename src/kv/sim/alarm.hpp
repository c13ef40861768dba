// SPDX-License-Identifier: Apache-2.0
// The next time at which a process needs to be woken.
#pragma once

#include <algorithm>

#include "kv/sim/network.hpp"

namespace wherry::kv::sim {

/// The network cannot cancel a wake. So the receiver must recognise an old wake that a later request has replaced: the
/// tag of a wake is its time.
class Alarm {
 public:
  void ask(Network& network, Port port, Cycles when) {
    when = std::max(when, network.now());
    if (when >= at_) return;
    at_ = when;
    network.wake_at(when, port, when);
  }
  /// Returns whether this is the expected wake.
  bool rings(std::uint64_t tag) noexcept {
    if (tag != at_) return false;
    at_ = ~Cycles{0};
    return true;
  }
  /// Call it when the process restarts: earlier requests for wakes no longer count.
  void forget() noexcept { at_ = ~Cycles{0}; }

 private:
  Cycles at_ = ~Cycles{0};
};

}  // namespace wherry::kv::sim
