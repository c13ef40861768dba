// SPDX-License-Identifier: Apache-2.0
// One connected client, as the services of an agent see it.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/process_reader.hpp"
#include "session/control.hpp"

namespace wherry::session {

/// All calls come from the agent's data thread. Lives until every service returned from on_session_end.
class Client {
 public:
  virtual ~Client() = default;
  [[nodiscard]] virtual std::uint64_t id() const noexcept = 0;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t pid() const noexcept = 0;
  [[nodiscard]] virtual fabric::Endpoint& endpoint() noexcept = 0;
  [[nodiscard]] virtual fabric::Worker& worker() noexcept = 0;
  /// The agent's arena as registered with this client's transport. It is the destination of gets.
  [[nodiscard]] virtual const fabric::Region& arena_region() const noexcept = 0;
  /// Gets from the client's ordinary memory, many pieces in each call, if client and agent share a machine and the
  /// self-test succeeded. Null: use endpoint().
  [[nodiscard]] virtual fabric::ProcessReader* reader() noexcept = 0;
  /// Writes a ticket's outcome into the client's completion record. Never blocks. The outcome is kept and sent again
  /// until it has arrived, or the session ends.
  virtual void complete(std::uint64_t ticket, StatusCode code, const CompletionRecord& fields) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t max_tickets() const noexcept = 0;
  /// A get or put on the endpoint failed: UCX has closed it. Connects anew; every RemoteRegion made from it is void.
  /// False: the session will end.
  virtual bool reconnect() = 0;
  /// Ends the session soon, after a failure that cannot be repaired. Needs no memory.
  virtual void fail(Status why) noexcept = 0;
  /// Raised by reconnect(): services compare it to know that their RemoteRegions are void.
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;

  /// The bytes that services moved for this client, for status and metrics.
  void count_moved(std::uint64_t bytes) noexcept { moved_ += bytes; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  std::uint64_t moved_ = 0;
};

}  // namespace wherry::session
