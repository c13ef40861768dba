// SPDX-License-Identifier: Apache-2.0
// A keeper's way to its first configuration, and the commands of an operator.
//
// A stored configuration is the present one. If there is none, the keeper asks the nodes. There are three cases:
//  - every configured node says that it is in no epoch: an empty cluster starts;
//  - every configured node, under the same boot number, is a member of the highest configuration that any of them has
//    entered: then no node can have entered a higher one, because all members are here and remember;
//  - otherwise a node that is missing or has restarted may have served alone and taken writes since. Continuing without
//    that node could lose these writes, so an operator must order it (`resume`), or order that the store becomes empty
//    (`start_over`).
#include <fmt/core.h>

#include <algorithm>

#include "kv/keeper/keeper.hpp"

namespace wherry::kv {
namespace {

/// How many epochs to skip without a stored configuration: they may have been published but not reported.
constexpr std::uint64_t kLeap = 4096;

std::uint64_t leap(std::uint64_t epoch) { return next_epoch(epoch + kLeap); }

}  // namespace

void Keeper::adopt(const Configuration& configuration, Cycles now) {
  current_ = configuration;
  highest_ = std::max(highest_, configuration.epoch);
  settled_ = false;
  phase_ = Phase::running;
  // An earlier keeper may have granted leases until this one started or was elected. Leases that this keeper itself has
  // granted also count.
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    Node& n = nodes_[node];
    if (options_.fault != KeeperFault::forget_leases) n.lease_end = std::max(n.lease_end, first_ + options_.lease);
    n.misses = 0;
    n.last_heard = std::max(n.last_heard, now);
    if (n.connected) output_.send(node, Configure{current_});
  }
}

std::string Keeper::missing(Cycles now) const {
  const Configuration* highest = nullptr;
  for (const Node& n : nodes_) {
    if (n.claim && (highest == nullptr || n.claim->epoch > highest->epoch)) highest = &*n.claim;
  }
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!has(configured_, node)) continue;
    const Node& n = nodes_[node];
    if (!n.connected) return fmt::format("node {} has not reported", node);
    if (highest == nullptr && !n.report.ready) return fmt::format("node {} is still being emptied", node);
    if (highest != nullptr && (!has(highest->members, node) || highest->boots[node] != n.boot)) {
      return fmt::format(
          "node {} was not, as it is now, a member of epoch {}, the highest that was reported: it may have served "
          "alone since. The operator may go on with that epoch (resume) or with an empty store (start_over)",
          node, highest->epoch);
    }
  }
  if (highest != nullptr && now < first_ + options_.lease) return "leases of the keeper before may still run";
  return {};
}

void Keeper::recover(Cycles now) {
  asked_at_ = now;
  if (proposed_ || !missing(now).empty() || configured_ == 0) return;
  const Node* highest = nullptr;
  for (const Node& n : nodes_) {
    if (n.claim && (highest == nullptr || n.claim->epoch > highest->claim->epoch)) highest = &n;
  }
  if (highest != nullptr) {
    highest_ = leap(highest_);
    adopt(*highest->claim, now);
    renew_ = true;
    return;
  }
  Configuration next;
  next.epoch = next_epoch(std::max(highest_, options_.first_epoch - 1));
  next.members = next.serving = configured_;
  next.bucket_bits = options_.bucket_bits;
  next.leaders = first_leaders(configured_);
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!has(configured_, node)) continue;
    next.peers[node] = options_.nodes[node].endpoint;
    next.boots[node] = nodes_[node].boot;
  }
  phase_ = Phase::running;
  // An empty cluster in its first epoch: no earlier keeper has granted anything.
  if (highest_ == 0) lanes_.begin(now);
  propose(next);
}

Answer Keeper::start_over(Cycles now) {
  if (phase_ != Phase::lost && phase_ != Phase::asking)
    return {false, "there are nodes that have the data, or may come back with it; remove them to start over"};
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    const bool old =
        phase_ == Phase::asking ? now < first_ + options_.lease : has(current_.serving, node) && !over(node, now);
    if (old) return {false, "leases of nodes that served still run; ask again when they are over"};
  }
  NodeMask members = 0;
  Configuration next;
  next.boots = current_.boots;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    const Node& n = nodes_[node];
    const bool empty = n.connected && n.admitted && n.boot != 0 && n.entered == 0 && n.report.ready && !n.report.fault;
    if (!has(configured_, node) || !empty || n.boot == current_.boots[node]) continue;
    members |= mask_of(node);
    next.boots[node] = n.boot;
    next.peers[node] = options_.nodes[node].endpoint;
  }
  if (members == 0) return {false, "no node is connected and empty; start the nodes first"};
  next.epoch = leap(std::max({highest_, current_.epoch, options_.first_epoch}));
  next.members = next.serving = members;
  next.bucket_bits = options_.bucket_bits;
  next.leaders = first_leaders(members);
  phase_ = Phase::running;
  propose(next);
  return {true, fmt::format("an empty store starts in epoch {}", next.epoch)};
}

Answer Keeper::move(const Command& c) {
  if (phase_ != Phase::running || !has(current_.serving, c.node))
    return {false, fmt::format("node {} does not serve", c.node)};
  if (!leaders_) leaders_ = current_.leaders;
  for (std::uint32_t slot = c.first_slot; slot <= c.last_slot && slot < kSlots; ++slot)
    (*leaders_)[slot] = static_cast<std::uint8_t>(c.node);
  return {true, fmt::format("node {} shall lead slots {} to {}", c.node, c.first_slot, c.last_slot)};
}

Answer Keeper::command(const Command& c, Cycles now) {
  if (c.op == Op::status) return {true, status(now)};
  if (phase_ == Phase::deposed) return {false, "another keeper is elected; ask that one"};
  const bool about_node = c.op == Op::remove || c.op == Op::admit || c.op == Op::move;
  if (about_node && !has(configured_, c.node)) return {false, fmt::format("there is no node {}", c.node)};
  Answer answer{true, ""};
  switch (c.op) {
    case Op::status:
      break;
    case Op::remove:
      if (current_.serving == mask_of(c.node)) return {false, fmt::format("node {} alone has the data", c.node)};
      nodes_[c.node].admitted = false;
      answer.text = fmt::format("node {} is removed, and not admitted again until you say so", c.node);
      break;
    case Op::admit:
      nodes_[c.node].admitted = true;
      answer.text = fmt::format("node {} is admitted when it reports", c.node);
      break;
    case Op::move:
      answer = move(c);
      break;
    case Op::stop:
      if (phase_ != Phase::running) return {false, fmt::format("the store is not running but {}", name_of(phase_))};
      phase_ = Phase::halted;
      for (std::uint32_t node = 0; node < kMaxNodes; ++node) stop(node);
      answer.text = "no lease is granted any more; `status` tells when all nodes have confirmed";
      break;
    case Op::resume:
      if (phase_ == Phase::asking) {
        const Configuration* highest = nullptr;
        for (const Node& n : nodes_) {
          if (n.claim && (highest == nullptr || n.claim->epoch > highest->epoch)) highest = &*n.claim;
        }
        if (highest == nullptr || now < first_ + options_.lease)
          return {false, "no node reported an epoch, or leases still run; ask again, or start over"};
        highest_ = leap(std::max(highest_, highest->epoch));
        adopt(Configuration(*highest), now);
        renew_ = true;
      } else if (phase_ == Phase::halted) {
        phase_ = Phase::running;
        for (std::uint32_t node = 0; node < kMaxNodes; ++node) resume(node);
      } else {
        return {false, fmt::format("the store is not stopped but {}", name_of(phase_))};
      }
      answer.text = "going on";
      break;
    case Op::start_over:
      answer = start_over(now);
      break;
  }
  decide(now);
  return answer;
}

}  // namespace wherry::kv
