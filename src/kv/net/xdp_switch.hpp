// SPDX-License-Identifier: Apache-2.0
// A switch on one machine: what arrives at one of its interfaces leaves through the one behind which its destination
// is, in the driver, past the kernel's own forwarding. docs/kv-xdp.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Frames to other MACs, broadcast among them, go to the kernel: put the interfaces in a bridge, which forwards those,
/// and everything once the switch has gone.
class XdpSwitch {
 public:
  struct Station {
    std::string interface;
    std::uint64_t mac = 0;  ///< of the machine behind it; all MACs have the first two bytes in common
  };

  /// In front of all interfaces until it goes, or the process, however it ends. Native mode: an error names the
  /// interface that has none.
  static Result<XdpSwitch> open(std::span<const Station> stations);

 private:
  XdpSwitch(Fd map, Fd program) : map_(std::move(map)), program_(std::move(program)) {}

  Fd map_, program_;
  std::vector<Fd> links_;
};

}  // namespace wherry::kv
