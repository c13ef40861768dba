// SPDX-License-Identifier: Apache-2.0 The functions that an agent offers to its services.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "fabric/arena.hpp"
#include "fabric/tls.hpp"
#include "session/plane.hpp"

namespace wherry::session {

/// A port that a library serves without a limit on its connections: any user of the machine may hold connections to it,
/// and so all of the agent's descriptors. The agent keeps the number of unauthenticated connections below `limit`.
struct GuardedPort {
  std::uint16_t port = 0;  ///< where the library listens already
  std::size_t limit = 64;
  /// Those of the connected ones ("address:port") that have shown the token. Null: none can. Called on the guard's
  /// thread, until the service is stopped.
  std::function<std::set<std::string>(const std::set<std::string>&)> proven;
};

/// Outlives the services. Functions: from Service::start() to Service::stop(), on the data thread.
struct ServiceHost {
  std::shared_ptr<Arena> arena;     ///< all memory for what services keep of their clients' data: agent.budget bytes
  std::string token;                ///< whoever asks must show it; no service answers anybody else
  std::string session_file;         ///< its path; sockets of services lie beside it
  std::string group;                ///< whose members are clients, too (agent.group); empty: the agent's user alone
  std::optional<HostPort> address;  ///< of the TCP listener for clients; none: they are on this machine
  fabric::TlsFiles tls;             ///< for connections between machines
  std::vector<int> cores;           ///< that threads of services may use; base/background.hpp starts them
  /// The agent's side of a transport. kUnsupported: it is not available here, with the reason.
  std::function<Result<Plane*>(Transport)> plane;
  std::function<void(GuardedPort)> guard;
};

}  // namespace wherry::session
