// SPDX-License-Identifier: Apache-2.0
// Frames in two posts (Stream::post_rest): columns that are final early move first, and the frame waits for the rest.
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "move/service/state.hpp"

namespace wherry::move {

/// Takes the message with the rest of a frame. Only one frame of a stream can wait for its rest.
void OffloadEngine::take_rest(ClientState& client, StreamState& stream) {
  const OffloadHeader& header = view_.header;
  const auto it =
      std::ranges::find_if(stream.queue, [](const auto& o) { return o->first_half && o->rest_ticket == 0; });
  if (it == stream.queue.end() || (*it)->state == Offload::State::kFailed) {
    ++counters_.refused;
    client.handle->complete(header.ticket, StatusCode::kFailedPrecondition, {.detail = kNoFirstHalf});
    return;
  }
  Offload& o = **it;
  // Exactly one half must have each buffer; otherwise the frame would show old content of its memory.
  const auto same = [](const BufferRef& a, const BufferRef& b) {
    return a.bytes == b.bytes && a.rebase == b.rebase && (a.bytes == 0 || (a.region == 0) != (b.region == 0));
  };
  if (!std::ranges::equal(o.nodes, view_.nodes) || !std::ranges::equal(o.buffers, view_.buffers, same)) {
    client.handle->fail({StatusCode::kProtocol, "the two halves of a frame do not belong together"});
    return;
  }
  o.rest.assign(view_.buffers.begin(), view_.buffers.end());
  o.rest_ticket = header.ticket;
}

/// The client may overwrite the first half's buffers, so complete its ticket. The other half's ticket is the frame's.
void OffloadEngine::finish_first_half(StreamState& stream, Offload& o) {
  stop_moving(stream, o);
  o.state = Offload::State::kHalf;
  o.moved_ns = now_ns() - o.started_ns;
  stream.client->handle->complete(std::exchange(o.ticket, 0), StatusCode::kOk, {.transfer_ns = o.moved_ns});
}

/// Starts the second half if it has arrived, or fails a frame that will never get it. True if it did either.
bool OffloadEngine::go_on(StreamState& stream, Offload& o) {
  ClientState& client = *stream.client;
  if (client.lost || (o.rest_ticket == 0 && (draining_ || (stream.closing && stream.received >= stream.close_after)))) {
    o.state = Offload::State::kFailed;
    o.code = StatusCode::kUnavailable;
    note_failure(stream, o, {o.code, "the second half of a frame did not come"});
    return true;
  }
  if (o.rest_ticket == 0 || client.reconnect || client.suspects != 0) return false;
  std::swap(o.buffers, o.rest);
  o.ticket = std::exchange(o.rest_ticket, 0);
  o.first_half = false;
  o.rewind();
  o.state = Offload::State::kMoving;
  o.start = ++client.starts;
  ++stream.moving;
  ++client.moving;
  o.started_ns = now_ns();
  return true;
}

}  // namespace wherry::move
