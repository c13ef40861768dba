// SPDX-License-Identifier: Apache-2.0
// The engine's clients, and its turns. The steps of an offload are in other files: admit, start, issue, recover,
// settle.
#include "move/service/offload_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kWarmUpEvery = 64;  // polls

}  // namespace

OffloadEngine::OffloadEngine(MoveOptions options, std::shared_ptr<Arena> arena, Catalogue& catalogue)
    : options_(options), arena_(std::move(arena)), catalogue_(catalogue) {}

OffloadEngine::~OffloadEngine() = default;

void OffloadEngine::on_session_start(session::Client& handle) {
  auto client = std::make_unique<ClientState>();
  client->handle = &handle;
  clients_.emplace(handle.id(), std::move(client));
}

void OffloadEngine::on_session_end(session::Client& handle) {
  const auto it = clients_.find(handle.id());
  if (it == clients_.end()) return;
  ClientState& client = *it->second;
  // Wait for gets in flight: they write into memory that is freed below, and closing the endpoint does not cancel all
  // of them (CMA's queue is still processed). Gets from a dead client fail at once.
  const auto in_flight = [&] {
    for (const auto& [id, stream] : client.streams) {
      for (const auto& o : stream->queue) {
        if (o->done.pending() != 0) return true;
      }
    }
    return false;
  };
  if (handle.endpoint().streams()) handle.endpoint() = fabric::Endpoint();  // nothing comes after that
  const Deadline patience(std::chrono::seconds(1));
  while (in_flight() && !patience.passed()) handle.worker().progress();
  handle.endpoint() = fabric::Endpoint();
  for (auto& [id, stream] : client.streams) {
    std::erase(active_, stream.get());
    for (const auto& o : stream->queue) {
      ++counters_.failed;
      if (o->state == Offload::State::kFailed) continue;  // noted then
      attempt([&] { note_failure(*stream, *o, {StatusCode::kUnavailable, "the client has gone"}); });
    }
    // A get that is still in flight keeps its memory until the service or the process ends.
    for (auto& o : stream->queue) {
      if (o->done.pending() != 0 && !attempt([&] { lost_.push_back(std::move(o)); })) (void)o.release();
    }
    end_stream(*stream, true);
  }
  attempt([&] { tell_failures(client); });
  inbox_.forget(client);
  clients_.erase(it);
}

bool OffloadEngine::poll() {
  bool worked = take_messages();
  for (std::size_t i = 0; i < active_.size();) {
    StreamState& stream = *active_[i];
    if (Status s = guarded([&] { return worked |= poll_stream(stream), ok_status(); }); !s) {
      // The engine does not poll this stream again. The stream stays marked as active, and ends with its client.
      stream.client->handle->fail(std::move(s));
      active_[i] = active_.back();
      active_.pop_back();
      worked = true;
      continue;
    }
    if (!stream.queue.empty()) {
      ++i;
      continue;
    }
    stream.active = false;
    active_[i] = active_.back();
    active_.pop_back();
    retire(stream);
  }
  if (tell_at_ != 0 && now_ns() >= tell_at_) {
    tell_at_ = 0;
    for (const auto& entry : clients_) attempt([&] { tell_failures(*entry.second); });
  }
  // Warm up if there is no other work, and sometimes even if there is.
  if (!worked || ++polls_ % kWarmUpEvery == 0) worked |= warm_up();
  return worked;
}

bool OffloadEngine::poll_stream(StreamState& stream) {
  ClientState& client = *stream.client;
  bool worked = false;
  // The oldest offload with gets to issue gets the stream's turn. Frames appear in the order of the posts, so sharing
  // turns among a stream's offloads would only delay the first one: two of equal size would both finish at the end of
  // the second.
  bool taken = false;
  std::size_t i = 0;
  for (; i < stream.queue.size() && !client.reconnect; ++i) {
    Offload& o = *stream.queue[i];
    if (o.state == Offload::State::kWaiting) {
      const bool late = o.deadline_at != 0 && now_ns() > o.deadline_at;
      if (client.lost) {
        o.state = Offload::State::kFailed;
        o.code = StatusCode::kUnavailable;
        note_failure(stream, o, {o.code, "the client cannot be reached any more"});
      } else if (late) {
        o.state = Offload::State::kFailed;
        o.code = StatusCode::kCancelled;
      } else if (!try_start(stream, o)) {
        break;
      }
      worked = true;
    }
    if (o.state == Offload::State::kHalf) worked |= go_on(stream, o);
    if (o.state == Offload::State::kMoving && !taken) {
      worked |= advance(stream, o);
      // While offloads restart one at a time, advance() selects the offload.
      taken = o.state == Offload::State::kMoving && !o.all_issued() && client.suspects == 0;
    }
  }
  // Offloads behind one that waits for memory may also pass their deadline.
  for (; i < stream.queue.size(); ++i) {
    Offload& o = *stream.queue[i];
    if (o.state == Offload::State::kWaiting && o.deadline_at != 0 && now_ns() > o.deadline_at) {
      o.state = Offload::State::kFailed;
      o.code = StatusCode::kCancelled;
      worked = true;
    }
  }
  if (client.reconnect) recover(client);
  settle(stream);
  return worked;
}

bool OffloadEngine::moving() const {
  for (const auto& [id, client] : clients_) {
    if (client->moving != 0) return true;
  }
  return false;
}

bool OffloadEngine::drained() {
  for (const auto& [id, client] : clients_) {
    if (client->offloads + client->arrived != 0) return false;
  }
  return true;
}

void OffloadEngine::metrics(session::MetricsWriter& out) const {
  std::uint64_t queued = 0;
  std::uint64_t streams = 0;
  std::uint64_t incomplete = 0;
  std::uint64_t discarded = counters_.ended_discarded;
  for (const auto& [name, dataset] : datasets_) {
    const PartsStatus parts = dataset->status();
    incomplete += parts.incomplete;
    discarded += parts.discarded;
  }
  for (const auto& [id, client] : clients_) {
    queued += client->offloads;
    streams += client->streams.size();
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
  out.counter("wherry_move_steps_total", "Steps of streams in parts that became complete.", counters_.steps);
  out.counter("wherry_move_discarded_steps_total",
              "Steps of streams in parts that were given up, since a part will not come.", discarded);
  out.gauge("wherry_move_incomplete_steps", "Steps of streams in parts that wait for parts.",
            static_cast<double>(incomplete));
  out.histogram("wherry_move_transfer_seconds", "Time of one offload from first get to last byte placed.", transfers_);
  out.gauge("wherry_move_queued", "Offloads accepted and not yet delivered.", static_cast<double>(queued));
  out.gauge("wherry_move_streams", "Streams open for writing.", static_cast<double>(streams));
}

}  // namespace wherry::move
