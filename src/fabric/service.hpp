// SPDX-License-Identifier: Apache-2.0
// What a capability offers to be hosted by an agent, and what the agent offers it. All calls come from the agent's data
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/control.hpp"
#include "fabric/fabric.hpp"
#include "fabric/process_reader.hpp"

namespace wherry::fabric {

/// One connected client, as services see it. Lives until every service returned from on_session_end.
class Peer {
 public:
  virtual ~Peer() = default;
  [[nodiscard]] virtual std::uint64_t id() const noexcept = 0;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t pid() const noexcept = 0;
  [[nodiscard]] virtual Endpoint& endpoint() noexcept = 0;
  [[nodiscard]] virtual Worker& worker() noexcept = 0;
  /// The agent's arena as registered with this peer's transport: destination of gets.
  [[nodiscard]] virtual const Region& arena_region() const noexcept = 0;
  /// Gets from the client's ordinary memory, many pieces a call, when client and agent share a machine and the
  /// self-test found that it works; null: use endpoint().
  [[nodiscard]] virtual ProcessReader* reader() noexcept = 0;
  /// Writes a ticket's outcome into the client's completion record. Never blocks; kept and sent again until it has
  /// arrived, or the session ends.
  virtual void complete(std::uint64_t ticket, StatusCode code, const CompletionRecord& fields) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t max_tickets() const noexcept = 0;
  /// A get or put on the endpoint failed: UCX has closed it. Connects anew; every RemoteRegion made from it is void.
  /// False: the session will end.
  virtual bool reconnect() = 0;
  /// The session must end, soon: what was done for it failed, and cannot be put right. Needs no memory.
  virtual void fail(Status why) noexcept = 0;
  /// Raised by reconnect(): services compare it to know that their RemoteRegions are void.
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;

  /// What services moved for this client, for status and metrics.
  void count_moved(std::uint64_t bytes) noexcept { moved_ += bytes; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  std::uint64_t moved_ = 0;
};

/// Collects metrics in the Prometheus text format.
class MetricsWriter {
 public:
  void counter(std::string_view name, std::string_view help, std::uint64_t value, std::string_view labels = {});
  void gauge(std::string_view name, std::string_view help, double value, std::string_view labels = {});
  /// name="value", for `labels`; of a value from outside only what is harmless in a page of text.
  [[nodiscard]] static std::string label(std::string_view name, std::string_view value);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void line(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
            std::string_view labels);
  std::string text_;
  std::string last_name_;
};

class Service {
 public:
  virtual ~Service() = default;
  /// Names the service in requests and metrics.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The active message id whose messages on_message gets (>= 1).
  [[nodiscard]] virtual unsigned message_id() const noexcept = 0;

  virtual void on_session_start(Peer& peer) = 0;
  /// The client is gone: forget it, free what it held. Operations on its endpoint are not waited for: `flush` what must
  /// be. Must forget it also without memory: `peer` dies after the call, whatever that throws.
  virtual void on_session_end(Peer& peer) = 0;
  /// A request on the control connection; may take milliseconds.
  virtual Result<Bytes> on_request(Peer& peer, std::string_view method, ByteView payload) = 0;
  /// A message on the fabric from a client that knows its session id; `message` lives during the call.
  virtual void on_message(Peer& peer, ByteView message) = 0;
  /// Makes progress; true if there was work. What one session's work throws should cost that session: Peer::fail().
  virtual bool poll() = 0;
  /// Gets or puts are in flight, whose end only poll() and progress notice: no time for a nap.
  [[nodiscard]] virtual bool moving() const { return false; }
  /// The agent is about to end: new work is refused from here on (kUnavailable), accepted work goes on.
  virtual void start_draining() {}
  /// True once all that was accepted is done.
  virtual bool drained() = 0;
  virtual void metrics(MetricsWriter& out) const = 0;
};

}  // namespace wherry::fabric
