// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions that an agent offers to its services.
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

/// A port that a library serves without a limit on its connections. Any user of the machine could take all of the
/// agent's descriptors with connections to it, so the agent allows at most `limit` unauthenticated connections.
struct GuardedPort {
  std::uint16_t port = 0;  ///< where the library listens already
  std::size_t limit = 64;
  /// Given all connected peers ("address:port"), returns the ones that have shown the token. Null: no peer can show it.
  /// Called on the guard's thread until the service is stopped.
  std::function<std::set<std::string>(const std::set<std::string>&)> proven;
};

/// Outlives the services. Call its functions on the data thread, from Service::start() to Service::stop().
struct ServiceHost {
  std::shared_ptr<Arena> arena;     ///< all memory for what services keep of their clients' data: agent.budget bytes
  std::string token;                ///< whoever asks must show it; no service answers anybody else
  std::string session_file;         ///< its path; sockets of services lie beside it
  std::string group;                ///< whose members are clients, too (agent.group); empty: the agent's user alone
  std::optional<HostPort> address;  ///< of the TCP listener for clients; none: they are on this machine
  fabric::TlsFiles tls;             ///< for connections between machines
  std::vector<int> cores;           ///< that threads of services may use; base/background.hpp starts them
  /// The agent's side of a transport. kUnsupported: not available here; the message has the reason.
  std::function<Result<Plane*>(Transport)> plane;
  std::function<void(GuardedPort)> guard;
};

}  // namespace wherry::session
