// SPDX-License-Identifier: Apache-2.0
// What a capability offers to be hosted by an agent. All calls come from the agent's data thread.
#pragma once

#include <string_view>

#include "base/bytes.hpp"
#include "session/client.hpp"
#include "session/metrics.hpp"

namespace wherry::session {

class Service {
 public:
  virtual ~Service() = default;
  /// Names the service in requests and metrics.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The active message id whose messages on_message gets (>= 1).
  [[nodiscard]] virtual unsigned message_id() const noexcept = 0;

  virtual void on_session_start(Client& client) = 0;
  /// The client is gone: forget it, free what it held. Operations on its endpoint are not waited for: `flush` what must
  /// be. Must forget it also without memory: `client` dies after the call, whatever that throws.
  virtual void on_session_end(Client& client) = 0;
  /// A request on the control connection; may take milliseconds.
  virtual Result<Bytes> on_request(Client& client, std::string_view method, ByteView payload) = 0;
  /// A message on the fabric from a client that knows its session id; `message` lives during the call.
  virtual void on_message(Client& client, ByteView message) = 0;
  /// Makes progress; true if there was work. What one session's work throws should cost that session: Client::fail().
  virtual bool poll() = 0;
  /// Gets or puts are in flight, whose end only poll() and progress notice: no time for a nap.
  [[nodiscard]] virtual bool moving() const { return false; }
  /// The agent is about to end: new work is refused from here on (kUnavailable), accepted work goes on.
  virtual void start_draining() {}
  /// True once all that was accepted is done.
  virtual bool drained() = 0;
  virtual void metrics(MetricsWriter& out) const = 0;
};

}  // namespace wherry::session
