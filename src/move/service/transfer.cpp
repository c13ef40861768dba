// SPDX-License-Identifier: Apache-2.0
// The path of one offload through the agent: message -> admitted -> memory -> gets -> placed -> published -> completed.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/copy.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/service/products.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kMovingPerStream = 16;  // offloads whose gets may be in flight at once
constexpr std::size_t kSpareOffloads = 64;
constexpr std::uint32_t kWarmUpEvery = 64;                   // polls
constexpr std::uint64_t kTellAfterNs = 1'000'000'000;        // failures are gathered for so long
constexpr std::size_t kSpareBytes = std::size_t{256} << 10;  // that the lists of one may keep

std::uint64_t sum_bytes(std::span<const BufferRef> buffers) {
  std::uint64_t sum = 0;
  for (const BufferRef& buffer : buffers) sum += buffer.bytes;
  return sum;
}

}  // namespace

/// Only queues: poll() does the work. UCX may run this inside any call into the fabric, also one that settle() makes.
void OffloadEngine::on_message(session::Client& peer, ByteView message) {
  ClientState& session = *sessions_.at(peer.id());
  if (reinterpret_cast<std::uintptr_t>(message.data()) % alignof(std::uint64_t) != 0) {
    aligned_.assign(message.begin(), message.end());
    message = aligned_;
  }
  const Status parsed = parse_offload(message, view_);
  if (!parsed) spdlog::warn("{} (pid {}): {}", peer.name(), peer.pid(), parsed.message());
  if (message.size() < sizeof(OffloadHeader)) {
    ++counters_.refused;  // nobody knows which ticket
    return;
  }
  const OffloadHeader header = view_.header;  // a copy: refusing may run another on_message, which parses into view_
  const auto refuse = [&](StatusCode code, std::uint64_t detail) {
    ++counters_.refused;
    if (header.ticket != 0) peer.complete(header.ticket, code, {.detail = detail});
  };
  const Status learned = parsed ? learn_regions(session) : parsed;
  const auto it = session.streams.find(header.stream);
  if (it == session.streams.end()) return refuse(parsed ? StatusCode::kNotFound : parsed.code(), 0);
  StreamState& stream = *it->second;
  if (stream.received++ == 0) stream.opened_with = Bytes();
  activate(stream);  // also when it is refused: it may have been the last that a closing stream waited for
  if (!learned) {
    return refuse(learned.code(),
                  parsed ? limit_detail(Limit::kRegionBytes, options_.max_region_bytes_per_session) : 0);
  }
  if (draining_) return refuse(StatusCode::kUnavailable, 0);
  const std::uint64_t queued_bytes = Offload::bytes_of(header.node_count, header.buffer_count);
  if (session.offloads >= options_.max_offloads_per_session) {
    return refuse(StatusCode::kResourceExhausted, limit_detail(Limit::kOffloads, options_.max_offloads_per_session));
  }
  if (session.offloads != 0 && session.queued_bytes + queued_bytes > options_.max_queued_bytes_per_session) {
    return refuse(StatusCode::kResourceExhausted,
                  limit_detail(Limit::kQueuedBytes, options_.max_queued_bytes_per_session));
  }

  std::unique_ptr<Offload> offload;
  if (spare_.empty()) {
    offload = std::make_unique<Offload>();
  } else {
    offload = std::move(spare_.back());
    spare_.pop_back();
  }
  if (Status s = admit(session, stream, *offload); !s) {
    spdlog::warn("stream '{}', ticket {}: {}", stream.info->name, header.ticket, s.message());
    return refuse(s.code(), offload->detail);
  }
  offload->queued_bytes = queued_bytes;
  session.queued_bytes += queued_bytes;
  stream.queue.push_back(std::move(offload));
  ++session.offloads;
}

void OffloadEngine::activate(StreamState& stream) {
  if (std::exchange(stream.active, true)) return;
  active_.push_back(&stream);
}

Status OffloadEngine::learn_regions(ClientState& session) {
  // Gets in flight may still use the key of a region that is dropped or announced again.
  const auto drop = [&](ClientState::RegionState& region) {
    session.dropped.push_back({std::move(region), session.starts});
  };
  for (const std::uint32_t id : view_.dropped) {
    const auto it = session.regions.find(id);
    if (it == session.regions.end()) continue;
    drop(it->second);
    session.regions.erase(it);
  }
  free_regions(session);
  for (const NewRegion& region : view_.regions) {
    ClientState::RegionState known{region.base, region.size, Bytes(region.key.begin(), region.key.end()), 0, {}};
    if (session.region_bytes + known.bytes() > options_.max_region_bytes_per_session) {
      spdlog::warn(
          "{} (pid {}): {} regions of memory are over the limit of {} bytes a session: register large pieces once",
          session.peer->name(), session.peer->pid(), session.regions.size(), options_.max_region_bytes_per_session);
      return {StatusCode::kResourceExhausted, "too many regions"};
    }
    session.region_bytes += known.bytes();
    const auto [it, is_new] = session.regions.try_emplace(region.id);
    if (!is_new) drop(it->second);
    it->second = std::move(known);
  }
  return ok_status();
}

/// Forgets dropped regions that no offload in flight was started with.
void OffloadEngine::free_regions(ClientState& session) {
  if (session.dropped.empty()) return;
  std::uint64_t oldest = session.starts + 1;
  for (const auto& [id, stream] : session.streams) {
    for (const auto& o : stream->queue) {
      if (o->state == Offload::State::kWaiting) break;  // and so do those behind it
      if (o->state == Offload::State::kMoving) oldest = std::min(oldest, o->start);
    }
  }
  while (!session.dropped.empty() && session.dropped.front().until < oldest) {
    session.region_bytes -= session.dropped.front().region.bytes();
    session.dropped.pop_front();
  }
}

std::uint64_t OffloadEngine::StreamState::shape_of(std::span<const NodeRef> nodes, std::span<const BufferRef> buffers) {
  bool same = std::equal(nodes.begin(), nodes.end(), shape_nodes.begin(), shape_nodes.end()) &&
              buffers.size() == shape_bytes.size();
  for (std::size_t i = 0; same && i < buffers.size(); ++i) same = buffers[i].bytes == shape_bytes[i];
  if (!same) {
    ++shape;
    shape_nodes.assign(nodes.begin(), nodes.end());
    shape_bytes.clear();
    for (const BufferRef& buffer : buffers) shape_bytes.push_back(buffer.bytes);
  }
  for (const NodeRef& node : nodes) {
    if (node.null_count < 0) return 0;  // the metadata will hold what is counted later
  }
  return std::uint64_t{info->id} << 32 | shape;
}

/// Checks the message against its stream and copies what must outlive it.
Status OffloadEngine::admit(ClientState& session, StreamState& stream, Offload& o) {
  const StreamInfo& info = *stream.info;
  const OffloadHeader& header = view_.header;
  o.state = Offload::State::kWaiting;
  o.ticket = header.ticket;
  o.tag = header.tag;
  o.rows = header.rows;
  o.deadline_at = header.deadline_ns == 0 ? 0 : now_ns() + header.deadline_ns;
  o.code = StatusCode::kOk;
  o.detail = 0;
  o.waited = false;
  o.suspect = false;
  o.nodes.assign(view_.nodes.begin(), view_.nodes.end());
  o.buffers.assign(view_.buffers.begin(), view_.buffers.end());
  o.rewind();
  if (info.strategy == Strategy::kRaw) {
    // The message lists any number of buffers; the frame holds them as the rows of one large_binary column.
    for (const BufferRef& buffer : o.buffers) {
      if (buffer.bytes <= arena_->capacity()) continue;
      o.detail = limit_detail(Limit::kBudget, arena_->capacity());
      return {StatusCode::kResourceExhausted, "a raw buffer is larger than the budget"};
    }
    const std::uint64_t count = o.buffers.size();
    o.rows = count;
    o.nodes = {{static_cast<std::int64_t>(count), 0}};
    o.plan_buffers = {{0, (count + 1) * sizeof(std::int64_t), 0, 0, 0}, {0, sum_bytes(o.buffers), 0, 0, 0}};
  } else if (Status s = check_offload(info.plan, o.rows, o.nodes, o.buffers); !s) {
    return s;
  }
  o.source_bytes = sum_bytes(o.buffers);
  for (std::size_t i = 0; i < o.buffers.size(); ++i) {
    const BufferRef& buffer = o.buffers[i];
    if (buffer.bytes == 0) continue;
    const fabric::RemoteRegion* region = region_of(session, buffer.region);
    if (region == nullptr || !region->contains(buffer.address, buffer.bytes)) {
      o.detail = i;
      return {StatusCode::kInvalidArgument, "a buffer lies outside the region that it names, or that is none"};
    }
  }

  o.shape = stream.shape_of(o.nodes, o.buffers);
  if (!o.frame) o.frame = std::make_shared<Frame>();
  FrameLayout& layout = o.frame->layout;
  info.ipc->place(o.nodes, info.strategy == Strategy::kRaw ? o.plan_buffers : o.buffers, layout);
  if (layout.total_bytes > arena_->capacity()) {
    o.detail = limit_detail(Limit::kBudget, arena_->capacity());
    return {StatusCode::kResourceExhausted, "the frame is larger than the whole budget"};
  }
  o.destination.clear();
  if (info.strategy == Strategy::kRaw) {
    std::uint64_t at = layout.buffers[2].offset;  // validity, offsets, data
    for (const BufferRef& buffer : o.buffers) {
      o.destination.push_back(at);
      at += buffer.bytes;
    }
  } else {
    std::size_t next = 0;
    for (std::size_t i = 0; i < info.plan.buffers.size(); ++i) {
      const BufferSpec& spec = info.plan.buffers[i];
      if (spec.kind == BufferKind::kValidity && o.nodes[spec.node].null_count == 0) continue;
      o.destination.push_back(layout.buffers[i].offset);
      ++next;
    }
    if (next != o.buffers.size()) return {StatusCode::kInternal, "the plan and the message disagree on buffers"};
  }
  return ok_status();
}

bool OffloadEngine::must_wait(Offload& o) {
  if (!std::exchange(o.waited, true)) ++counters_.busy;
  return false;
}

/// Finds destination memory. False: not now.
bool OffloadEngine::try_start(StreamState& stream, Offload& o) {
  // A stream that must not lose frames starts one at a time, so that its limit holds exactly.
  const bool lossless = stream.info->retention.when_full == Retention::WhenFull::kWait;
  if (lossless && &o != stream.queue.front().get()) return false;
  ClientState& session = *stream.session;
  if (stream.moving >= kMovingPerStream || session.reconnect || session.suspects != 0) return false;
  if (!catalogue_.make_room(*stream.info)) return must_wait(o);
  for (;;) {
    auto extent = arena_->try_allocate(o.frame->layout.total_bytes);
    if (extent) {
      o.frame->extent = *std::move(extent);
      // From here on the memory is this offload's: what stood there stands no more, unless it is the same.
      const bool ipc = stream.info->strategy == Strategy::kIpc || stream.info->strategy == Strategy::kIpcPageAligned;
      if (!ipc || o.shape != o.frame->extent.stamp()) o.frame->extent.set_stamp(0);
      break;
    }
    if (extent.status().code() == StatusCode::kResourceExhausted) {
      o.state = Offload::State::kFailed;
      o.code = StatusCode::kResourceExhausted;
      o.detail = limit_detail(Limit::kBudget, arena_->capacity());
      return true;
    }
    // What was only announced gives way to what is here, and old frames do.
    if (!cold_.empty()) {
      cold_.clear();
      warm_bytes_ = 0;
    } else if (!catalogue_.evict_one(*stream.info)) {
      return must_wait(o);
    }
  }
  o.state = Offload::State::kMoving;
  o.start = ++session.starts;
  ++stream.moving;
  ++session.moving;
  o.started_ns = now_ns();
  return true;
}

/// Reads what issue() collected. On failure the offload stands at the buffer at fault.
Status OffloadEngine::read_pieces(fabric::ProcessReader& reader, Offload& o) {
  if (piece_buffers_.empty()) return ok_status();
  Status s = reader.read();
  if (!s) o.at_buffer = piece_buffers_[reader.failed()];
  piece_buffers_.clear();
  return s;
}

/// Issues gets (or copies) for about `bytes` more bytes; `one_get`: ends with the first that is not done at once.
Status OffloadEngine::issue(ClientState& session, Offload& o, std::size_t bytes, bool one_get) {
  std::byte* frame = o.frame->extent.bytes().data();
  fabric::ProcessReader* const reader = session.peer->reader();
  piece_buffers_.clear();
  while (!o.all_issued() && bytes > 0 && !(one_get && o.done.pending() != 0)) {
    const BufferRef& buffer = o.buffers[o.at_buffer];
    const std::size_t n =
        std::min({static_cast<std::size_t>(buffer.bytes - o.at_offset), options_.transfer_unit, bytes});
    if (n > 0) {
      const fabric::RemoteRegion* region = region_of(session, buffer.region);
      o.last_get = o.at_buffer;
      // The client may have announced another region by this id since the message was admitted.
      if (region == nullptr || !region->contains(buffer.address, buffer.bytes))
        return {StatusCode::kSourceFault, "the region is gone"};
      std::byte* to = frame + o.destination[o.at_buffer] + o.at_offset;
      const std::uint64_t from = buffer.address + o.at_offset;
      if (const std::byte* mapped = region->mapped(from)) {
        if (o.source_bytes >= options_.streaming_copy_from) {
          copier_.copy(to, mapped, n, o.source_bytes);
        } else {
          std::memcpy(to, mapped, n);
        }
        ++counters_.mapped_copies;
      } else if (reader != nullptr) {
        ++counters_.gets;
        piece_buffers_.push_back(o.at_buffer);
        if (!reader->add(to, from, n)) {
          WHERRY_TRY(read_pieces(*reader, o));
        }
      } else {
        ++counters_.gets;
        WHERRY_TRY(session.peer->endpoint().get(to, session.peer->arena_region(), *region, from, n, o.done));
      }
    }
    bytes -= n;
    o.at_offset += n;
    if (o.at_offset == buffer.bytes) {
      ++o.at_buffer;
      o.at_offset = 0;
    }
  }
  return reader == nullptr ? ok_status() : read_pieces(*reader, o);
}

/// It has no get in flight.
void OffloadEngine::stop_moving(StreamState& stream, Offload& o) {
  ClientState& session = *stream.session;
  --stream.moving;
  --session.moving;
  if (std::exchange(o.suspect, false)) --session.suspects;
  if (session.trial == &o) session.trial = nullptr;
}

/// Ends a moving offload that has no get in flight.
void OffloadEngine::fail(StreamState& stream, Offload& o, const Status& why, std::uint64_t detail) {
  note_failure(stream, o, why);
  stop_moving(stream, o);
  o.state = Offload::State::kFailed;
  o.code = why.code();
  o.detail = detail;
}

/// A client that dies, or whose memory is gone, fails with many offloads at once: they share a line in the log.
void OffloadEngine::note_failure(StreamState& stream, const Offload& o, const Status& why) {
  ClientState& session = *stream.session;
  if (session.untold++ == 0) {
    attempt([&] {
      session.first_untold = fmt::format("stream '{}', ticket {}: {}", stream.info->name, o.ticket, why.message());
    });
  }
  if (tell_at_ == 0) tell_at_ = now_ns() + kTellAfterNs;
}

void OffloadEngine::tell_failures(ClientState& session) {
  if (session.untold == 0) return;
  const std::uint64_t count = std::exchange(session.untold, 0);
  spdlog::warn("{} (pid {}): {}: {}", session.peer->name(), session.peer->pid(),
               count == 1 ? "an offload failed" : fmt::format("{} offloads failed, the first of them", count),
               std::exchange(session.first_untold, {}));
}

/// The client is gone: what was begun ends here, what waits does when its turn comes.
void OffloadEngine::lose(ClientState& session) {
  session.lost = true;
  for (const auto& [id, stream] : session.streams) {
    for (const auto& o : stream->queue) {
      if (o->state != Offload::State::kMoving || o->done.pending() != 0) continue;
      fail(*stream, *o, {StatusCode::kUnavailable, "the client cannot be reached any more"}, 0);
    }
  }
}

/// One step of a moving offload; true if it got anywhere.
bool OffloadEngine::advance(StreamState& stream, Offload& o) {
  ClientState& session = *stream.session;
  if (session.reconnect) return false;  // recover() decides when nothing is in flight
  const bool on_trial = session.suspects != 0;
  if (on_trial) {
    if (session.trial == nullptr && o.suspect) session.trial = &o;
    if (session.trial != &o) return false;
  }
  if (o.done.error() != nullptr) {
    session.reconnect = true;
    return true;
  }
  bool worked = false;
  const std::uint32_t in_flight_limit =
      on_trial ? 1 : static_cast<std::uint32_t>(std::max<std::size_t>(1, options_.window / options_.transfer_unit));
  if (!o.all_issued() && (o.done.pending() < in_flight_limit)) {
    worked = true;
    // What reads at once, in this thread, leaves the others their turn sooner.
    const std::size_t turn = session.peer->reader() != nullptr ? options_.transfer_unit : options_.window;
    if (Status s = issue(session, o, turn, on_trial); !s) {
      if (session.peer->reader() != nullptr && s.code() == StatusCode::kUnavailable) {
        lose(session);
      } else if (session.peer->reader() != nullptr && o.done.pending() == 0) {
        fail(stream, o, s, o.at_buffer);  // the connection is none the worse for it
      } else {
        session.reconnect = true;
      }
      return true;
    }
  }
  if (o.all_issued() && o.done.pending() == 0) {
    if (o.done.error() != nullptr) {
      session.reconnect = true;
    } else {
      place(stream, o);
    }
    worked = true;
  }
  return worked;
}

/// All bytes have arrived: what remains is metadata, and slices' bit offsets.
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
  frame.transfer_ns = now_ns() - o.started_ns;
  o.state = Offload::State::kPlaced;
}

/// Publishes and completes, in order, what is at the head of the queue and done; and tells at once what failed behind
/// one that waits.
void OffloadEngine::settle(StreamState& stream) {
  ClientState& session = *stream.session;
  // complete() may make progress in UCX and so let on_message append to the queue: an offload leaves the queue first.
  const auto take = [&](std::size_t index) {
    std::unique_ptr<Offload> o = std::move(stream.queue[index]);
    stream.queue.erase(stream.queue.begin() + static_cast<std::ptrdiff_t>(index));
    --session.offloads;
    session.queued_bytes -= o->queued_bytes;
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
    std::swap(frame->nodes, o->nodes);
    ++counters_.offloads;
    counters_.bytes += o->source_bytes;
    session.peer->count_moved(o->source_bytes);
    counters_.transfer_ns += frame->transfer_ns;
    // The host first: its buffers are free, whoever reads the frame.
    session.peer->complete(o->ticket, StatusCode::kOk,
                           {.transfer_ns = frame->transfer_ns, .sequence = frame->sequence});
    catalogue_.publish(frame);
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
    session.peer->complete(o->ticket, o->code, {.detail = o->detail});
  }
  // A failure at the head may have hidden finished ones.
  if (!stream.queue.empty() && stream.queue.front()->state == Offload::State::kPlaced) settle(stream);
  free_regions(session);
}

/// A get failed, and UCX closed the endpoint with it and cancelled all the others: nobody can tell any more which one
/// it was. So all offloads in flight start again on a new connection, one at a time, one get at a time: when one fails
/// now, it is to blame, and its buffer is known.
void OffloadEngine::recover(ClientState& session) {
  for (const auto& [id, stream] : session.streams) {
    for (const auto& o : stream->queue) {
      if (o->done.pending() != 0) return;  // cancelled operations report first
    }
  }
  const Offload* const culprit = session.trial;
  if (!session.peer->reconnect()) lose(session);
  for (const auto& [id, stream] : session.streams) {
    for (const auto& o : stream->queue) {
      if (o->state != Offload::State::kMoving) continue;
      if (o.get() == culprit) {
        fail(*stream, *o, {StatusCode::kSourceFault, fmt::format("buffer {} could not be read", o->last_get)},
             o->last_get);
      } else {
        o->rewind();
        if (!std::exchange(o->suspect, true)) ++session.suspects;
      }
    }
  }
  session.reconnect = false;
}

bool OffloadEngine::poll_stream(StreamState& stream) {
  ClientState& session = *stream.session;
  bool worked = false;
  std::size_t i = 0;
  for (; i < stream.queue.size() && !session.reconnect; ++i) {
    Offload& o = *stream.queue[i];
    if (o.state == Offload::State::kWaiting) {
      const bool late = o.deadline_at != 0 && now_ns() > o.deadline_at;
      if (session.lost) {
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
    if (o.state == Offload::State::kMoving) worked |= advance(stream, o);
  }
  // Those behind one that waits for memory can still run out of time.
  for (; i < stream.queue.size(); ++i) {
    Offload& o = *stream.queue[i];
    if (o.state == Offload::State::kWaiting && o.deadline_at != 0 && now_ns() > o.deadline_at) {
      o.state = Offload::State::kFailed;
      o.code = StatusCode::kCancelled;
      worked = true;
    }
  }
  if (session.reconnect) recover(session);
  settle(stream);
  return worked;
}

bool OffloadEngine::poll() {
  bool worked = false;
  for (std::size_t i = 0; i < active_.size();) {
    StreamState& stream = *active_[i];
    if (Status s = guarded([&] { return worked |= poll_stream(stream), ok_status(); }); !s) {
      // Nothing more is done for it: it stays marked as active, and ends with its session.
      stream.session->peer->fail(std::move(s));
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
    for (const auto& entry : sessions_) attempt([&] { tell_failures(*entry.second); });
  }
  // In spare time; a little also when there is none.
  if (!worked || ++polls_ % kWarmUpEvery == 0) worked |= warm_up();
  return worked;
}

}  // namespace wherry::move
