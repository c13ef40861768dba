// SPDX-License-Identifier: Apache-2.0
// Stream sockets with a file as address. Only processes on this machine can connect. The file's mode determines which
// users may, and the kernel reports the peer's process and user.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/clock.hpp"
#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// The process and user that connected to a Unix socket, as the kernel recorded them at the connection.
struct PeerCredentials {
  pid_t pid = 0;  ///< in this process's PID namespace; 0: the peer is not visible there
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<PeerCredentials> peer_credentials(int socket);

/// The longest file name in a path of more than 107 bytes (the size of sockaddr_un::sun_path). Such sockets are reached
/// through their directory.
inline constexpr std::size_t kMaxSocketName = 80;

/// Listens, non-blocking, at a new file of mode 0600. Replaces a socket file without a listener. kAlreadyExists: a
/// process listens there, or the file is not a socket; kInvalidArgument: the name is too long; kUnavailable.
Result<Fd> listen_unix(const std::string& path);
/// Returns a non-blocking socket. Waits only while the listener's queue is full, at most until the deadline.
/// kUnavailable: no process listens there; kPermissionDenied: the file's mode does not admit this user.
Result<Fd> connect_unix(const std::string& path, const Deadline& deadline);

}  // namespace wherry
