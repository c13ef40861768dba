// SPDX-License-Identifier: Apache-2.0
// TCP sockets: addresses, listeners, connections.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// host:port with a numeric or resolvable host; "[::1]:80" for IPv6.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  [[nodiscard]] std::string to_string() const;
};
Result<HostPort> parse_host_port(const std::string& text);

/// Sets TCP_NODELAY and keep-alive. No effect on a Unix socket.
void tune_socket(int fd) noexcept;
Result<Fd> listen_tcp(const HostPort& at);
Result<std::uint16_t> local_port(const Fd& socket);
Result<Fd> connect_tcp(const HostPort& to, const Deadline& deadline);
/// Connects in two steps that do not wait for the peer. This first step resolves the name and starts to connect; the
/// second checks whether the socket is connected. The socket becomes writable when the result is known.
Result<Fd> start_connect_tcp(const HostPort& to);
Result<bool> try_finish_connect_tcp(const Fd& socket, const HostPort& to);

}  // namespace wherry
