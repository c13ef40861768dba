// SPDX-License-Identifier: Apache-2.0
// How a lane starts: docs/kv-protocol.md, section 7, and the head of core.hpp.
#include <algorithm>

#include "kv/client/core.hpp"

namespace wherry::kv {
namespace {

/// What a client before this one may have sent since the newest record that can be found.
constexpr std::uint32_t kLaneGap = 65536;
constexpr Cycles kSlowest = 1000 * ClientCore::kMillisecond;

}  // namespace

/// kNone: none is free. Bad ones are dropped for good.
ClientCore::Index ClientCore::take_lane() noexcept {
  while (!free_lanes_.empty()) {
    const Index lane = free_lanes_.back();
    free_lanes_.pop_back();
    if (lanes_[lane].state != LaneState::bad) return lane;
  }
  return kNone;
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
  if (lanes_[lane].state == LaneState::starting && !try_ready(lane, now)) ask_all(lane, now);
}

bool ClientCore::try_ready(Index lane, Cycles now) {
  Lane& l = lanes_[lane];
  if (l.known == 0) return false;
  if ((l.known | l.refused) != present_ && now < l.grace_end) return false;
  l.state = LaneState::ready;
  ++ready_lanes_;
  timers_.clear(options_.operations + lane);
  l.next += kLaneGap;
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
  const auto status =
      static_cast<Status>(ReplyDetail::unpack(std::array{static_cast<std::byte>(header.detail)}).status);
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
  if (l.state == LaneState::starting) {
    if (l.known == 0 || newer(record, l.next)) l.next = record;
    l.known |= bit;
    try_ready(lane, now);
  } else if ((l.known & bit) == 0) {
    l.known |= bit;
    on_late_record(lane, from, record, now);
  }
}

/// A node answers that was silent when the lane started.
void ClientCore::on_late_record(Index lane, std::uint8_t from, std::uint32_t record, Cycles now) {
  Lane& l = lanes_[lane];
  if (l.op == kNone) {
    if (!newer(l.next, record)) l.next = record + kLaneGap;
    return;
  }
  Op& op = ops_[l.op];
  if (!newer(op.request, record)) {
    l.next = record + kLaneGap;
    if (op.sent) {  // under this number: it cannot get another
      finish(l.op, Outcome::kUnknown, 0, {});
      return;
    }
    op.request = l.next++;
  }
  if (op.asking && op.node == from && op.state == State::waiting) send_try(l.op, from, now);
}

}  // namespace wherry::kv
