// SPDX-License-Identifier: Apache-2.0
// The processes beside the application: the agent and the Flight server.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/temporary_directory.hpp"
#include "options.hpp"

namespace wherry::bench {

/// Forks the processes. The destructor ends them in every case. They end with this process, even if it is killed.
class Children {
 public:
  /// Call it before any thread exists and before any call into UCX or gRPC. Throws std::runtime_error.
  explicit Children(const Options& options);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Blocks until the agent listens. Throws if it died instead.
  std::string wait_for_agent() const { return wait_for(agent_, session_file_); }
  /// The same for the second agent of experiment `profile`, which has the settings of --set.
  std::string wait_for_advised() const { return wait_for(advised_, advised_file_); }
  /// Blocks until the Flight server listens; its port.
  [[nodiscard]] int wait_for_flight() const;

  /// The agent polls its core, so it must stop while another process is measured there.
  void stop_agent() const;
  void resume_agent() const;
  void stop_advised() const;
  void resume_advised() const;

 private:
  void end(pid_t child) const;
  std::string wait_for(pid_t agent, const std::string& session_file) const;

  TemporaryDirectory directory_;
  std::string session_file_, advised_file_;
  pid_t agent_ = -1;
  pid_t advised_ = -1;
  pid_t flight_ = -1;
  int flight_port_pipe_ = -1;
};

}  // namespace wherry::bench
