// SPDX-License-Identifier: Apache-2.0
// The file by which clients and readers find an agent and prove that they may talk to it. It is JSON, and only its
// owner can read it.
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

/// An agent's claim to its session file. The agent keeps the file open and locked (flock) as long as it lives, however
/// it ends. A session file without a lock belongs to an agent that has gone. The directory is held open as well, so it
/// cannot be replaced in between.
class SessionFileClaim {
 public:
  SessionFileClaim() noexcept = default;
  /// Makes the directory (mode 0700; with a group 0750). kPermissionDenied: another user could put files there;
  /// kAlreadyExists: the file of a live agent; kInvalidArgument: something else has that name.
  static Result<SessionFileClaim> make(const std::string& path, const std::string& group = {});
  /// The file appears complete or not at all, mode 0600, or 0640 with a group. kAlreadyExists: another agent was
  /// quicker.
  Status publish(const SessionFile& file);
  /// Removes the file, if it is still this one.
  void withdraw() noexcept;

 private:
  Status put_in_place(const std::string& temporary);
  std::string path_, name_;
  Fd directory_, file_;
};

/// The directory of a session file, as SessionFileClaim makes it. Other files of the agent there (its log) are safe
/// after this.
Result<Fd> session_directory(const std::string& path, const std::string& group = {});
/// Gives a file, directory or socket to a group, with `mode`. kInvalidArgument: no such group, or not one of ours.
Status share_with_group(const std::string& path, const std::string& group, unsigned mode);
/// The text of such a file, and the reverse, without a search. `path` names it in errors: kProtocol if it is not a
/// session file, kVersionMismatch if it has another version.
std::string session_text(const SessionFile& file);
Result<SessionFile> parse_session(std::string_view text, const std::string& path);
/// kNotFound: no such file; kUnavailable: its agent, on this machine, is dead (for an agent on another machine only a
/// connection can tell); kPermissionDenied: the file or its directory belongs to another user, others may read it or
/// write to the directory, or a link of another user leads there; kVersionMismatch; kProtocol: not a session file.
/// Paths of sockets are absolute. The rules are those of python/wherry/session/sessionfile.py.
Result<SessionFile> read_session_file(const std::string& path);
/// Removes the private directory that an embedded agent's owner made for it, if the owner died before it could remove
/// it. Removes nothing else.
void remove_embedded_directory(const std::string& session_file) noexcept;
/// Unix sockets beside a session file: for local readers, and for clients.
std::string local_socket_for(const std::string& session_file);
std::string control_socket_for(const std::string& session_file);
/// $WHERRY_SESSION, else $XDG_RUNTIME_DIR/wherry/agent.json, else /tmp/wherry-<uid>/agent.json.
std::string default_session_file();

}  // namespace wherry
