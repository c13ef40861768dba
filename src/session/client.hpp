// SPDX-License-Identifier: Apache-2.0
// The interface of a connected client for an agent's services.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/process_reader.hpp"
#include "session/control.hpp"

namespace wherry::session {

/// All calls come from the agent's data thread. Lives until every service has returned from on_session_end.
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
  /// Reads the client's ordinary memory, many pieces in each call, if client and agent are on one machine and the
  /// self-test succeeded. Null: use endpoint().
  [[nodiscard]] virtual fabric::ProcessReader* reader() noexcept = 0;
  /// Writes a ticket's outcome into the client's completion record. Never blocks. The outcome is kept and resent until
  /// it has arrived or the session ends.
  virtual void complete(std::uint64_t ticket, StatusCode code, const CompletionRecord& fields) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t max_tickets() const noexcept = 0;
  /// Call it after a get or put on the endpoint failed and UCX closed the endpoint. Reconnects; all RemoteRegions of
  /// the old endpoint are invalid. False: the session will end.
  virtual bool reconnect() = 0;
  /// Ends the session soon, after a failure that cannot be repaired. Needs no memory.
  virtual void fail(Status why) noexcept = 0;
  /// reconnect() increments it. A service that sees a new value knows that its RemoteRegions are invalid.
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;

  /// Counts bytes that services moved for this client, for status and metrics.
  void count_moved(std::uint64_t bytes) noexcept { moved_ += bytes; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  std::uint64_t moved_ = 0;
};

}  // namespace wherry::session
