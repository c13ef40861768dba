// SPDX-License-Identifier: Apache-2.0
// How a lane starts: see docs/design/kv-protocol.md, section 7, and the first lines of core.hpp.
#include <algorithm>

#include "kv/client/core.hpp"
#include "kv/serial.hpp"

namespace wherry::kv {
namespace {

/// The most requests that an earlier client may have sent after the newest record that can be found.
constexpr std::uint32_t kLaneGap = 65536;
constexpr Cycles kSlowest = 1000 * kMillisecond;
constexpr std::uint8_t kProtests = 3;  ///< marks in a lane that somebody else uses: one may be lost

}  // namespace

/// Takes a free lane; kNone if there is none. Removes bad lanes from the list.
ClientCore::Index ClientCore::take_lane() noexcept {
  while (!free_lanes_.empty()) {
    const Index lane = free_lanes_.back();
    free_lanes_.pop_back();
    if (lanes_[lane].state != LaneState::bad && lanes_[lane].state != LaneState::taken) return lane;
  }
  return kNone;
}

/// The number at which a lane continues if other clients may have used it up to this record.
std::uint32_t ClientCore::beyond(std::uint32_t record) noexcept {
  if (options_.lane_spread == 0 || options_.trust_lanes) return record + kLaneGap;
  return record + kLaneGap + static_cast<std::uint32_t>(random_() % options_.lane_spread);
}

void ClientCore::reset_lanes() {
  free_lanes_.resize(options_.lanes);
  for (Index i = 0; i < options_.lanes; ++i) {
    free_lanes_[i] = options_.lanes - 1 - i;
    timers_.clear(options_.operations + i);
    lanes_[i] = {};
  }
  ready_lanes_ = bad_lanes_ = taken_lanes_ = 0;
  disputed_ = false;
}

void ClientCore::give_lanes(std::uint16_t first_lane, Cycles now) {
  reset_lanes();
  options_.first_lane = first_lane;
  has_lanes_ = true;
  start(now);
}

void ClientCore::lose_lanes() {
  has_lanes_ = false;
  for (Index i = 0; i < options_.lanes; ++i)
    if (lanes_[i].op != kNone) expire(lanes_[i].op);
  reset_lanes();
}

void ClientCore::start_lane(Index lane, Cycles now) {
  Lane& l = lanes_[lane];
  l.state = LaneState::starting;
  l.tag = ++lane_tag_;
  l.timeout = options_.first_timeout;
  l.grace_end = now + options_.lane_grace;
  ask_all(lane, now);
}

void ClientCore::ask_lane(Index lane, std::uint8_t node) {
  send(node, {.kind = static_cast<std::uint8_t>(Kind::lane),
              .epoch = epoch_,
              .client = static_cast<std::uint16_t>(options_.first_lane + lane),
              .request = lanes_[lane].tag});
}

void ClientCore::ask_all(Index lane, Cycles now) {
  Lane& l = lanes_[lane];
  for (std::uint8_t n = 0; n < kMaxNodes; ++n)
    if (present(n) && (l.known >> n & 1U) == 0) ask_lane(lane, n);
  timers_.set(options_.operations + lane, now + l.timeout);
  l.timeout = std::min(l.timeout * options_.timeout_factor, kSlowest);
}

void ClientCore::on_lane_timer(Index lane, Cycles now) {
  if (lanes_[lane].state == LaneState::taken) return send_protest(lane, now);
  if (lanes_[lane].state == LaneState::starting && !try_ready(lane, now)) ask_all(lane, now);
}

bool ClientCore::try_ready(Index lane, Cycles now) {
  Lane& l = lanes_[lane];
  if (l.known == 0) return false;
  if ((l.known | l.refused) != present_ && now < l.grace_end) return false;
  l.state = LaneState::ready;
  ++ready_lanes_;
  timers_.clear(options_.operations + lane);
  l.next = beyond(l.next);
  l.fresh = l.known;
  l.used = now;
  if (l.op != kNone) {
    ops_[l.op].request = l.next++;
    send_try(l.op, leader_of(ops_[l.op].key), now);
  }
  return true;
}

void ClientCore::on_lane_record(std::uint8_t from, const Kv& header, Cycles now) {
  const std::uint32_t lane = static_cast<std::uint16_t>(header.client - options_.first_lane);
  if (lane >= options_.lanes || lanes_[lane].tag != header.request || header.key >> 32 != 0 ||
      (lanes_[lane].state != LaneState::starting && lanes_[lane].state != LaneState::ready)) {
    ignore();
    return;
  }
  Lane& l = lanes_[lane];
  const auto bit = static_cast<std::uint8_t>(1U << from);
  const Status status = status_of(header);
  const auto record = static_cast<std::uint32_t>(header.key);
  nodes_[from].silent = 0;
  learn_epoch(header.epoch);
  if (status == Status::bad_lane) {
    if (l.state != LaneState::starting) {
      ignore();  // it was a lane for others: this node is configured unlike them
      return;
    }
    l.state = LaneState::bad;
    ++bad_lanes_;
    timers_.clear(options_.operations + lane);
    if (l.op != kNone) finish(l.op, Outcome::kBadLane, 0, {});
    return;
  }
  if (status > Status::bad_lane) {
    if (status != Status::not_serving) return;
    nodes_[from].serving = false;
    if (l.state == LaneState::starting) {
      l.refused |= bit;
      try_ready(lane, now);
    } else if (l.op != kNone && ops_[l.op].asking && ops_[l.op].node == from && ops_[l.op].state == State::waiting) {
      send_soon(l.op, after(from), now);
    }
    return;
  }
  nodes_[from].serving = true;
  heard_ = true;
  // A record that was never written is older than all others. A value alone does not show it: numbers wrap, 0 is valid.
  std::optional<std::uint32_t> written;
  if (record != 0 || header.version != 0 || status != Status::ok) written = record;
  const bool first = (l.known & bit) == 0;
  l.known |= bit;
  l.fresh |= bit;
  if (l.state == LaneState::starting) {
    if (written && (!l.written || newer(*written, l.next))) l.next = *written;
    l.written = l.written || written;
    try_ready(lane, now);
  } else if (first) {
    on_late_record(lane, from, written, now);
  } else {
    on_record_again(lane, from, written, now);
  }
}

/// Handles a record from a node that did not answer when the lane started.
void ClientCore::on_late_record(Index lane, std::uint8_t from, std::optional<std::uint32_t> record, Cycles now) {
  Lane& l = lanes_[lane];
  if (l.op == kNone) {
    if (record && !newer(l.next, *record)) l.next = beyond(*record);
    return;
  }
  Op& op = ops_[l.op];
  const bool own = op.sent && record == op.request;  // this write has already reached the node
  if (record && !own && !newer(op.outdated ? l.next - 1 : op.request, *record)) {
    l.next = beyond(*record);
    op.outdated = op.may_take_effect();
    if (!op.outdated) {
      renumber(op);
    } else if (op.asking || op.state != State::waiting) {
      return send_try(l.op, from, now);
    }
  }
  if (op.asking && op.node == from && op.state == State::waiting) send_try(l.op, from, now);
}

/// Handles a record from a node that has answered before. The record is this client's, or another client used the lane.
void ClientCore::on_record_again(Index lane, std::uint8_t from, std::optional<std::uint32_t> record, Cycles now) {
  Lane& l = lanes_[lane];
  const bool sent = l.op != kNone && ops_[l.op].sent;
  const bool newest = l.op == kNone || ops_[l.op].outdated;
  const std::uint32_t latest = newest ? l.next - 1 : ops_[l.op].request - (sent ? 0 : 1);
  if (record && newer(*record, latest) && !options_.trust_lanes) return take_from_us(lane, *record, now);
  if (l.op == kNone) return;
  const Op& op = ops_[l.op];
  if (op.asking && op.node == from && op.state == State::waiting) send_try(l.op, from, now);
}

void ClientCore::take_from_us(Index lane, std::uint32_t record, Cycles now) {
  Lane& l = lanes_[lane];
  l.state = LaneState::taken;
  l.next = beyond(record);
  l.protests = kProtests;
  ++taken_lanes_;
  ++statistics_.lanes_taken;
  timers_.clear(options_.operations + lane);
  if (l.op != kNone) finish(l.op, Outcome::kLaneTaken, 0, {});
  if (options_.granted)
    disputed_ = true;
  else
    send_protest(lane, now);
}

void ClientCore::protest(Cycles now) {
  disputed_ = false;
  for (Index i = 0; i < options_.lanes; ++i)
    if (lanes_[i].state == LaneState::taken && lanes_[i].protests == kProtests) send_protest(i, now);
}

/// Sends a deletion with the condition "version 0". The deletion never has an effect, but each leader records its
/// number. After that, the other client's writes count as older.
void ClientCore::send_protest(Index lane, Cycles now) {
  Lane& l = lanes_[lane];
  if (l.protests == 0) return;
  --l.protests;
  for (std::uint8_t n = 0; n < kMaxNodes; ++n) {
    if (!present(n)) continue;
    std::uint64_t key = random_();
    for (int tries = 0; tries < 256 && leader_of(key) != n; ++tries) key = random_();
    send(n, {.kind = static_cast<std::uint8_t>(Kind::remove_if),
             .epoch = epoch_,
             .client = static_cast<std::uint16_t>(options_.first_lane + lane),
             .request = l.next,
             .key = key});
  }
  if (l.protests != 0) timers_.set(options_.operations + lane, now + 4 * options_.first_timeout);
}

}  // namespace wherry::kv
