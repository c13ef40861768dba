// SPDX-License-Identifier: Apache-2.0
// A capability as an agent hosts it. The agent has a list of services (src/agent/services.cpp), and knows no more of
// them than this. All calls come from the agent's data thread, unless a function says otherwise. What a service does
// not need it leaves as it is here.
#pragma once

#include <chrono>
#include <string_view>

#include "base/bytes.hpp"
#include "base/settings.hpp"
#include "session/client.hpp"
#include "session/metrics.hpp"
#include "session/service_host.hpp"
#include "session/session_file.hpp"

namespace wherry::session {

class Service {
 public:
  virtual ~Service() = default;
  /// Names the service in requests and metrics.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The active message id whose messages on_message() gets, the service's own (>= 1); 0: it takes no messages.
  [[nodiscard]] virtual unsigned message_id() const noexcept { return 0; }

  // ---- beginning
  /// Its settings, with their defaults; set before start(). They refer to this object. Keys: "<name()>.<setting>".
  virtual Settings settings() { return {}; }
  /// Whether the settings go together: what a single one cannot say. kInvalidArgument.
  [[nodiscard]] virtual Status check_settings() const { return ok_status(); }
  /// Once, before the first client: memory, sockets, threads.
  virtual Status start(ServiceHost& /*host*/) { return ok_status(); }
  /// After start(): adds to the session file where clients find what the service serves itself.
  virtual void announce(SessionFile& /*file*/) const {}

  // ---- clients
  virtual void on_session_start(Client& /*client*/) {}
  /// The client is gone: forget it, free what it held. Operations on its endpoint are not waited for: `flush` what must
  /// be. Must forget it also without memory: `client` dies after the call, whatever that throws.
  virtual void on_session_end(Client& /*client*/) {}
  /// A request on the control connection; may take milliseconds.
  virtual Result<Bytes> on_request(Client& client, std::string_view method, ByteView payload);
  /// A message on the fabric from a client that knows its session id; `message` lives during the call. May come inside
  /// any call into the fabric: only queue it.
  virtual void on_message(Client& /*client*/, ByteView /*message*/) {}

  // ---- work
  /// Makes progress; true if there was work. What one client's work throws should cost that client: Client::fail().
  virtual bool poll() { return false; }
  /// Gets or puts are in flight, whose end only poll() and progress notice: no time for a nap.
  [[nodiscard]] virtual bool moving() const { return false; }

  // ---- what it says of itself
  virtual void metrics(MetricsWriter& /*out*/) const {}
  /// The same for numbers that any thread may read: called on the metrics page's thread, to keep work off the data
  /// thread.
  virtual void shared_metrics(MetricsWriter& /*out*/) const {}
  /// Ok while the service can do its work, or why it cannot, and what to do.
  [[nodiscard]] virtual Status health() const { return ok_status(); }

  // ---- the end
  /// The agent is about to end: new work is refused from here on (kUnavailable), accepted work goes on.
  virtual void start_draining() {}
  /// True once all that was accepted is done, as far as this thread does it.
  virtual bool drained() { return true; }
  /// Waits, `patience` at most, for what other threads still do with it. kDeadlineExceeded names what is left.
  virtual Status flush(std::chrono::milliseconds /*patience*/) { return ok_status(); }
  /// After the last client is gone: ends threads and sockets. kDeadlineExceeded: a thread is busy with something that
  /// does not end within `patience` and was left alone; the process had better end by _exit(). Idempotent.
  virtual Status stop(std::chrono::milliseconds /*patience*/) { return ok_status(); }
};

}  // namespace wherry::session
