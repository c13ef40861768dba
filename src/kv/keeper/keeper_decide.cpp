// SPDX-License-Identifier: Apache-2.0
// The four rules of docs/design/kv-protocol.md, section 9: which configuration is next, and when.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "kv/keeper/keeper.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kFailovers = 64;

template <typename Predicate>
NodeMask select(NodeMask among, Predicate&& predicate) {
  NodeMask mask = 0;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(among, node) && predicate(node)) mask |= mask_of(node);
  }
  return mask;
}

}  // namespace

NodeMask Keeper::failed() const noexcept {
  return select(current_.members, [&](std::uint32_t node) {
    const Node& n = nodes_[node];
    // Before its first message to this keeper, nothing is known about a node except its silence.
    return n.boot != 0 && (n.boot != current_.boots[node] || n.report.fault);
  });
}

NodeMask Keeper::silent() const noexcept {
  return select(configured_, [&](std::uint32_t node) { return nodes_[node].misses >= options_.misses; });
}

NodeMask Keeper::unwanted() const noexcept {
  return silent() | select(configured_, [&](std::uint32_t node) { return !nodes_[node].admitted; });
}

/// Every member must acknowledge, so one broken path between two members stops writes. Leaders at both ends report it.
/// This function removes the node with most broken paths. Only one node is removed at a time, because the others may
/// then reach each other.
NodeMask Keeper::cut_off() const noexcept {
  const NodeMask gone = silent();
  std::array<NodeMask, kMaxNodes> broken{};
  std::array<std::uint32_t, kMaxNodes> accused{};
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!has(current_.members, node) || has(gone, node) || nodes_[node].silences < options_.misses) continue;
    for (std::uint32_t other = 0; other < kMaxNodes; ++other) {
      if (!has(nodes_[node].report.silent, other) || !has(without(current_.members, gone), other)) continue;
      broken[node] |= mask_of(other);
      broken[other] |= mask_of(node);
      ++accused[other];
    }
  }
  std::uint32_t worst = kMaxNodes;
  const auto weight = [&](std::uint32_t node) {
    return std::tuple(std::popcount(broken[node]), !has(current_.serving, node), accused[node], node);
  };
  for (std::uint32_t node = 0; node < kMaxNodes; ++node)
    if (broken[node] != 0 && (worst == kMaxNodes || weight(node) > weight(worst))) worst = node;
  return worst == kMaxNodes ? NodeMask{0} : mask_of(worst);
}

/// A node that returns before the path is repaired is removed again, and each removal stops writes for a while. So it
/// must wait, longer each time.
void Keeper::bar(Cycles now) {
  const Cycles first = 10 * options_.misses * options_.ping_interval;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!has(without(cut_off(), proposed_->members), node)) continue;
    Node& n = nodes_[node];
    n.barred_for = std::clamp(2 * n.barred_for, first, 32 * first);
    n.barred_until = now + n.barred_for;
  }
}

NodeMask Keeper::candidates(Cycles now) const noexcept {
  return select(without(configured_, current_.members), [&](std::uint32_t node) {
    const Node& n = nodes_[node];
    const bool spent = n.boot == current_.boots[node];
    return n.connected && n.admitted && now >= n.barred_until && n.boot != 0 && !spent && n.entered == 0 &&
           n.report.ready && !n.report.fault && n.misses < options_.misses;
  });
}

bool Keeper::may_serve(std::uint32_t node) const noexcept {
  if (options_.fault == KeeperFault::serve_incomplete) return same_boot(node);
  return same_boot(node) && nodes_[node].report.complete;
}

bool Keeper::over(std::uint32_t node, Cycles now) const noexcept {
  const Node& n = nodes_[node];
  if (options_.fault == KeeperFault::ignore_leases) return true;
  // Either the boot that served reports that it stopped, or the node's next boot reports that it ended.
  return n.stopped || (n.ended != 0 && n.ended == current_.boots[node]) || now >= n.lease_end;
}

/// The next configuration if leases did not matter; `current_` if nothing should or can change.
Configuration Keeper::wanted(Cycles now) {
  Configuration next = current_;
  const NodeMask failures = failed();
  const NodeMask silence = unwanted() | cut_off();
  const NodeMask left = without(current_.serving, failures);
  if (left == 0) {
    phase_ = Phase::lost;
    return next;
  }
  // If all are silent, or removed by the operator, they stay members, because they have the data.
  const bool heard = without(left, silence) != 0;
  next.serving = heard ? without(left, silence) : left;
  next.members = without(current_.members, failures | without(silence, next.serving));
  if (heard) {
    next.members |= candidates(now);
    next.serving |= select(without(next.members, next.serving), [&](std::uint32_t node) { return may_serve(node); });
  }
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(without(next.members, current_.members), node)) next.boots[node] = nodes_[node].boot;
    if (options_.nodes[node].configured) next.peers[node] = options_.nodes[node].endpoint;
  }
  if (leaders_) {
    const bool valid = std::all_of(leaders_->begin(), leaders_->end(), [&](auto l) { return has(next.serving, l); });
    if (valid) next.leaders = *leaders_;
    leaders_.reset();
  }
  // If the serving nodes change, slots are spread evenly again. Otherwise the operator's assignment of slots
  // stays.
  if (next.serving != current_.serving) spread_leaders(next.leaders, next.serving);
  if (options_.fault == KeeperFault::leader_is_member && next.members != next.serving)
    spread_leaders(next.leaders, next.members);
  return next;
}

void Keeper::decide(Cycles now) {
  wake_ = ~Cycles{0};
  if (phase_ == Phase::asking) recover(now);
  if (phase_ != Phase::running || proposed_ || now >= mandate_) return;
  const auto moves = leaders_;
  Configuration next = wanted(now);
  if (phase_ != Phase::running) return;
  const NodeMask leaving = without(current_.serving, next.serving);
  bool ready = true;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(leaving, node) && !over(node, now)) {
      stop(node);  // sooner than the lease, if it hears
      wake_ = std::min(wake_, nodes_[node].lease_end);
      ready = false;
    } else if (!has(leaving, node)) {
      resume(node);
    }
  }
  if (!ready) {
    leaders_ = moves;
    return;
  }
  if (next == current_ && !renew_) return;
  renew_ = false;
  next.epoch = next_epoch(std::max(current_.epoch, highest_));
  if (options_.fault == KeeperFault::repeat_epoch && current_.epoch != 0) next.epoch = current_.epoch;
  propose(next);
}

void Keeper::propose(const Configuration& next) {
  highest_ = std::max(highest_, next.epoch);
  proposed_ = next;
  output_.store(*proposed_);
}

void Keeper::stored(bool kept, Cycles now) {
  if (!proposed_ || phase_ == Phase::deposed) return;
  if (!kept) {
    phase_ = Phase::deposed;
    return;
  }
  publish(now);
  decide(now);
}

void Keeper::publish(Cycles now) {
  bar(now);
  const NodeMask removed = without(current_.serving, proposed_->serving);
  if (removed != 0) {
    Failover f;
    f.epoch = proposed_->epoch;
    f.removed = removed;
    f.published = now;
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (has(removed, node)) f.last_sign = std::max(f.last_sign, nodes_[node].last_heard);
    }
    if (failovers_.size() == kFailovers) failovers_.erase(failovers_.begin());
    failovers_.push_back(f);
  }
  current_ = *std::exchange(proposed_, std::nullopt);
  settled_ = false;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    Node& n = nodes_[node];
    n.silences = 0;  // of the epoch before
    if (has(current_.serving, node)) n.barred_for = 0;
    n.stop = has(current_.serving, node) ? n.stop : 0;
    n.stopped = n.stopped && n.stop != 0;
    // Also sent to a node that was left out, because it must know this.
    if (n.connected) output_.send(node, Configure{current_});
  }
}

}  // namespace wherry::kv
