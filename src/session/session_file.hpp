// SPDX-License-Identifier: Apache-2.0
// The session file: clients and readers find an agent by it, and get the token that they must show. It is JSON, and
// only its owner can read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry {

struct SessionFile {
  int pid = 0;
  std::string control;     ///< Unix socket for clients of the agent's machine; a file's name: beside the session file
  std::string host;        ///< and of others; empty: there is no TCP listener
  std::uint16_t port = 0;  ///< 0 where `host` is empty
  std::string token;
  std::string local_socket;  ///< the same for readers
  std::string flight;        ///< "grpc://host:port", or empty
  std::string metrics;       ///< "http://host:port/metrics", or empty
  std::string group;         ///< whose members may read the file; empty: its owner alone

  friend bool operator==(const SessionFile&, const SessionFile&) = default;
};

/// An agent's claim to its session file. The agent keeps the file open and locked (flock) while it lives, however it
/// ends. So a session file without a lock belongs to an agent that has ended. The directory is kept open as well, so
/// that it cannot be replaced in between.
class SessionFileClaim {
 public:
  SessionFileClaim() noexcept = default;
  /// Creates the directory (mode 0700; with a group 0750). kPermissionDenied: another user could put files there;
  /// kAlreadyExists: a live agent has this session file; kInvalidArgument: the name belongs to something else.
  static Result<SessionFileClaim> make(const std::string& path, const std::string& group = {});
  /// Writes the file with mode 0600, or 0640 with a group; it appears complete or not at all. kAlreadyExists: another
  /// agent was first.
  Status publish(const SessionFile& file);
  /// Removes the file if it is still the one that publish() wrote.
  void withdraw() noexcept;

 private:
  Status put_in_place(const std::string& temporary);
  std::string path_, name_;
  Fd directory_, file_;
};

/// Creates and opens the directory of a session file, as SessionFileClaim does. Afterwards other files of the agent in
/// it (its log) are safe.
Result<Fd> session_directory(const std::string& path, const std::string& group = {});
/// Gives a file, directory or socket to a group, with `mode`. kInvalidArgument: no such group, or no member of it.
Status share_with_group(const std::string& path, const std::string& group, unsigned mode);
/// Converts a SessionFile to text and back, without reading a file. `path` is for errors: kProtocol if the text is not
/// a session file, kVersionMismatch if it has another version.
std::string session_text(const SessionFile& file);
Result<SessionFile> parse_session(std::string_view text, const std::string& path);
/// kNotFound: no such file; kUnavailable: its agent on this machine is dead (for an agent on another machine only a
/// connection shows that); kPermissionDenied: the file or its directory belongs to another user, others may read the
/// file or write to the directory, or a link of another user leads to it; kVersionMismatch; kProtocol: not a session
/// file. Socket paths are absolute. python/wherry/session/sessionfile.py has the same rules.
Result<SessionFile> read_session_file(const std::string& path);
/// Removes the private directory that the owner of an embedded agent created, if the owner died before removing it.
/// Does not remove anything else.
void remove_embedded_directory(const std::string& session_file) noexcept;
/// Paths of the Unix sockets beside a session file: one for local readers, one for clients.
std::string local_socket_for(const std::string& session_file);
std::string control_socket_for(const std::string& session_file);
/// $WHERRY_SESSION, else $XDG_RUNTIME_DIR/wherry/agent.json, else /tmp/wherry-<uid>/agent.json.
std::string default_session_file();

}  // namespace wherry
