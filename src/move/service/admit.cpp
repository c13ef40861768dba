// SPDX-License-Identifier: Apache-2.0
// The first step of an offload: its message arrives, waits for the engine's turn, and is accepted or refused.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

std::uint64_t sum_bytes(std::span<const BufferRef> buffers) {
  std::uint64_t sum = 0;
  for (const BufferRef& buffer : buffers) sum += buffer.bytes;
  return sum;
}

}  // namespace

/// Only queues the message: UCX may call this inside any call into the fabric, even inside complete().
void OffloadEngine::on_message(session::Client& handle, ByteView message) {
  ClientState& client = *clients_.at(handle.id());
  // A client reuses a ticket's slot only after the slot's previous ticket is done.
  if (client.arrived == handle.max_tickets() ||
      (client.arrived != 0 && client.arrived_bytes + message.size() > options_.max_arrived_bytes_per_session)) {
    handle.fail({StatusCode::kResourceExhausted, "the client sends more messages than its tickets allow"});
    return;
  }
  inbox_.push(client, message);
  ++client.arrived;
  client.arrived_bytes += message.size();
}

/// Handles the messages that have arrived, in order.
bool OffloadEngine::take_messages() {
  if (inbox_.empty()) return false;
  inbox_.read([this](ClientState& client, ByteView message) {
    --client.arrived;
    client.arrived_bytes -= message.size();
    Status s = guarded([&] { return take(client, message), ok_status(); });
    if (!s) client.handle->fail(std::move(s));
  });
  return true;
}

/// Refuses the message or adds it to its stream's queue.
void OffloadEngine::take(ClientState& client, ByteView message) {
  const Status parsed = parse_offload(message, view_);
  if (!parsed) spdlog::warn("{} (pid {}): {}", client.handle->name(), client.handle->pid(), parsed.message());
  if (message.size() < sizeof(OffloadHeader)) {
    ++counters_.refused;  // nobody knows which ticket
    return;
  }
  const OffloadHeader& header = view_.header;
  const auto refuse = [&](StatusCode code, std::uint64_t detail) {
    ++counters_.refused;
    if (header.ticket != 0) client.handle->complete(header.ticket, code, {.detail = detail});
  };
  const Status learned = parsed ? learn_regions(client) : parsed;
  const auto it = client.streams.find(header.stream);
  if (it == client.streams.end()) return refuse(parsed ? StatusCode::kNotFound : parsed.code(), 0);
  StreamState& stream = *it->second;
  if (stream.received++ == 0) stream.opened_with = Bytes();
  activate(stream);  // also when it is refused: it may have been the last that a closing stream waited for
  if (!learned) {
    return refuse(learned.code(),
                  parsed ? limit_detail(Limit::kRegionBytes, options_.max_region_bytes_per_session) : 0);
  }
  if (header.binding != 0) {
    if (const Status known = use_binding(client, stream); !known) {
      const bool full = known.code() == StatusCode::kResourceExhausted;
      return refuse(known.code(), full ? limit_detail(Limit::kQueuedBytes, options_.max_queued_bytes_per_session) : 0);
    }
  }
  if (stream.dataset != nullptr && header.half != Half::kRest) {
    if (stream.received > 1 && header.tag <= stream.last_tag) {
      spdlog::warn("stream '{}', part {}: tag {} after tag {}", stream.info->name, stream.part, header.tag,
                   stream.last_tag);
      return refuse(StatusCode::kInvalidArgument, 0);
    }
    stream.last_tag = header.tag;
  }
  if (draining_) return refuse(StatusCode::kUnavailable, 0);
  if (header.half == Half::kRest) return take_rest(client, stream);
  const std::uint64_t queued_bytes = Offload::bytes_of(header.node_count, header.buffer_count);
  if (client.offloads >= options_.max_offloads_per_session) {
    return refuse(StatusCode::kResourceExhausted, limit_detail(Limit::kOffloads, options_.max_offloads_per_session));
  }
  if (client.offloads != 0 && client.queued_bytes + queued_bytes > options_.max_queued_bytes_per_session) {
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
  if (Status s = admit(client, stream, *offload); !s) {
    spdlog::warn("stream '{}', ticket {}: {}", stream.info->name, header.ticket, s.message());
    return refuse(s.code(), offload->detail);
  }
  offload->queued_bytes = queued_bytes;
  client.queued_bytes += queued_bytes;
  stream.queue.push_back(std::move(offload));
  ++client.offloads;
}

void OffloadEngine::activate(StreamState& stream) {
  if (std::exchange(stream.active, true)) return;
  active_.push_back(&stream);
}

Status OffloadEngine::learn_regions(ClientState& client) {
  // A region may be dropped or announced again while gets in flight still use its key.
  const auto drop = [&](ClientState::RegionState& region) {
    client.dropped.push_back({std::move(region), client.starts});
  };
  for (const std::uint32_t id : view_.dropped) {
    forget_binding(client, id);
    const auto it = client.regions.find(id);
    if (it == client.regions.end()) continue;
    drop(it->second);
    client.regions.erase(it);
  }
  free_regions(client);
  for (const NewRegion& region : view_.regions) {
    ClientState::RegionState known{region.base, region.size, Bytes(region.key.begin(), region.key.end()), 0, {}};
    if (client.region_bytes + known.bytes() > options_.max_region_bytes_per_session) {
      spdlog::warn(
          "{} (pid {}): {} regions of memory are over the limit of {} bytes a session: register large pieces once",
          client.handle->name(), client.handle->pid(), client.regions.size(), options_.max_region_bytes_per_session);
      return {StatusCode::kResourceExhausted, "too many regions"};
    }
    client.region_bytes += known.bytes();
    const auto [it, is_new] = client.regions.try_emplace(region.id);
    if (!is_new) drop(it->second);
    it->second = std::move(known);
  }
  return ok_status();
}

/// Resolves the binding of a message that is not checked yet: the message defines the binding or uses its
/// lists.
Status OffloadEngine::use_binding(ClientState& client, const StreamState& stream) {
  OffloadHeader& header = view_.header;
  if (header.node_count != 0 || header.buffer_count != 0) {
    ClientState::Binding binding{header.stream, header.rows, {}, {}};
    binding.nodes.assign(view_.nodes.begin(), view_.nodes.end());
    binding.buffers.assign(view_.buffers.begin(), view_.buffers.end());
    forget_binding(client, header.binding);
    const std::uint64_t bytes = binding.bytes();
    if (client.binding_bytes + bytes > options_.max_queued_bytes_per_session) {
      spdlog::warn("{} (pid {}): the buffers of {} bound steps are over the limit of {} bytes a session: release some",
                   client.handle->name(), client.handle->pid(), client.bindings.size(),
                   options_.max_queued_bytes_per_session);
      return {StatusCode::kResourceExhausted, "too many bound steps"};
    }
    client.bindings.emplace(header.binding, std::move(binding));
    client.binding_bytes += bytes;
    return ok_status();
  }
  const auto it = client.bindings.find(header.binding);
  if (it == client.bindings.end() || it->second.stream != header.stream) {
    spdlog::warn("stream '{}', ticket {}: no step {} is bound", stream.info->name, header.ticket, header.binding);
    return {StatusCode::kFailedPrecondition, "no such step"};
  }
  header.rows = it->second.rows;
  view_.nodes = it->second.nodes;
  view_.buffers = it->second.buffers;
  header.node_count = static_cast<std::uint16_t>(view_.nodes.size());
  header.buffer_count = static_cast<std::uint32_t>(view_.buffers.size());
  return ok_status();
}

void OffloadEngine::forget_binding(ClientState& client, std::uint32_t id) {
  const auto it = client.bindings.find(id);
  if (it == client.bindings.end()) return;
  client.binding_bytes -= it->second.bytes();
  client.bindings.erase(it);
}

void OffloadEngine::forget_bindings(ClientState& client, const StreamState& stream) {
  std::erase_if(client.bindings, [&](const auto& entry) {
    if (entry.second.stream != stream.id) return false;
    client.binding_bytes -= entry.second.bytes();
    return true;
  });
}

/// Frees regions that were dropped before the oldest offload in flight started.
void OffloadEngine::free_regions(ClientState& client) {
  if (client.dropped.empty()) return;
  std::uint64_t oldest = client.starts + 1;
  for (const auto& [id, stream] : client.streams) {
    for (const auto& o : stream->queue) {
      if (o->state == Offload::State::kWaiting) break;  // and so do those behind it
      if (o->state == Offload::State::kMoving) oldest = std::min(oldest, o->start);
    }
  }
  while (!client.dropped.empty() && client.dropped.front().until < oldest) {
    client.region_bytes -= client.dropped.front().region.bytes();
    client.dropped.pop_front();
  }
}

const fabric::RemoteRegion* OffloadEngine::region_of(ClientState& client, std::uint32_t id) {
  const auto it = client.regions.find(id);
  if (it == client.regions.end()) return nullptr;
  ClientState::RegionState& region = it->second;
  if (!region.remote || region.epoch != client.handle->epoch()) {
    auto remote = client.handle->endpoint().unpack(region.key, region.base, region.size,
                                                   static_cast<pid_t>(client.handle->pid()));
    if (!remote) {
      spdlog::warn("{} (pid {}): region {}: {}", client.handle->name(), client.handle->pid(), id,
                   remote.status().message());
      return nullptr;
    }
    region.remote = *std::move(remote);
    region.epoch = client.handle->epoch();
  }
  return &region.remote;
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
  return std::uint64_t{id} << 32 | shape;
}

/// Checks the message against its stream, and copies the parts that are needed after the message is gone.
Status OffloadEngine::admit(ClientState& client, StreamState& stream, Offload& o) {
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
  o.moved_ns = 0;
  o.halves = o.first_half = header.half == Half::kFirst;
  o.rest_ticket = 0;
  if (o.halves && info.strategy == Strategy::kRaw) {
    return {StatusCode::kInvalidArgument, "a raw stream takes no frames in two halves"};
  }
  o.nodes.assign(view_.nodes.begin(), view_.nodes.end());
  o.buffers.assign(view_.buffers.begin(), view_.buffers.end());
  o.rewind();
  if (info.strategy == Strategy::kRaw) {
    // The message may list any number of buffers. The frame holds them as rows of one large_binary column.
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
    if (buffer.bytes == 0 || (o.halves && buffer.region == 0)) continue;
    const fabric::RemoteRegion* region = region_of(client, buffer.region);
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

}  // namespace wherry::move
