// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/keeper_seat.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace wherry::kv::sim {

KeeperSeat::KeeperSeat(Network& network, KeeperOptions options, Cycles latency, FindMachine machine)
    : network_(network),
      options_(std::move(options)),
      latency_(latency),
      machine_(std::move(machine)),
      lines_(kMaxNodes) {}

void KeeperSeat::start() {
  ++counts_.starts;
  keeper_.emplace(options_, static_cast<KeeperOutput&>(*this), kept_, network_.now());
  next_ = 0;
  give_time(network_.now());
  for (std::uint32_t node = 0; node < kMaxNodes; ++node)
    if (machine_(node) != nullptr) connect(node);
}

void KeeperSeat::kill() {
  keeper_.reset();
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) disconnect(node, false);
}

void KeeperSeat::connect(std::uint32_t node) {
  if (!alive()) return;  // it connects when the keeper starts
  disconnect(node, true);
  lines_[node].id = ++ids_;
  lines_[node].open = true;
  tell(node, Connected{});
}

void KeeperSeat::disconnect(std::uint32_t node, bool keeper_notices) {
  Line& line = lines_[node];
  if (line.id != 0) {
    line.id = 0;
    if (Machine* const machine = machine_(node)) machine->control(Disconnected{});
  }
  if (!alive() || !keeper_notices || !line.open) return;
  line.open = false;
  keeper_->disconnected(node, network_.now());
  give_time(network_.now());
}

Cycles KeeperSeat::arrival(std::uint32_t node) const {
  return std::max(network_.now() + latency_, lines_[node].stalled);
}

void KeeperSeat::tell(std::uint32_t node, const FromControl& event) {
  const std::uint64_t id = lines_[node].id;
  if (id == 0) return;
  network_.call_at(arrival(node), [this, node, id, event](Cycles) {
    Machine* const machine = machine_(node);
    if (lines_[node].id == id && machine != nullptr) machine->control(event);
  });
}

void KeeperSeat::send(std::uint32_t node, const FromKeeper& message) { tell(node, message); }

void KeeperSeat::to_keeper(std::uint32_t node, const ToKeeper& message) {
  const std::uint64_t id = lines_[node].id;
  if (id == 0) return;
  network_.call_at(arrival(node), [this, node, id, message](Cycles now) {
    if (lines_[node].id != id || !alive()) return;
    keeper_->on_message(node, message, now);
    give_time(now);
  });
}

/// Stores a configuration some time before the keeper learns of it. If killed in between, it has told no node.
void KeeperSeat::store(const Configuration& configuration) {
  const std::uint64_t life = counts_.starts;
  network_.call_at(network_.now() + latency_ / 2, [this, life, configuration](Cycles) {
    if (counts_.starts != life || !alive()) return;
    const NodeMask before = kept_ ? kept_->serving : configuration.serving;
    ++counts_.epochs;
    counts_.failovers += without(before, configuration.serving) != 0 ? 1 : 0;
    counts_.returns += static_cast<std::uint64_t>(std::popcount(without(configuration.serving, before)));
    kept_ = configuration;
  });
  network_.call_at(network_.now() + latency_, [this, life](Cycles now) {
    if (counts_.starts != life || !alive()) return;
    keeper_->stored(true, now);
    give_time(now);
  });
}

kv::Answer KeeperSeat::command(const Command& command) {
  kv::Answer answer = keeper_->command(command, network_.now());
  give_time(network_.now());
  return answer;
}

/// Calls the keeper at the times that it requests.
void KeeperSeat::give_time(Cycles now) {
  keeper_->on_time(now);
  const Cycles next = std::max(keeper_->next_time(), now + 1);
  if (next >= next_ && next_ > now) return;
  next_ = next;
  network_.call_at(next, [this, next, life = counts_.starts](Cycles at) {
    if (alive() && counts_.starts == life && next_ == next) give_time(at);
  });
}

}  // namespace wherry::kv::sim
