// SPDX-License-Identifier: Apache-2.0
// A switch on one machine: a frame that arrives at one of its interfaces leaves through the interface of its
// destination, in the driver, past the kernel's own forwarding. docs/guide/kv-xdp.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Frames to other MACs, and broadcasts, go to the kernel. Put the interfaces in a bridge, which forwards these, and
/// all frames once the switch has ended.
class XdpSwitch {
 public:
  struct Station {
    std::string interface;
    std::uint64_t mac = 0;  ///< of the machine behind it; all MACs have the first two bytes in common
  };

  /// The program stays in front of all interfaces until the switch is destroyed, or the process ends in any way. Native
  /// mode: an error names the interface that has none.
  static Result<XdpSwitch> open(std::span<const Station> stations);

 private:
  XdpSwitch(Fd map, Fd program) : map_(std::move(map)), program_(std::move(program)) {}

  Fd map_, program_;
  std::vector<Fd> links_;
};

}  // namespace wherry::kv
