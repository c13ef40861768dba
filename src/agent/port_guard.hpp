// SPDX-License-Identifier: Apache-2.0
// Limits the connections to ports that libraries serve without a limit of their own. Otherwise any user of the machine
// could take all of the agent's descriptors with connections to them.
//
// - A thread looks at the process's sockets every 100 ms. If a port has too many unproven connections, the oldest
//   beyond its limit are shut down, and the library closes them.
// - Needs no free descriptor. If a socket is closed meanwhile and its number is reused, the new socket stays open.
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
  /// Limits only connections to addresses on which this process now listens at the port: an application may use the
  /// same port at another address. `others`: listeners that are excluded because they have their own limits.
  /// kUnavailable: /proc, a thread, a descriptor, or a listener at one of the ports is missing.
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
