// SPDX-License-Identifier: Apache-2.0 A capability as an agent hosts it. The agent has a list of services
// (src/agent/services.cpp), and knows no more of them than this. All calls come from the agent's data thread, unless a
// function says otherwise. The defaults below do nothing; a service overrides the functions that it needs.
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
  /// The active message id of messages for on_message(), unique to the service (>= 1). 0: it takes no messages.
  [[nodiscard]] virtual unsigned message_id() const noexcept { return 0; }

  // ---- beginning
  /// Its settings, with their defaults; set before start(). They refer to this object. Keys: "<name()>.<setting>".
  virtual Settings settings() { return {}; }
  /// Checks that the settings do not contradict each other. kInvalidArgument.
  [[nodiscard]] virtual Status check_settings() const { return ok_status(); }
  /// Called once, before the first client: prepares memory, sockets, threads.
  virtual Status start(ServiceHost& /*host*/) { return ok_status(); }
  /// After start(): adds the service's own addresses to the session file.
  virtual void announce(SessionFile& /*file*/) const {}

  // ---- clients
  virtual void on_session_start(Client& /*client*/) {}
  /// The client is gone: forget it and free its resources. The agent does not wait for operations on its endpoint, so
  /// call `flush` for those that must end. The service must forget it even without memory, because `client` is
  /// destroyed after the call, whatever that throws.
  virtual void on_session_end(Client& /*client*/) {}
  /// A request on the control connection; may take milliseconds.
  virtual Result<Bytes> on_request(Client& client, std::string_view method, ByteView payload);
  /// A message on the fabric from a client that knows its session id; `message` lives during the call. May come inside
  /// any call into the fabric: only queue it.
  virtual void on_message(Client& /*client*/, ByteView /*message*/) {}

  // ---- work
  /// Makes progress; true if there was work. An exception in one client's work should end that client only:
  /// Client::fail().
  virtual bool poll() { return false; }
  /// Gets or puts are in flight, and only poll() and progress notice their end. So the agent must not nap.
  [[nodiscard]] virtual bool moving() const { return false; }

  // ---- the service's reports about itself
  virtual void metrics(MetricsWriter& /*out*/) const {}
  /// The same for numbers that any thread may read. Called on the metrics page's thread, to keep work off the data
  /// thread.
  virtual void shared_metrics(MetricsWriter& /*out*/) const {}
  /// Ok while the service can do its work. Otherwise the reason and the remedy.
  [[nodiscard]] virtual Status health() const { return ok_status(); }

  // ---- the end
  /// The agent is about to end. From here on new work is refused (kUnavailable), and accepted work continues.
  virtual void start_draining() {}
  /// True once all accepted work of this thread is done.
  virtual bool drained() { return true; }
  /// Waits, `patience` at most, for work that other threads still do. kDeadlineExceeded names the rest.
  virtual Status flush(std::chrono::milliseconds /*patience*/) { return ok_status(); }
  /// After the last client is gone: ends threads and sockets. kDeadlineExceeded: a thread is busy with something that
  /// does not end within `patience` and was left running. The process should then end by _exit(). Idempotent.
  virtual Status stop(std::chrono::milliseconds /*patience*/) { return ok_status(); }
};

}  // namespace wherry::session
