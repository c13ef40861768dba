// SPDX-License-Identifier: Apache-2.0
// The agent: sessions, services, memory budget. One data thread handles all messages. The metrics page has its own
// threads, and services may have threads as well.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "agent/config.hpp"
#include "agent/services.hpp"
#include "session/session_file.hpp"

namespace wherry {

class Agent {
 public:
  /// Opens every socket, prepares memory, starts the services. The session file is written by run(). `services`: the
  /// services to host, with their settings. create() gives the services their settings from config.services.
  static Result<std::unique_ptr<Agent>> create(const AgentConfig& config, Services services = make_services());
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Serves on the calling thread until `stop` becomes true, then drains: accepted offloads finish (at most
  /// agent.drain_ms), files are written, clients are informed, and the session file is removed. `embedded`: also stops
  /// when standard input closes (its owner ended).
  Status run(const std::atomic<bool>& stop, bool embedded);
  /// Ends all sessions and frees all resources; the destructor calls it. kDeadlineExceeded: a service left a busy
  /// thread running (Service::stop), so the process should end by _exit(). Idempotent: a second call returns ok.
  Status close();

  /// host:port for clients on other machines. Empty: they cannot connect.
  [[nodiscard]] std::string address() const;
  /// Path of the Unix socket for clients on this machine.
  [[nodiscard]] std::string control_socket() const;
  [[nodiscard]] const std::string& token() const noexcept;
  [[nodiscard]] const std::string& session_file() const noexcept;
  /// The contents of the session file: the addresses at which clients and readers find the services.
  [[nodiscard]] const SessionFile& announced() const noexcept;

 private:
  struct Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
