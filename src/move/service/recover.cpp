// SPDX-License-Identifier: Apache-2.0
// Handles a failed get: finds the offload that caused it, and restarts the others.
#include <fmt/core.h>

#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint64_t kTellAfterNs = 1'000'000'000;  // failures are gathered for so long

}  // namespace

/// Ends a moving offload that has no get in flight.
void OffloadEngine::fail(StreamState& stream, Offload& o, const Status& why, std::uint64_t detail) {
  note_failure(stream, o, why);
  stop_moving(stream, o);
  o.state = Offload::State::kFailed;
  o.code = why.code();
  o.detail = detail;
}

/// If a client dies or its memory is gone, many offloads fail at once. They share one line in the log.
void OffloadEngine::note_failure(StreamState& stream, const Offload& o, const Status& why) {
  ClientState& client = *stream.client;
  if (client.untold++ == 0) {
    attempt([&] {
      client.first_untold = fmt::format("stream '{}', ticket {}: {}", stream.info->name, o.ticket, why.message());
    });
  }
  if (tell_at_ == 0) tell_at_ = now_ns() + kTellAfterNs;
}

void OffloadEngine::tell_failures(ClientState& client) {
  if (client.untold == 0) return;
  const std::uint64_t count = std::exchange(client.untold, 0);
  spdlog::warn("{} (pid {}): {}: {}", client.handle->name(), client.handle->pid(),
               count == 1 ? "an offload failed" : fmt::format("{} offloads failed, the first of them", count),
               std::exchange(client.first_untold, {}));
}

/// Handles a lost client. Offloads in transfer end here; waiting offloads end at their turn.
void OffloadEngine::lose(ClientState& client) {
  client.lost = true;
  for (const auto& [id, stream] : client.streams) {
    for (const auto& o : stream->queue) {
      if (o->state != Offload::State::kMoving || o->done.pending() != 0) continue;
      fail(*stream, *o, {StatusCode::kUnavailable, "the client cannot be reached any more"}, 0);
    }
  }
}

/// A get failed. UCX closed the endpoint and cancelled all other gets, so it is unknown which get failed. So all
/// offloads in flight restart on a new connection, one offload and one get at a time. A get that fails now identifies
/// the offload and its buffer.
void OffloadEngine::recover(ClientState& client) {
  for (const auto& [id, stream] : client.streams) {
    for (const auto& o : stream->queue) {
      if (o->done.pending() != 0) return;  // cancelled operations report first
    }
  }
  const Offload* const culprit = client.trial;
  if (!client.handle->reconnect()) lose(client);
  for (const auto& [id, stream] : client.streams) {
    for (const auto& o : stream->queue) {
      if (o->state != Offload::State::kMoving) continue;
      if (o.get() == culprit) {
        fail(*stream, *o, {StatusCode::kSourceFault, fmt::format("buffer {} could not be read", o->last_get)},
             o->last_get);
      } else {
        o->rewind();
        if (!std::exchange(o->suspect, true)) ++client.suspects;
      }
    }
  }
  client.reconnect = false;
}

}  // namespace wherry::move
