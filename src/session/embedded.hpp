// SPDX-License-Identifier: Apache-2.0
// An embedded agent: wherryd as a child process on another core, which ends with its owner.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/fork.hpp"
#include "base/temporary_directory.hpp"
#include "session/session_file.hpp"
#include "wherry/session.hpp"
#include "wherry/status.hpp"

namespace wherry::session {

class EmbeddedProcess {
 public:
  /// Starts wherryd and waits until it has written its session file. kNotFound: no wherryd program; kUnavailable: it
  /// ended at once (its message is on standard error).
  static Result<EmbeddedProcess> start(const EmbeddedAgent& options, Transport transport, const Deadline& deadline);
  EmbeddedProcess() noexcept = default;
  EmbeddedProcess(EmbeddedProcess&& other) noexcept;
  EmbeddedProcess& operator=(EmbeddedProcess&& other) noexcept;
  EmbeddedProcess(const EmbeddedProcess&) = delete;
  EmbeddedProcess& operator=(const EmbeddedProcess&) = delete;
  /// Closes wherryd's standard input, and waits until it exits (kills it after 10 s). No effect in a child of fork().
  ~EmbeddedProcess();
  /// Call it in a child of fork(), so that the agent ends with this process's parent, whatever the child does.
  void in_child() noexcept { detach_descriptor(leash_.get()); }

  [[nodiscard]] const std::string& session_file() const noexcept { return session_file_; }
  [[nodiscard]] int pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
  Fd leash_;  ///< the write end of its standard input
  TemporaryDirectory directory_;
  ProcessMark mark_;
  std::string session_file_;
};

/// The core for an embedded agent: the highest allowed core other than that of the calling thread. If the process is
/// confined to one core, the highest online core. -1 if there is no other core.
int spare_core();

}  // namespace wherry::session
