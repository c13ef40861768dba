// SPDX-License-Identifier: Apache-2.0
// A limit on the connections to ports that libraries serve and do not limit themselves. Any user of the machine may
// hold connections to them, and so all of the agent's descriptors.
//
// - A thread looks at the process's sockets every 100 ms. If a port has too many unproven connections, the oldest
//   beyond its limit are shut down, and the library closes them.
// - Needs no free descriptor. If a socket is closed meanwhile and its number is reused, the new one is left alone.
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
  /// Only connections to addresses on which this process listens at the port now, except `others`, are limited, because
  /// an application may have the same port elsewhere. `others`: listeners that have their own limits. kUnavailable:
  /// there is no /proc, no thread or descriptor, or no listener at one of the ports.
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
