// SPDX-License-Identifier: Apache-2.0
// A capability as an agent hosts it (list: src/agent/services.cpp), used only through this interface. All calls come
// from the agent's data thread unless a comment says otherwise. By default the functions do nothing.
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
  /// The active-message id for on_message(), unique to the service (>= 1). 0: the service has no messages.
  [[nodiscard]] virtual unsigned message_id() const noexcept { return 0; }

  // ---- beginning The service's settings with their defaults. They refer to this object and are set before start().
  /// Keys: "<name()>.<setting>".
  virtual Settings settings() { return {}; }
  /// Checks that the settings do not contradict each other. kInvalidArgument.
  [[nodiscard]] virtual Status check_settings() const { return ok_status(); }
  /// Called once, before the first client: prepares memory, sockets, threads.
  virtual Status start(ServiceHost& /*host*/) { return ok_status(); }
  /// After start(): adds the service's own addresses to the session file.
  virtual void announce(SessionFile& /*file*/) const {}

  // ---- clients
  virtual void on_session_start(Client& /*client*/) {}
  /// The client is gone: remove it and free its resources. The agent does not wait for operations on its endpoint, so
  /// call `flush` for those that must complete. Remove it even if there is no memory: `client` is destroyed after this
  /// call, even if the call throws.
  virtual void on_session_end(Client& /*client*/) {}
  /// Handles a request on the control connection; may take milliseconds.
  virtual Result<Bytes> on_request(Client& client, std::string_view method, ByteView payload);
  /// A fabric message from a client that knows its session id. `message` is valid only during the call. The call may
  /// come inside any call into the fabric, so only queue the message.
  virtual void on_message(Client& /*client*/, ByteView /*message*/) {}

  // ---- work
  /// Makes progress; true if there was work. If the work of one client throws, end only that client with
  /// Client::fail().
  virtual bool poll() { return false; }
  /// Whether gets or puts are in flight. Only poll() and progress notice their end, so the agent must not nap then.
  [[nodiscard]] virtual bool moving() const { return false; }

  // ---- the service's reports about itself
  virtual void metrics(MetricsWriter& /*out*/) const {}
  /// Like metrics(), for numbers that any thread may read. Called on the metrics page's thread, which saves time of the
  /// data thread.
  virtual void shared_metrics(MetricsWriter& /*out*/) const {}
  /// Ok while the service can work. Otherwise the reason and the remedy.
  [[nodiscard]] virtual Status health() const { return ok_status(); }

  // ---- the end
  /// The agent will end. From now on the service refuses new work (kUnavailable) and continues accepted work.
  virtual void start_draining() {}
  /// True once all accepted work of this thread is done.
  virtual bool drained() { return true; }
  /// Waits at most `patience` for work of other threads. kDeadlineExceeded: the message names the unfinished work.
  virtual Status flush(std::chrono::milliseconds /*patience*/) { return ok_status(); }
  /// Called after the last client is gone: ends threads and sockets. kDeadlineExceeded: a thread did not end within
  /// `patience` and was left running, so the process should end by _exit(). Idempotent.
  virtual Status stop(std::chrono::milliseconds /*patience*/) { return ok_status(); }
};

}  // namespace wherry::session
