// SPDX-License-Identifier: Apache-2.0
#include "kv/client/core.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace wherry::kv {
namespace {

constexpr std::uint8_t kMaxHops = 4;

constexpr ClientCore::Options mended(ClientCore::Options o) noexcept {
  o.operations = std::bit_ceil(std::clamp(o.operations, 1U, 65536U));
  o.lanes = std::min(o.lanes, kMaxLanes - std::min<std::uint32_t>(o.first_lane, kMaxLanes));
  o.first_timeout = std::max<Cycles>(o.first_timeout, 1);
  o.timeout_cap = std::max(o.timeout_cap, o.first_timeout);
  o.timeout_factor = std::max(o.timeout_factor, 1U);
  o.first_pause = std::max<Cycles>(o.first_pause, 1);
  o.pause_cap = std::max(o.pause_cap, o.first_pause);
  o.probe_every = std::max<Cycles>(o.probe_every, 1);
  return o;
}

}  // namespace

ClientCore::ClientCore(const Options& options, Output& output, Completions& completions)
    : options_(mended(options)),
      output_(output),
      completions_(completions),
      index_bits_(static_cast<unsigned>(std::countr_zero(options_.operations))),
      ops_(options_.operations),
      free_ops_(options_.operations),
      free_count_(options_.operations),
      lanes_(options_.lanes),
      free_lanes_(options_.lanes),
      values_(std::make_unique<std::byte[]>(std::size_t{options_.lanes} * kMaxValueBytes)),
      timers_(std::size_t{options_.operations} + options_.lanes + 1),
      random_(options.seed * kGoldenGamma | 1) {
  for (Index i = 0; i < options_.operations; ++i) free_ops_[i] = i;
  reset_lanes();
  has_lanes_ = !options_.granted || options_.lanes == 0;
  for (std::uint8_t n = 0; n < kMaxNodes; ++n)
    if (present(n)) present_ = static_cast<std::uint8_t>(present_ | 1U << n);
  leaders_.fill(kNobody);
  probe_wait_ = options_.first_timeout;
  // After a restart at the same address, a client must not take answers to its predecessor's requests as its own.
  const auto generation = static_cast<std::uint32_t>(random_() >> 32);
  for (Op& op : ops_) op.generation = generation;
  probe_tag_ = static_cast<std::uint32_t>(random_() >> 32);
  lane_tag_ = static_cast<std::uint32_t>(random_() >> 32);
}

void ClientCore::start(Cycles now) {
  constexpr Index kAtOnce = 64;  // more would be a burst that sockets cannot hold
  for (Index i = 0; has_lanes_ && i < std::min(options_.lanes, kAtOnce); ++i)
    if (lanes_[i].state == LaneState::cold) start_lane(i, now);
  if (!probing_) probe(now);
}

bool ClientCore::submit(const Request& request, Cycles now) {
  if (request.value.size() > kMaxValueBytes) {
    completions_.on_complete({.tag = request.tag, .outcome = Outcome::kTooLong});
    return true;
  }
  if (free_count_ == 0) return false;
  const bool read = request.kind == Kind::read;
  Index lane = kNone;
  if (!read) {
    if (!has_lanes_) return false;
    lane = take_lane();
    if (lane == kNone) {
      if (bad_lanes_ + taken_lanes_ < options_.lanes) return false;
      completions_.on_complete(
          {.tag = request.tag, .outcome = taken_lanes_ > 0 ? Outcome::kLaneTaken : Outcome::kBadLane});
      return true;
    }
  }
  const Index i = free_ops_[free_head_];
  free_head_ = (free_head_ + 1) & (options_.operations - 1);
  --free_count_;
  active_ = true;
  if (!probing_) probe(now);

  Op& op = ops_[i];
  op = {.key = request.key,
        .tag = request.tag,
        .generation = op.generation,
        .version = request.version,
        .lane = lane,
        .kind = request.kind};
  op.deadline = request.deadline != 0 ? request.deadline : now + options_.deadline;
  op.timeout = options_.first_timeout;
  op.pause = options_.first_pause;
  if (read) {
    op.request = ++op.generation << index_bits_ | i;
    send_try(i, reader_for(op.key), now);
    return true;
  }
  op.length = static_cast<std::uint32_t>(request.value.size());
  if (op.length != 0) std::memcpy(value_of(lane).data(), request.value.data(), op.length);
  Lane& l = lanes_[lane];
  l.op = i;
  if (l.state == LaneState::ready) {
    // No keeper grants these lanes, so in the meantime another client may have begun to use this one.
    if (!options_.granted && !options_.trust_lanes && now > l.used + options_.lane_recheck) l.fresh = 0;
    op.request = l.next++;
    send_try(i, leader_of(op.key), now);
    return true;
  }
  op.state = State::lane_wanted;
  arm(i, op.deadline);
  if (l.state == LaneState::cold) start_lane(lane, now);
  return true;
}

void ClientCore::finish(Index i, Outcome outcome, std::uint32_t version, ByteView value) {
  Op& op = ops_[i];
  if (op.lane != kNone) {
    Lane& lane = lanes_[op.lane];
    lane.op = kNone;
    const bool usable = lane.state != LaneState::bad && lane.state != LaneState::taken;
    if (usable) free_lanes_.push_back(op.lane);  // has room: that many were handed out
  }
  op.state = State::idle;
  op.lane = kNone;
  timers_.clear(i);
  free_ops_[(free_head_ + free_count_) & (options_.operations - 1)] = i;
  ++free_count_;
  if (outcome == Outcome::kUnknown) ++statistics_.unknown;
  completions_.on_complete({.tag = op.tag, .outcome = outcome, .version = version, .value = value});
}

void ClientCore::expire(Index i) {
  finish(i, ops_[i].may_take_effect() ? Outcome::kUnknown : Outcome::kNoAnswer, 0, {});
}

std::span<std::byte, kMaxValueBytes> ClientCore::value_of(Index lane) noexcept {
  return std::span<std::byte, kMaxValueBytes>(values_.get() + std::size_t{lane} * kMaxValueBytes, kMaxValueBytes);
}

void ClientCore::send(std::uint8_t node, const Kv& header, ByteView value) {
  if (!present(node)) return;
  ++statistics_.sent;
  output_.send(options_.nodes[node], {header, value});
}

void ClientCore::arm(Index i, Cycles at) noexcept { timers_.set(i, std::min(at, ops_[i].deadline)); }

void ClientCore::send_try(Index i, std::uint8_t node, Cycles now) {
  Op& op = ops_[i];
  if (op.outdated) {
    if (op.earlier || epoch_ != op.epoch) return finish(i, Outcome::kUnknown, 0, {});
    node = that_may_settle(op, node);
  }
  op.node = node;
  op.state = State::waiting;
  // Add a random time, so that clients disturbed by the same event do not all repeat at once.
  arm(i, now + op.timeout + (op.timeouts == 0 ? 0 : random_() % (op.timeout / 4 + 1)));
  Kv header{.kind = static_cast<std::uint8_t>(op.kind), .epoch = epoch_, .request = op.request, .key = op.key};
  if (op.lane == kNone) {
    header.client = options_.first_lane;
    op.sent = true;
    send(node, header);
    return;
  }
  Lane& lane = lanes_[op.lane];
  lane.used = now;
  const unsigned seen = options_.granted || options_.trust_lanes ? lane.known : lane.known & lane.fresh;
  if (present(node) && (seen >> node & 1U) == 0) {
    op.asking = true;
    ask_lane(op.lane, node);
    return;
  }
  op.asking = false;
  op.sent = true;
  if (op.epoch != epoch_) op.earlier = op.may_take_effect();
  if (op.epoch != epoch_) op.perhaps = 0;
  op.epoch = epoch_;
  op.perhaps = static_cast<std::uint8_t>(op.perhaps | 1U << node);
  header.client = static_cast<std::uint16_t>(options_.first_lane + op.lane);
  header.version = op.version;
  send(node, header, ByteView(value_of(op.lane)).first(op.length));
}

/// A node with a try of an outdated write: `wanted`, or else the leader, or else the one after the node asked last.
std::uint8_t ClientCore::that_may_settle(const Op& op, std::uint8_t wanted) const noexcept {
  const auto has_a_try = [&op](std::uint8_t n) { return n < kMaxNodes && (op.perhaps >> n & 1U) != 0; };
  if (has_a_try(wanted)) return wanted;
  if (const std::uint8_t leader = leader_of(op.key); has_a_try(leader)) return leader;
  const auto behind = static_cast<std::uint8_t>(op.node + 1);
  return static_cast<std::uint8_t>((std::countr_zero(std::rotr(op.perhaps, behind)) + behind) % kMaxNodes);
}

/// Gives a write the lane's next number. None of its tries may be able to take effect.
void ClientCore::renumber(Op& op) noexcept {
  op.request = lanes_[op.lane].next++;
  op.sent = op.outdated = false;
}

/// Sends at once. But if two nodes name each other as leader, waits, so that they do not keep the client busy.
void ClientCore::send_soon(Index i, std::uint8_t node, Cycles now) {
  Op& op = ops_[i];
  if (op.hops >= kMaxHops) {
    op.node = node;
    send_later(i, now);
    return;
  }
  ++op.hops;
  ++statistics_.redirects;
  send_try(i, node, now);
}

void ClientCore::send_later(Index i, Cycles now) {
  Op& op = ops_[i];
  op.state = State::pausing;
  op.hops = 0;
  ++statistics_.pauses;
  arm(i, now + op.pause / 2 + random_() % (op.pause / 2 + 1) + 1);
  op.pause = std::min(op.pause * 2, options_.pause_cap);
}

void ClientCore::on_timer(Index i, Cycles now) {
  Op& op = ops_[i];
  if (now >= op.deadline) {
    expire(i);
    return;
  }
  const bool read = op.lane == kNone;
  if (op.state == State::pausing) {
    send_try(i, read ? op.node : leader_of(op.key), now);
    return;
  }
  ++statistics_.timeouts;
  if (op.node < kMaxNodes && nodes_[op.node].silent < 255) ++nodes_[op.node].silent;
  if (op.node == nearest_) nearest_ = kNobody;
  op.hops = 0;
  op.timeout = std::min(op.timeout * options_.timeout_factor, options_.timeout_cap);
  if (op.timeouts < 255) ++op.timeouts;
  // A node drops requests that are older than its record. So without an answer, another client may use this lane.
  if (!read && op.sent && present(op.node)) ask_lane(op.lane, op.node);
  // The others know whether a new epoch has begun.
  if (op.outdated && present(after(op.node))) ask_lane(op.lane, after(op.node));
  // A read may also go to another node. For a write, either the frame is lost or the leader is dead; another node may
  // know a new leader.
  const std::uint8_t leader = leader_of(op.key);
  const bool same = !read && op.timeouts % 2 == 1 && (usable(leader) || op.node != leader);
  send_try(i, same ? leader : after(op.node), now);
}

Cycles ClientCore::tick(Cycles now) {
  while (timers_.next() <= now) {
    const std::uint32_t thing = timers_.first();
    timers_.clear(thing);
    if (thing < options_.operations) {
      on_timer(thing, now);
    } else if (thing < options_.operations + options_.lanes) {
      on_lane_timer(thing - options_.operations, now);
    } else {
      probing_ = false;
      if (active_ || !heard_) probe(now);
    }
  }
  return timers_.next();
}

}  // namespace wherry::kv
