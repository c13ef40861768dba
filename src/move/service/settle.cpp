// SPDX-License-Identifier: Apache-2.0
// The last step of an offload: finishes the frame, publishes it to readers, and sends the host the outcome.
#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "move/service/products.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::size_t kSpareOffloads = 64;
constexpr std::size_t kSpareBytes = std::size_t{256} << 10;  // that the lists of one may keep

}  // namespace

/// Called when all bytes have arrived: writes the metadata, and corrects bit offsets of slices.
void OffloadEngine::place(StreamState& stream, Offload& o) {
  const StreamInfo& info = *stream.info;
  Frame& frame = *o.frame;
  stop_moving(stream, o);
  if (o.deadline_at != 0 && now_ns() > o.deadline_at) {
    o.state = Offload::State::kFailed;
    o.code = StatusCode::kCancelled;
    return;
  }
  const std::span<std::byte> bytes = frame.extent.bytes().first(frame.layout.total_bytes);
  if (info.strategy == Strategy::kRaw) {
    auto* offsets = reinterpret_cast<std::int64_t*>(bytes.data() + frame.layout.buffers[1].offset);
    std::int64_t at = 0;
    *offsets++ = 0;
    for (const BufferRef& buffer : o.buffers) *offsets++ = at += static_cast<std::int64_t>(buffer.bytes);
  } else if (Status s = finish_buffers(info.plan, o.nodes, o.buffers, frame.layout, bytes, &o.detail); !s) {
    note_failure(stream, o, s);
    o.state = Offload::State::kFailed;
    o.code = s.code();
    return;
  }
  if (info.strategy == Strategy::kIpc || info.strategy == Strategy::kIpcPageAligned) {
    if (frame.extent.stamp() == 0) {
      info.ipc->write_metadata(frame.layout, o.nodes, bytes);
      frame.extent.set_stamp(o.shape);
    }
    frame.set_ipc_written();
  } else if (Status s = make_products(info, o.nodes, frame); !s) {
    note_failure(stream, o, s);
    o.state = Offload::State::kFailed;
    o.code = s.code();
    return;
  }
  frame.transfer_ns = o.moved_ns + now_ns() - o.started_ns;
  o.state = Offload::State::kPlaced;
}

/// Publishes and completes finished offloads at the head of the queue, in order. Reports a failed offload at once, even
/// if an earlier one still waits.
void OffloadEngine::settle(StreamState& stream) {
  ClientState& client = *stream.client;
  const auto take = [&](std::size_t index) {
    std::unique_ptr<Offload> o = std::move(stream.queue[index]);
    stream.queue.erase(stream.queue.begin() + static_cast<std::ptrdiff_t>(index));
    --client.offloads;
    client.queued_bytes -= o->queued_bytes;
    return o;
  };
  while (!stream.queue.empty() && stream.queue.front()->state == Offload::State::kPlaced) {
    std::unique_ptr<Offload> o = take(0);
    const std::shared_ptr<Frame> frame = std::exchange(o->frame, nullptr);
    frame->stream = stream.info;
    frame->sequence = stream.next_sequence++;
    frame->tag = o->tag;
    frame->rows = o->rows;
    frame->source_bytes = o->source_bytes;
    frame->part = stream.part;
    std::swap(frame->nodes, o->nodes);
    const std::uint64_t number = frame->sequence;
    FramePtr whole = frame;
    if (stream.dataset != nullptr) {
      Dataset::Added added = stream.dataset->add(stream.part, frame);
      note_dataset(*stream.dataset);
      if (added.blame.code != StatusCode::kOk) {
        ++counters_.failed;
        client.handle->complete(o->ticket, added.blame.code, {.detail = added.blame.detail});
        continue;
      }
      whole = std::move(added.step);
      counters_.steps += whole != nullptr ? 1 : 0;
    }
    ++counters_.offloads;
    counters_.bytes += o->source_bytes;
    client.handle->count_moved(o->source_bytes);
    counters_.transfer_ns += frame->transfer_ns;
    transfers_.add(frame->transfer_ns);
    // When a ticket succeeds, a reader must be able to find the frame, so insert it first. Waking readers is slower, so
    // complete the ticket before that.
    Catalogue::Published published;
    if (whole != nullptr) published = catalogue_.insert(std::move(whole));
    client.handle->complete(o->ticket, StatusCode::kOk, {.transfer_ns = frame->transfer_ns, .sequence = number});
    catalogue_.announce(std::move(published));
    if (spare_.size() < kSpareOffloads && o->queued_bytes <= kSpareBytes)
      attempt([&] { spare_.push_back(std::move(o)); });
  }
  for (std::size_t i = 0; i < stream.queue.size();) {
    if (stream.queue[i]->state != Offload::State::kFailed) {
      ++i;
      continue;
    }
    const std::unique_ptr<Offload> o = take(i);
    ++counters_.failed;
    if (o->ticket != 0) client.handle->complete(o->ticket, o->code, {.detail = o->detail});
    if (o->rest_ticket != 0)
      client.handle->complete(o->rest_ticket, StatusCode::kFailedPrecondition, {.detail = kNoFirstHalf});
  }
  // A failed offload at the head may have delayed finished ones behind it.
  if (!stream.queue.empty() && stream.queue.front()->state == Offload::State::kPlaced) settle(stream);
  free_regions(client);
}

}  // namespace wherry::move
