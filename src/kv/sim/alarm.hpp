// SPDX-License-Identifier: Apache-2.0
// The one time at which a process wants to be woken.
#pragma once

#include <algorithm>

#include "kv/sim/network.hpp"

namespace wherry::kv::sim {

/// The network cannot take a wake back, so those that were overtaken by an earlier one are to be told apart: a wake's
/// tag is its time.
class Alarm {
 public:
  void ask(Network& network, Port port, Cycles when) {
    when = std::max(when, network.now());
    if (when >= at_) return;
    at_ = when;
    network.wake_at(when, port, when);
  }
  /// Whether this wake is the one that is waited for.
  bool rings(std::uint64_t tag) noexcept {
    if (tag != at_) return false;
    at_ = ~Cycles{0};
    return true;
  }
  /// The process starts again: what was asked for is forgotten.
  void forget() noexcept { at_ = ~Cycles{0}; }

 private:
  Cycles at_ = ~Cycles{0};
};

}  // namespace wherry::kv::sim
