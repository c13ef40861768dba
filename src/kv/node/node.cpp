// SPDX-License-Identifier: Apache-2.0
// A node's checks of a frame's form, sender and epoch; reads, and replies.
#include "kv/node/node.hpp"

namespace wherry::kv {
namespace {

/// Checks only what depends on the client's frame alone.
Status form_of(const Message& m) noexcept {
  const auto kind = static_cast<Kind>(m.header.kind);
  const bool writes = kind == Kind::write || kind == Kind::write_if;
  if (m.value.size() > kMaxValueBytes) return Status::too_long;
  if ((!writes && !m.value.empty()) || m.header.detail != 0 || m.header.node != 0) return Status::bad_frame;
  return Status::ok;
}

bool may_have_value(Kind kind) noexcept { return kind == Kind::replicate || kind == Kind::entry; }

}  // namespace

Node::Node(const Options& options, Output& output, Faults faults)
    : options_(options), faults_(faults), output_(output), lanes_(options.lane_bits), notes_(options.max_leftovers) {}

void Node::receive(const Endpoint& from, const Message& message, Cycles now) {
  now_ = now;
  if (registers::kControlEnable.get(control_) == 0) return count_passed_rx();
  ++counters_.frames_kv;
  const Kv& h = message.header;
  ++counters_.received[h.kind % counters_.received.size()];
  if (fault_) return (void)++counters_.dropped;  // from the fault on it is like a node that stopped
  switch (static_cast<Kind>(h.kind)) {
    case Kind::read:
    case Kind::write:
    case Kind::write_if:
    case Kind::remove:
    case Kind::remove_if:
      if (const Status form = form_of(message); form != Status::ok)
        answer(from, h, slot_of(hash_of(h.key)), form);
      else if (static_cast<Kind>(h.kind) == Kind::read)
        on_read(from, h);
      else
        on_request(from, message);
      return;
    case Kind::lane:
      return on_lane(from, message);
    case Kind::ping:
      return on_ping(from, message);
    case Kind::replicate:
    case Kind::replicate_remove:
    case Kind::commit:
    case Kind::fetch:
    case Kind::enter:
    case Kind::replicated:
    case Kind::replicated_remove:
    case Kind::entry:
    case Kind::entered:
    case Kind::lane_record:
      from_node(from, message);
      return after_leftovers();
    default:
      ++counters_.dropped;  // told apart by its kind: no node receives it
  }
}

void Node::from_node(const Endpoint& from, const Message& m) {
  const unsigned sender = m.header.node % kMaxNodes;
  const bool any = faults_.has(NodeFault::forget_fence);
  // Do not compare MAC addresses: switches between nodes may rewrite them, and sockets do not see them.
  const Endpoint& peer = config_.peers[sender];
  if (epoch16_ == 0 || (m.header.epoch != epoch16_ && !any) || (!has(config_.members, sender) && !any) ||
      !has(config_.members, self()) || sender == self() || peer.ip != from.ip || peer.port != from.port)
    return drop_as(counters_.dropped_epoch);
  const bool has_value = may_have_value(static_cast<Kind>(m.header.kind));
  if (m.value.size() > (has_value ? kMaxValueBytes : 0)) return drop_as(counters_.dropped_length);
  heard_at_[sender] = now_;
  if (take_from_node(from, sender, m))
    ++counters_.taken;
  else
    drop_as(counters_.dropped_epoch);  // it takes this node, or itself, for somebody else
}

bool Node::take_from_node(const Endpoint& from, unsigned sender, const Message& m) {
  switch (static_cast<Kind>(m.header.kind)) {
    case Kind::replicate:
    case Kind::replicate_remove:
      return on_replicate(m);
    case Kind::commit:
      return on_commit(m.header);
    case Kind::replicated:
    case Kind::replicated_remove:
      return on_replicated(m.header);
    case Kind::fetch:
      return on_fetch(from, m.header);
    case Kind::entry:
      return on_entry(m);
    case Kind::enter:
      on_enter(sender);
      return true;
    case Kind::entered:
      entered_ = static_cast<std::uint8_t>(entered_ | 1U << sender);
      leftovers_changed_ = true;
      return true;
    default:
      on_lane_record(sender, m.header);
      return true;
  }
}

void Node::on_read(const Endpoint& from, const Kv& h) {
  const std::uint32_t hash = hash_of(h.key);
  const unsigned slot = slot_of(hash);
  if (!serving()) return answer(from, h, slot, Status::not_serving);
  const std::uint32_t bucket = bucket_of(hash, table_.bits());
  const std::uint32_t first = first_way_of(hash);
  if (notes_.in_bucket(bucket) && !faults_.has(NodeFault::serve_pending_reads)) {
    if (leads(slot)) return answer(from, h, slot, Status::busy);
    ask_for_commit(bucket);
    return answer(from, h, slot, Status::pending);
  }
  const Location at = table_.find(bucket, first, h.key);
  if (at == Table::kNowhere) return read_elsewhere(from, h, hash);
  answer(from, h, slot, Status::ok, table_.way(at).version, table_.value(at));
}

/// Reads a key that is not in its first bucket, where nothing is pending.
void Node::read_elsewhere(const Endpoint& from, const Kv& h, std::uint32_t hash) {
  const unsigned slot = slot_of(hash), bits = table_.bits();
  const bool search = table_.may_be_elsewhere(bucket_of(hash, bits));
  if (search) table_.prefetch_others(hash);
  for (std::uint32_t i = 1; search && i < candidates(bits); ++i) {
    const std::uint32_t bucket = bucket_at_index(hash, i, bits);
    if (notes_.in_bucket(bucket) && !faults_.has(NodeFault::serve_pending_reads)) {
      if (leads(slot)) return answer(from, h, slot, Status::busy);
      ask_for_commit(bucket);
      return answer(from, h, slot, Status::pending);
    }
    const Location at = table_.find(bucket, first_way_of(hash), h.key);
    if (at != Table::kNowhere) return answer(from, h, slot, Status::ok, table_.way(at).version, table_.value(at));
  }
  answer(from, h, slot, Status::no_such_key);
}

void Node::on_lane(const Endpoint& from, const Message& m) {
  const Kv& h = m.header;
  if (const Status form = form_of(m); form != Status::ok) return tell(from, h, form);
  if (h.client >= lanes_.count() || h.candidate != 0) return tell(from, h, Status::bad_lane);
  if (!serving()) return tell(from, h, Status::not_serving);
  const LaneRecord& r = lanes_[h.client];
  if (r.settled()) return tell(from, h, r.status, r.version, r.request);
  // The request may still be rolled back. A leftover may also have been committed in an earlier epoch in which the
  // asking node was not a member.
  const bool leftover = r.leftover && !faults_.has(NodeFault::tell_leftovers);
  tell(from, h, leftover ? Status::busy : Status::ok, 0, r.request - 1);
}

void Node::on_ping(const Endpoint& from, const Message& m) {
  const Status form = form_of(m);
  tell(from, m.header, form != Status::ok ? form : serving() ? Status::ok : Status::not_serving);
}

void Node::tell(const Endpoint& to, const Kv& request, Status status, std::uint32_t version, std::uint64_t key) {
  Kv h = request;
  h.kind |= kReplyBit;
  h.node = config_.node;
  h.detail = static_cast<std::uint8_t>(status);
  h.epoch = epoch16_;
  h.version = version;
  h.key = static_cast<std::uint32_t>(key);
  count_answer(status);
  send(to, h);
}

void Node::answer(const Endpoint& to, const Kv& request, unsigned slot, Status status, std::uint32_t version,
                  ByteView value) {
  count_answer(status);
  reply(to, request, slot, status, version, value);
}

void Node::count_answer(Status status) noexcept {
  ++(status < Status::not_leader ? counters_.answered : counters_.refused);
}

void Node::reply(const Endpoint& to, const Kv& request, unsigned slot, Status status, std::uint32_t version,
                 ByteView value) {
  ++counters_.replies[static_cast<std::uint8_t>(status)];
  send(to,
       {.kind = static_cast<std::uint8_t>(request.kind | kReplyBit),
        .node = config_.leaders[slot],
        .detail = static_cast<std::uint8_t>(status),
        .candidate = request.candidate,
        .epoch = epoch16_,
        .client = request.client,
        .request = request.request,
        .version = version,
        .key = request.key},
       value);
}

void Node::send(const Endpoint& to, const Kv& header, ByteView value) {
  ++counters_.sent[header.kind % counters_.sent.size()];
  output_.send(to, {.header = header, .value = value});
}

void Node::send_node(unsigned node, const Kv& header, ByteView value) {
  if (has(config_.members, node)) send(config_.peers[node % kMaxNodes], header, value);
}

Kv Node::header(Kind kind) const noexcept {
  return {.kind = static_cast<std::uint8_t>(kind), .node = config_.node, .epoch = epoch16_};
}

Cycles Node::tick(Cycles now) {
  now_ = now;
  if (fault_ || epoch16_ == 0) return kNever;
  if (now < next_due_) return next_due_;
  next_due_ = kNever;
  retry_window();
  fetch_leftovers();
  repeat_enter();
  pump_buckets();
  pump_lanes();
  after_leftovers();
  return next_due_;
}

void Node::prefetch(const Kv& request) const noexcept {
  if (!table_.allocated()) return;
  const std::uint32_t hash = hash_of(request.key);
  table_.prefetch(bucket_of(hash, table_.bits()), first_way_of(hash));
}

void Node::count_dropped(Drop why) noexcept {
  ++counters_.frames_kv;
  switch (why) {
    case Drop::kChecksum:
      return drop_as(counters_.dropped_checksum);
    case Drop::kLength:
      return drop_as(counters_.dropped_length);
    case Drop::kSource:
      return drop_as(counters_.dropped_source);
  }
}

void Node::drop_as(std::uint32_t& reason) noexcept {
  ++counters_.dropped;
  ++reason;
}

void Node::fail() noexcept {
  fault_ = true;
  lease_ = 0;
}

}  // namespace wherry::kv
