// SPDX-License-Identifier: Apache-2.0
// The agent: sessions, services, memory budget. One data thread does everything that a message needs; Flight, local
// readers, the file sink and the metrics page have threads of their own and touch only the catalogue and the arena.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "agent/config.hpp"
#include "fabric/arena.hpp"
#include "session/service.hpp"

namespace wherry {

class Agent {
 public:
  /// Opens every socket, prepares memory, starts the helper threads. The session file is written by run().
  static Result<std::unique_ptr<Agent>> create(const AgentConfig& config);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Another service to host (the benchmark's, say). Before run(). kInternal: UCX took no handler of its messages.
  Status add_service(std::unique_ptr<session::Service> service);

  /// Serves on the calling thread until `stop` becomes true, then drains: accepted offloads finish (at most
  /// agent.drain_ms), files are written, clients are told, the session file goes. `embedded`: also stops when standard
  /// input closes (its owner ended).
  Status run(const std::atomic<bool>& stop, bool embedded);
  /// Ends sessions and everything else; the destructor does, too. kDeadlineExceeded: a file is still being written,
  /// and its thread was left alone (FileSink::stop): the process had better end by _exit(). Idempotent: ok then.
  Status close();

  /// host:port that clients of other machines connect to; empty: none can.
  [[nodiscard]] std::string address() const;
  /// The Unix socket for those of this machine.
  [[nodiscard]] std::string control_socket() const;
  [[nodiscard]] const std::string& token() const noexcept;
  [[nodiscard]] const std::string& session_file() const noexcept;
  [[nodiscard]] std::string flight_uri() const;
  [[nodiscard]] std::string local_socket() const;
  /// Destination memory; for services that are added.
  [[nodiscard]] const std::shared_ptr<Arena>& arena() const noexcept;

 private:
  struct Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
