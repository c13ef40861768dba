// SPDX-License-Identifier: Apache-2.0
#include "move/service/move_service.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "base/background.hpp"
#include "base/clock.hpp"
#include "base/try.hpp"

namespace wherry::move {
namespace {

constexpr std::size_t kLagShare = 4;  // of the budget: frames of one stream that wait for its operators

}  // namespace

Settings MoveService::settings() {
  return {
      bytes_setting("agent.reader_budget", "reader_budget", reader_budget_,
                    "part of the budget that frames may take that readers hold; 0: half of it"),
      address_setting("flight.listen", "flight", flight_listen_, "Arrow Flight, host:port or off"),
      text_setting("sink.root", "sink_root", options_.sink_root,
                   "directory below which streams are written to files; empty: wherever the agent's user may write"),
      bytes_setting("move.transfer_unit", "transfer_unit", options_.transfer_unit,
                    "bytes of one get; larger buffers are cut"),
      bytes_setting("move.window", "window", options_.window, "bytes of gets in flight per offload"),
      bytes_setting("move.streaming_copy_from", "streaming_copy_from", options_.streaming_copy_from,
                    "mapped offloads from this size on use the better of two copies, found by trying"),
  };
}

Status MoveService::check_settings() const {
  if (options_.transfer_unit >= 4096 && options_.window >= options_.transfer_unit) return ok_status();
  return {StatusCode::kInvalidArgument,
          fmt::format("move.window ({}) must hold one move.transfer_unit ({}), which must be at least 4096",
                      options_.window, options_.transfer_unit)};
}

Status MoveService::start(session::ServiceHost& host) {
  const std::size_t budget = host.arena->capacity();
  catalogue_.loans().limit(reader_budget_ != 0 ? reader_budget_ : budget / 2, budget);
  options_.sink_needs_root = !host.group.empty();
  engine_ = std::make_unique<OffloadEngine>(options_, host.arena, catalogue_);
  WHERRY_ASSIGN(sink_, in_background([&] { return Result(std::make_unique<FileSink>(catalogue_)); }));
  catalogue_.limit_lag(budget / kLagShare);
  WHERRY_ASSIGN(operators_, in_background([&] { return Result(std::make_unique<Operators>(catalogue_, host.arena)); }));
  if (flight_listen_ != "off") {
    WHERRY_ASSIGN(HostPort where, parse_host_port(flight_listen_));
    WHERRY_ASSIGN(flight_, in_background([&] {
                    return FlightService::start(catalogue_, host.arena, where.host, where.port, host.token, host.cores);
                  }));
    where.port = static_cast<std::uint16_t>(flight_->port());
    flight_uri_ = "grpc://" + where.to_string();
    host.guard({.port = where.port, .proven = [this](const auto& connected) { return flight_->proven(connected); }});
  }
  local_socket_ = local_socket_for(host.session_file);
  WHERRY_ASSIGN(local_, in_background([&] {
                  return LocalReaderService::start(catalogue_, host.arena, local_socket_, host.token);
                }));
  if (!host.group.empty()) WHERRY_TRY(share_with_group(local_socket_, host.group, 0660));
  return ok_status();
}

void MoveService::announce(SessionFile& file) const {
  file.flight = flight_uri_;
  file.local_socket = std::filesystem::path(local_socket_).filename().string();
}

void MoveService::metrics(session::MetricsWriter& out) const {
  out.gauge("wherry_agent_lent_bytes", "Memory of frames that readers hold now.",
            static_cast<double>(catalogue_.loans().bytes()));
  engine_->metrics(out);
}

void MoveService::shared_metrics(session::MetricsWriter& out) const {
  const FileSinkStatus files = sink_->status();
  out.counter("wherry_sink_files_total", "Files written.", files.files);
  out.counter("wherry_sink_errors_total", "Frames that did not become a file.", files.errors);
  const std::vector<StreamStatus> streams = catalogue_.list();
  const auto label = [](const StreamStatus& s) { return fmt::format("stream=\"{}\"", s.info->name); };
  for (const auto& s : streams)
    out.gauge("wherry_stream_held_frames", "Frames held.", static_cast<double>(s.held_frames), label(s));
  for (const auto& s : streams)
    out.counter("wherry_stream_frames_total", "Frames delivered.", s.total_frames, label(s));
  for (const auto& s : streams) {
    out.counter("wherry_stream_evicted_unread_total", "Frames that went before anybody read them.", s.evicted_unread,
                label(s));
  }
  for (const auto& s : streams) {
    if (s.info->derived.empty()) continue;
    out.gauge("wherry_stream_operator_lag_frames", "Frames that wait for the stream's operators.",
              static_cast<double>(s.operator_lag), label(s));
  }
  for (const auto& s : streams) {
    if (s.info->derived.empty()) continue;
    out.counter("wherry_stream_operator_errors_total", "Frames for which an operator failed.", s.operator_errors,
                label(s));
  }
  for (const auto& s : streams) {
    if (s.info->derived.empty()) continue;
    out.counter("wherry_stream_operator_skipped_total", "Frames that went before the operators came to them.",
                s.operator_skipped, label(s));
  }
  for (const auto& s : streams) {
    if (s.info->parts == 0) continue;
    out.gauge("wherry_stream_open_parts", "Parts that are open for writing.", s.parts.open, label(s));
  }
  for (const auto& s : streams) {
    if (s.info->parts == 0) continue;
    out.counter("wherry_stream_discarded_steps_total", "Steps that were given up, since a part will not come.",
                s.parts.discarded, label(s));
  }
}

Status MoveService::health() const {
  const FileSinkStatus files = sink_->status();
  if (!files.failing) return ok_status();
  return {StatusCode::kUnavailable, fmt::format("frames do not become files: {}", files.last_error)};
}

Status MoveService::flush(std::chrono::milliseconds patience) {
  const Deadline deadline(patience);
  WHERRY_TRY(sink_->drain(patience));
  return operators_->drain(std::chrono::milliseconds(deadline.left_ms(static_cast<int>(patience.count()))));
}

Status MoveService::stop(std::chrono::milliseconds patience) {
  catalogue_.shut_down();
  if (operators_) operators_->stop();
  if (local_) local_->stop();
  if (flight_) flight_->stop();
  return sink_ ? sink_->stop(patience) : ok_status();
}

}  // namespace wherry::move
