// SPDX-License-Identifier: Apache-2.0
// A limit on the connections to ports that libraries serve, which have none of their own: any user of the machine may
// hold connections to them, and so all of the agent's descriptors.
//
// - A thread looks at the process's sockets every 100 ms. Of the connections to a port that have proven nothing, those
//   beyond its limit are shut down, the oldest first; the library closes them.
// - Needs no free descriptor. A socket that is closed meanwhile, and its number given to another, is left alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry {

class PortGuard {
 public:
  struct Port {
    std::uint16_t port = 0;  ///< where the library listens already
    std::size_t limit = 64;
    /// Those of the connected ones ("address:port") that have shown the token; null: none can. Called on the guard's
    /// thread.
    std::function<std::set<std::string>(const std::set<std::string>&)> proven;
  };
  /// Connections to another address than those on which this process listens at the port now, `others` excepted, are
  /// left alone: an application may have the same port there. `others`: listeners that have limits of their own.
  /// kUnavailable when there is no /proc, no thread or descriptor to be had, or no listener at one of the ports.
  static Result<std::unique_ptr<PortGuard>> start(std::vector<Port> ports, const std::vector<int>& others = {});
  ~PortGuard();
  PortGuard(const PortGuard&) = delete;
  PortGuard& operator=(const PortGuard&) = delete;

 private:
  struct Impl;
  explicit PortGuard(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
