// SPDX-License-Identifier: Apache-2.0
// Handles replies. Only the parts of a message that answer a request are used.
#include "kv/client/core.hpp"
#include "kv/serial.hpp"

namespace wherry::kv {
namespace {

bool is_final(Status status) noexcept { return status <= Status::bad_lane; }

Outcome outcome_of(Status status) noexcept { return static_cast<Outcome>(status); }
static_assert(static_cast<int>(Outcome::kBadLane) == static_cast<int>(Status::bad_lane) &&
              static_cast<int>(Outcome::kTableFull) == static_cast<int>(Status::table_full));

}  // namespace

void ClientCore::on_message(const Endpoint& from, const Message& message, Cycles now) {
  const std::uint8_t node = node_of(from);
  if (node == kNobody || message.value.size() > kMaxValueBytes) {
    ignore();
    return;
  }
  switch (static_cast<Kind>(message.header.kind)) {
    case Kind::read_done:
      on_read_done(node, message, now);
      break;
    case Kind::write_done:
    case Kind::write_if_done:
    case Kind::remove_done:
    case Kind::remove_if_done:
      on_write_done(node, message, now);
      break;
    case Kind::lane_record:
      on_lane_record(node, message.header, now);
      break;
    case Kind::pong:
      on_pong(node, message.header);
      break;
    default:
      ignore();
  }
}

void ClientCore::learn_epoch(std::uint16_t epoch) noexcept {
  if (epoch_newer(epoch, epoch_)) epoch_ = epoch;
}

void ClientCore::learn(const Kv& header) noexcept {
  learn_epoch(header.epoch);
  if (header.epoch == epoch_ && epoch_ != 0 && present(header.node))
    leaders_[slot_of(hash_of(header.key))] = header.node;
}

void ClientCore::on_pong(std::uint8_t from, const Kv& header) {
  if (header.request != probe_tag_) {
    ignore();
    return;
  }
  nodes_[from].silent = 0;
  nodes_[from].serving = status_of(header) == Status::ok;
  learn_epoch(header.epoch);
  if (!nodes_[from].serving) return;
  heard_ = true;
  if (probe_open_) nearest_ = from;
  probe_open_ = false;
}

void ClientCore::on_read_done(std::uint8_t from, const Message& message, Cycles now) {
  const Kv& header = message.header;
  const Index i = header.request & (options_.operations - 1);
  Op& op = ops_[i];
  if (op.state == State::idle || op.lane != kNone || op.request != header.request || op.key != header.key ||
      header.client != options_.first_lane) {
    ignore();
    return;
  }
  const Status status = status_of(header);
  nodes_[from].silent = 0;
  nodes_[from].serving = status != Status::not_serving;
  learn(header);
  if (is_final(status)) {
    heard_ = true;
    finish(i, outcome_of(status), header.version, status == Status::ok ? message.value : ByteView());
    return;
  }
  if (from != op.node || op.state != State::waiting) {
    ignore();
    return;
  }
  switch (status) {
    case Status::pending:
    case Status::not_leader: {
      const std::uint8_t leader = leader_of(op.key);
      if (leader == from) {
        send_later(i, now);
      } else {
        send_soon(i, leader, now);
      }
      break;
    }
    case Status::not_serving:
      send_soon(i, after(from), now);
      break;
    case Status::busy:
    case Status::stale_epoch:  // of a read: no node says so
      send_later(i, now);
      break;
    default:
      ignore();
  }
}

void ClientCore::on_write_done(std::uint8_t from, const Message& message, Cycles now) {
  const Kv& header = message.header;
  const std::uint32_t lane = static_cast<std::uint16_t>(header.client - options_.first_lane);
  const Index i = lane < options_.lanes ? lanes_[lane].op : kNone;
  if (i == kNone) {
    ignore();
    return;
  }
  Op& op = ops_[i];
  if (!op.sent || op.request != header.request || op.key != header.key ||
      header.kind != (static_cast<std::uint8_t>(op.kind) | kReplyBit)) {
    ignore();
    return;
  }
  const Status status = status_of(header);
  nodes_[from].silent = 0;
  nodes_[from].serving = status != Status::not_serving;
  const bool news = epoch_newer(header.epoch, op.epoch);
  learn(header);
  // Section 7: ignore an old leader's refusal if a later try may have succeeded.
  if (is_final(status) && header.epoch == op.epoch) {
    heard_ = true;
    finish(i, outcome_of(status), header.version, {});
    return;
  }
  if (status == Status::not_leader && header.epoch == op.epoch) {
    op.perhaps = static_cast<std::uint8_t>(op.perhaps & ~(1U << from));
    if (op.outdated && !op.may_take_effect()) {
      renumber(op);
      send_try(i, leader_of(op.key), now);
      return;
    }
  }
  if (from != op.node || op.state != State::waiting || op.asking) {
    ignore();
    return;
  }
  const std::uint8_t leader = leader_of(op.key);
  const bool same_epoch = header.epoch == op.epoch;
  const bool stale = status == Status::stale_epoch;
  if (status == Status::not_serving) {
    send_soon(i, leader != from ? leader : after(from), now);
  } else if (news || (stale && op.epoch != epoch_) || (same_epoch && status == Status::not_leader && leader != from)) {
    // Send to the newer epoch's leader whatever else the reply says, because it answers a try of an older epoch.
    send_soon(i, leader, now);
  } else if ((stale && !same_epoch) ||  // the node has not entered our epoch yet
             (same_epoch && (status == Status::busy || status == Status::not_leader))) {
    send_later(i, now);
  } else {
    ignore();
  }
}

}  // namespace wherry::kv
