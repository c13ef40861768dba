// SPDX-License-Identifier: Apache-2.0
// A switch inside one machine. A frame that arrives at one of its interfaces leaves through the interface of its
// destination. The frame is switched in the driver and bypasses the kernel's forwarding. docs/guide/kv-xdp.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Frames to other MACs, and broadcasts, go to the kernel. Put the interfaces in a bridge: it forwards these frames,
/// and all frames after the switch has ended.
class XdpSwitch {
 public:
  struct Station {
    std::string interface;
    std::uint64_t mac = 0;  ///< of the machine behind it; all MACs have the first two bytes in common
  };

  /// The program stays attached to all interfaces until the switch is destroyed, or the process ends in any way. If an
  /// interface does not support native mode, the error names it.
  static Result<XdpSwitch> open(std::span<const Station> stations);

 private:
  XdpSwitch(Fd map, Fd program) : map_(std::move(map)), program_(std::move(program)) {}

  Fd map_, program_;
  std::vector<Fd> links_;
};

}  // namespace wherry::kv
