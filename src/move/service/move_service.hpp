// SPDX-License-Identifier: Apache-2.0
// The service "move": an engine makes frames of offloads; Arrow Flight, local readers and file sinks deliver them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "move/service/catalogue.hpp"
#include "move/service/file_sink.hpp"
#include "move/service/flight_server.hpp"
#include "move/service/local_reader.hpp"
#include "move/service/offload_engine.hpp"
#include "move/service/operators.hpp"
#include "session/service.hpp"

namespace wherry::move {

class MoveService final : public session::Service {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return kServiceName; }
  [[nodiscard]] unsigned message_id() const noexcept override { return kOffloadMessage; }

  Settings settings() override;
  [[nodiscard]] Status check_settings() const override;
  Status start(session::ServiceHost& host) override;
  void announce(SessionFile& file) const override;

  void on_session_start(session::Client& client) override { engine_->on_session_start(client); }
  void on_session_end(session::Client& client) override { engine_->on_session_end(client); }
  Result<Bytes> on_request(session::Client& client, std::string_view method, ByteView payload) override {
    return engine_->on_request(client, method, payload);
  }
  void on_message(session::Client& client, ByteView message) override { engine_->on_message(client, message); }

  bool poll() override { return engine_->poll(); }
  [[nodiscard]] bool moving() const override { return engine_->moving(); }

  void metrics(session::MetricsWriter& out) const override;
  void shared_metrics(session::MetricsWriter& out) const override;
  [[nodiscard]] Status health() const override;

  void start_draining() override { engine_->start_draining(); }
  bool drained() override { return engine_->drained(); }
  Status flush(std::chrono::milliseconds patience) override;
  Status stop(std::chrono::milliseconds patience) override;

 private:
  MoveOptions options_;
  std::string flight_listen_ = "127.0.0.1:0";
  std::uint64_t reader_budget_ = 0;  ///< 0: half of the agent's budget

  Catalogue catalogue_;
  std::unique_ptr<OffloadEngine> engine_;
  std::unique_ptr<FileSink> sink_;
  std::unique_ptr<Operators> operators_;
  std::unique_ptr<FlightService> flight_;  ///< null: off
  std::string flight_uri_;
  std::unique_ptr<LocalReaderService> local_;
  std::string local_socket_;
};

}  // namespace wherry::move
