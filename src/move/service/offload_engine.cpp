// SPDX-License-Identifier: Apache-2.0
// Sessions, streams and requests; the path of an offload is in transfer.cpp.
#include "move/service/offload_engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/service/announced.hpp"
#include "move/service/sink_directory.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kPageAlignment = 4096;
constexpr std::uint32_t kIpcAlignment = 64;
constexpr std::size_t kMaxStreamsPerSession = 1024;
constexpr std::size_t kAnnouncedFrames = 2;                   // of one size: one is read while the other arrives
constexpr std::size_t kArrowBytes = std::size_t{1} << 20;     // more than a schema takes
constexpr std::size_t kWarmUpBytes = std::size_t{512} << 10;  // at a time: about 50 us

/// Destination buffers are page-aligned (paper 004 section IV-B) except where the strategy asks for the denser layout.
std::uint32_t alignment_of(Strategy strategy) { return strategy == Strategy::kIpc ? kIpcAlignment : kPageAlignment; }

Status check_announced(std::uint64_t bytes, std::size_t budget) {
  if (bytes <= budget) return ok_status();
  return {StatusCode::kResourceExhausted,
          fmt::format("offloads of {} bytes were announced; the agent's budget is {} bytes", bytes, budget)};
}

}  // namespace

OffloadEngine::OffloadEngine(MoveOptions options, std::shared_ptr<Arena> arena, Catalogue& catalogue)
    : options_(options), arena_(std::move(arena)), catalogue_(catalogue) {}

OffloadEngine::~OffloadEngine() = default;

void OffloadEngine::on_session_start(session::Client& peer) {
  auto session = std::make_unique<ClientState>();
  session->peer = &peer;
  sessions_.emplace(peer.id(), std::move(session));
}

void OffloadEngine::on_session_end(session::Client& peer) {
  const auto it = sessions_.find(peer.id());
  if (it == sessions_.end()) return;
  ClientState& session = *it->second;
  // Gets in flight write into memory that is given back below, and closing the endpoint does not cancel all of them
  // (CMA's queue is worked off regardless): wait for them. Those of a dead client fail at once.
  const auto in_flight = [&] {
    for (const auto& [id, stream] : session.streams) {
      for (const auto& o : stream->queue) {
        if (o->done.pending() != 0) return true;
      }
    }
    return false;
  };
  if (peer.endpoint().streams()) peer.endpoint() = fabric::Endpoint();  // nothing comes after that
  const Deadline patience(std::chrono::seconds(1));
  while (in_flight() && !patience.passed()) peer.worker().progress();
  peer.endpoint() = fabric::Endpoint();
  for (auto& [id, stream] : session.streams) {
    std::erase(active_, stream.get());
    for (const auto& o : stream->queue) {
      ++counters_.failed;
      if (o->state == Offload::State::kFailed) continue;  // noted then
      attempt([&] { note_failure(*stream, *o, {StatusCode::kUnavailable, "the client has gone"}); });
    }
    // What even that did not end keeps its memory for as long as the service lives, or the process.
    for (auto& o : stream->queue) {
      if (o->done.pending() != 0 && !attempt([&] { lost_.push_back(std::move(o)); })) (void)o.release();
    }
    catalogue_.close(stream->info->name);
    stream->info->files.reset();
  }
  attempt([&] { tell_failures(session); });
  sessions_.erase(it);
}

Result<Bytes> OffloadEngine::on_request(session::Client& peer, std::string_view method, ByteView payload) {
  ClientState& session = *sessions_.at(peer.id());
  if (method == "open" && draining_) return Status(StatusCode::kUnavailable, "the agent is shutting down");
  if (method == "open") return open_stream(session, payload);
  if (method == "status") return Bytes();
  if (method == "close") return close_stream(session, payload);
  return Status(StatusCode::kProtocol,
                fmt::format("the move service has no method '{}'", std::string(method.substr(0, 32))));
}

Result<Bytes> OffloadEngine::open_stream(ClientState& session, ByteView payload) {
  auto request = decode_open(payload);
  if (!request) return request.status();
  const ByteView opened_with = payload.subspan(1);
  if (request->again) {
    if (const StreamState* before = opened_before(session, request->options.name, opened_with)) {
      Writer out;
      out.put(before->info->id);
      return std::move(out).take();
    }
  }
  if (session.streams.size() >= kMaxStreamsPerSession) {
    return Status(StatusCode::kResourceExhausted, fmt::format("a session may have {} streams", kMaxStreamsPerSession));
  }
  auto info = std::make_shared<StreamInfo>();
  info->id = next_stream_;
  info->name = request->options.name;
  info->strategy = request->options.strategy;
  info->schema_metadata = request->options.schema_metadata;
  info->retention = request->options.retention;
  info->sink = request->options.sink;
  if (info->strategy == Strategy::kRaw) {
    if (!request->schema.empty())
      return Status(StatusCode::kInvalidArgument, "a raw stream has no schema: leave it empty");
    info->schema = {field("buffer", "Z")};
  } else {
    info->schema = std::move(request->schema);
  }
  auto plan = make_plan(info->schema);
  if (!plan) return plan.status();
  info->plan = *std::move(plan);
  require_memory(kArrowBytes);
  auto ipc = IpcTemplate::make(info->schema, info->plan, alignment_of(info->strategy), info->schema_metadata);
  if (!ipc) return ipc.status();
  info->ipc = *std::move(ipc);
  for (const std::uint64_t bytes : request->options.announced_bytes) {
    WHERRY_TRY(check_announced(bytes, arena_->capacity()));
  }
  if (info->sink.format != Sink::Format::kNone) {
    if (options_.sink_needs_root && options_.sink_root.empty()) {
      return Status(StatusCode::kPermissionDenied,
                    "this agent serves a group of users (agent.group), and writes files only below its setting "
                    "sink.root, which is empty");
    }
    auto files = SinkDirectory::open(options_.sink_root, info->sink.directory, info->name, info->sink.format);
    if (!files) return files.status();
    info->sink.directory = (*files)->path();
    info->files = *std::move(files);
  }
  auto stream = std::make_unique<StreamState>();
  stream->info = info;
  stream->session = &session;
  stream->opened_with.assign(opened_with.begin(), opened_with.end());
  const auto opened = session.streams.emplace(info->id, std::move(stream)).first;
  // A name is taken only for a stream that the session knows, and will close.
  if (Status s = guarded([&] { return catalogue_.open(info); }); !s) {
    session.streams.erase(opened);
    return s;
  }
  ++next_stream_;
  for (const std::uint64_t bytes : request->options.announced_bytes) prepare_memory(*info, bytes);
  spdlog::info("stream '{}' opened by {} (pid {}): {}, {} columns", info->name, session.peer->name(),
               session.peer->pid(), to_string(info->strategy), info->schema.size());
  Writer out;
  out.put(info->id);
  return std::move(out).take();
}

/// The stream that an unanswered request of this session opened, if it asked for the same. One with other options or
/// another schema makes way.
const OffloadEngine::StreamState* OffloadEngine::opened_before(ClientState& session, const std::string& name,
                                                               ByteView opened_with) {
  const auto it = std::ranges::find_if(session.streams, [&](const auto& entry) {
    const StreamState& stream = *entry.second;
    return stream.info->name == name && stream.received == 0 && !stream.closing;
  });
  if (it == session.streams.end()) return nullptr;
  if (std::ranges::equal(it->second->opened_with, opened_with)) return it->second.get();
  it->second->closing = true;
  retire(*it->second);
  return nullptr;
}

/// Sets memory aside for frames of offloads of about that many bytes, with and without validity where that makes a
/// difference; poll() touches it.
void OffloadEngine::prepare_memory(const StreamInfo& info, std::uint64_t announced) {
  std::size_t before = 0;
  for (const bool validity : {false, true}) {
    const std::size_t bytes = announced_frame_bytes(info, announced, validity);
    if (Arena::class_size(bytes) == std::exchange(before, Arena::class_size(bytes))) continue;
    for (std::size_t i = 0; i < kAnnouncedFrames; ++i) {
      auto extent = arena_->try_allocate(bytes);
      if (!extent) break;  // then there is nothing to prepare
      cold_.push_back(*std::move(extent));
    }
  }
}

/// The next slice of what was announced: a new stream must not make all others wait while gigabytes become resident.
bool OffloadEngine::warm_up() {
  if (cold_.empty()) return false;
  const std::span<std::byte> bytes = cold_.front().bytes();
  const std::size_t n = std::min(kWarmUpBytes, bytes.size() - warm_bytes_);
  Arena::touch(bytes.subspan(warm_bytes_, n));
  warm_bytes_ += n;
  if (warm_bytes_ == bytes.size()) {
    cold_.pop_front();
    warm_bytes_ = 0;
  }
  return true;
}

Result<Bytes> OffloadEngine::close_stream(ClientState& session, ByteView payload) {
  Reader in(payload);
  const auto it = session.streams.find(in.get<std::uint32_t>());
  const auto posted = in.get<std::uint64_t>();
  if (!in.at_end() || it == session.streams.end()) return Status(StatusCode::kNotFound, "no such stream");
  StreamState& stream = *it->second;
  stream.closing = true;
  stream.close_after = posted;
  retire(stream);
  return Bytes();
}

/// Ends a stream whose last offload is done.
void OffloadEngine::retire(StreamState& stream) {
  if (!stream.finished()) return;
  catalogue_.close(stream.info->name);
  stream.info->files.reset();
  if (stream.active) std::erase(active_, &stream);
  stream.session->streams.erase(stream.info->id);
}

const fabric::RemoteRegion* OffloadEngine::region_of(ClientState& session, std::uint32_t id) {
  const auto it = session.regions.find(id);
  if (it == session.regions.end()) return nullptr;
  ClientState::RegionState& region = it->second;
  if (!region.remote || region.epoch != session.peer->epoch()) {
    auto remote =
        session.peer->endpoint().unpack(region.key, region.base, region.size, static_cast<pid_t>(session.peer->pid()));
    if (!remote) {
      spdlog::warn("{} (pid {}): region {}: {}", session.peer->name(), session.peer->pid(), id,
                   remote.status().message());
      return nullptr;
    }
    region.remote = *std::move(remote);
    region.epoch = session.peer->epoch();
  }
  return &region.remote;
}

bool OffloadEngine::moving() const {
  for (const auto& [id, session] : sessions_) {
    if (session->moving != 0) return true;
  }
  return false;
}

bool OffloadEngine::drained() {
  for (const auto& [id, session] : sessions_) {
    if (session->offloads != 0) return false;
  }
  return true;
}

void OffloadEngine::metrics(session::MetricsWriter& out) const {
  std::uint64_t queued = 0;
  std::uint64_t streams = 0;
  for (const auto& [id, session] : sessions_) {
    queued += session->offloads;
    streams += session->streams.size();
  }
  out.counter("wherry_move_offloads_total", "Offloads delivered as frames.", counters_.offloads);
  out.counter("wherry_move_failed_total", "Offloads that failed after they were accepted.", counters_.failed);
  out.counter("wherry_move_refused_total", "Offload messages that were malformed or did not match their stream.",
              counters_.refused);
  out.counter("wherry_move_bytes_total", "Bytes moved from host memory.", counters_.bytes);
  out.counter("wherry_move_gets_total", "One-sided gets issued.", counters_.gets);
  out.counter("wherry_move_mapped_copies_total", "Transfers served by plain loads from mapped memory.",
              counters_.mapped_copies);
  out.counter("wherry_move_busy_total", "Offloads that had to wait for memory, or for room in their stream.",
              counters_.busy);
  out.counter("wherry_move_transfer_nanoseconds_total", "Time from first get to last byte placed, summed.",
              counters_.transfer_ns);
  out.gauge("wherry_move_queued", "Offloads accepted and not yet delivered.", static_cast<double>(queued));
  out.gauge("wherry_move_streams", "Streams open for writing.", static_cast<double>(streams));
}

}  // namespace wherry::move
