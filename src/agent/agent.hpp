// SPDX-License-Identifier: Apache-2.0
// The agent: sessions, services, memory budget. One data thread does everything that a message needs; the metrics page
// has threads of its own, and so may services.
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
  /// Opens every socket, prepares memory, starts the services. The session file is written by run(). `services`: those
  /// to host, with the settings that they have; config.services is set here.
  static Result<std::unique_ptr<Agent>> create(const AgentConfig& config, Services services = make_services());
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Serves on the calling thread until `stop` becomes true, then drains: accepted offloads finish (at most
  /// agent.drain_ms), files are written, clients are told, the session file goes. `embedded`: also stops when standard
  /// input closes (its owner ended).
  Status run(const std::atomic<bool>& stop, bool embedded);
  /// Ends sessions and everything else; the destructor does, too. kDeadlineExceeded: a service left a thread alone that
  /// is still busy (Service::stop): the process had better end by _exit(). Idempotent: ok then.
  Status close();

  /// host:port that clients of other machines connect to; empty: none can.
  [[nodiscard]] std::string address() const;
  /// The Unix socket for those of this machine.
  [[nodiscard]] std::string control_socket() const;
  [[nodiscard]] const std::string& token() const noexcept;
  [[nodiscard]] const std::string& session_file() const noexcept;
  /// What the session file says, or will say: where clients and readers find what the services serve themselves.
  [[nodiscard]] const SessionFile& announced() const noexcept;

 private:
  struct Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
