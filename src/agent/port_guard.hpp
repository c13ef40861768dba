// SPDX-License-Identifier: Apache-2.0
// A limit on the connections to ports that libraries serve, which have none of their own: any user of the machine may
// hold connections to them, and so all of the agent's descriptors.
//
// - A thread looks at the process's sockets every 100 ms. Of the connections to a port that have proven nothing, those
//   beyond its limit are shut down, the oldest first; the library closes them.
// - Needs no free descriptor. A socket that is closed meanwhile, and its number given to another, is left alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "session/service_host.hpp"
#include "wherry/status.hpp"

namespace wherry {

class PortGuard {
 public:
  using Port = session::GuardedPort;
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
