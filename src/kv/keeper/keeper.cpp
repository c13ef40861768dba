// SPDX-License-Identifier: Apache-2.0
// Messages, leases and the detection of silence. keeper_decide.cpp decides what follows from them.
#include "kv/keeper/keeper.hpp"

#include <algorithm>
#include <utility>

#include "kv/control/terms.hpp"

namespace wherry::kv {

std::string_view name_of(Keeper::Phase phase) noexcept {
  switch (phase) {
    case Keeper::Phase::asking:
      return "asking";
    case Keeper::Phase::running:
      return "running";
    case Keeper::Phase::lost:
      return "lost";
    case Keeper::Phase::halted:
      return "halted";
    case Keeper::Phase::deposed:
      return "deposed";
  }
  return "?";
}

Keeper::Keeper(KeeperOptions options, KeeperOutput& output, std::optional<Configuration> stored, Cycles now)
    : options_(std::move(options)),
      output_(output),
      lanes_(std::min(options_.static_lanes, options_.lanes), options_.lanes, options_.lane_ttl,
             now + options_.lane_ttl, options_.first_grant),
      first_(now),
      next_ping_(now + options_.ping_interval) {
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (options_.nodes[node].configured) configured_ |= mask_of(node);
    nodes_[node].last_heard = now;
  }
  if (stored) adopt(*stored, now);
}

std::string Keeper::mismatch(const Hello& hello) const {
  ClusterTerms terms{.cluster = options_.cluster,
                     .nodes = {},
                     .bucket_bits = options_.bucket_bits,
                     .lanes = options_.lanes,
                     .policy = options_.policy};
  for (std::uint32_t node = 0; node < kMaxNodes; ++node)
    if (options_.nodes[node].configured) terms.nodes[node] = options_.nodes[node].endpoint;
  return kv::mismatch(terms, hello, "the keeper");
}

void Keeper::on_message(std::uint32_t node, const ToKeeper& message, Cycles now) {
  if (node >= kMaxNodes || !has(configured_, node) || phase_ == Phase::deposed) return;
  Node& n = nodes_[node];
  if (!n.connected && !std::holds_alternative<Hello>(message)) return;
  n.heard = true;
  n.misses = 0;
  n.last_heard = now;
  std::visit([&](const auto& m) { on(node, m, now); }, message);
  decide(now);
}

void Keeper::disconnected(std::uint32_t node, Cycles now) {
  if (node >= kMaxNodes) return;
  nodes_[node].connected = false;
  decide(now);
}

bool Keeper::same_boot(std::uint32_t node) const noexcept {
  return has(current_.members, node) && nodes_[node].boot != 0 && nodes_[node].boot == current_.boots[node];
}

void Keeper::on(std::uint32_t number, const Hello& hello, Cycles now) {
  Node& n = nodes_[number];
  n.connected = true;
  if (options_.fault == KeeperFault::overlook_restart && n.boot != 0) current_.boots[number] = hello.boot;
  n.refusal.clear();
  n.boot = hello.boot;
  n.ended = hello.ended_boot;
  n.claim = hello.entered;
  n.entered = hello.entered ? hello.entered->epoch : 0;
  if (n.entered > highest_ && phase_ != Phase::asking) {
    // The stored configuration is older than one that nodes have entered: it was lost, or an old copy was restored. So
    // it cannot be used.
    phase_ = Phase::asking;
    first_ = now;
    proposed_.reset();
  }
  highest_ = std::max(highest_, n.entered);
  n.report = Report{};
  n.report.boot = hello.boot;
  n.report.ready = hello.ready;
  n.report.complete = hello.complete;
  // A stop on the earlier connection may not have arrived. If it did arrive, its answer can no longer come.
  n.stop = 0;
  n.stopped = false;
  // Send the configuration that the node should enter. A node that was left out learns this, and returns as a new boot.
  const bool left_out = !has(current_.members, number) && (hello.entered || current_.boots[number] == n.boot);
  if (current_.epoch != 0 && phase_ != Phase::asking && (same_boot(number) || left_out)) {
    output_.send(number, Configure{current_});
    if (settled_) output_.send(number, Settled{current_.epoch});
  }
}

void Keeper::on(std::uint32_t number, const Report& report, Cycles now) {
  Node& n = nodes_[number];
  if (report.boot != n.boot) return;
  n.report = report;
  if (report.epoch != 0) n.entered = report.epoch;
  // Count only answers to pings, because other messages of the node would count one silence twice.
  if (report.silent == 0 || report.epoch != current_.epoch)
    n.silences = 0;
  else if (report.ping != 0 && n.silences < options_.misses)
    ++n.silences;
  confirm(now);
}

void Keeper::on(std::uint32_t number, const AskLease& ask, Cycles now) {
  Node& n = nodes_[number];
  const bool leaves = proposed_ && !has(proposed_->serving, number);
  const bool grants = phase_ == Phase::running && now < mandate_ && same_boot(number) && ask.boot == n.boot &&
                      has(current_.serving, number) && ask.epoch == current_.epoch && n.stop == 0 && !leaves;
  if (grants) n.lease_end = std::max(n.lease_end, now + options_.lease);
  output_.send(number, Grant{ask.id, grants ? options_.lease : 0});
}

void Keeper::on(std::uint32_t number, const Entered& entered, Cycles now) {
  Node& n = nodes_[number];
  if (entered.boot != n.boot) return;
  n.entered = entered.epoch;
  confirm(now);
}

void Keeper::on(std::uint32_t number, const Stopped& stopped, Cycles) {
  Node& n = nodes_[number];
  if (stopped.boot == n.boot && n.stop != 0 && stopped.id == n.stop) n.stopped = true;
}

// An operator's commands come over separate connections: Keeper::command.
void Keeper::on(std::uint32_t, const Command&, Cycles) {}

void Keeper::confirm(Cycles now) {
  if (settled_ || current_.epoch == 0) return;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(current_.members, node) && (!same_boot(node) || nodes_[node].entered != current_.epoch)) return;
  }
  settled_ = true;
  if (!failovers_.empty() && failovers_.back().epoch == current_.epoch) failovers_.back().confirmed = now;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(current_.members, node)) output_.send(node, Settled{current_.epoch});
  }
}

void Keeper::stop(std::uint32_t node) {
  Node& n = nodes_[node];
  if (n.stop != 0 || !n.connected || !same_boot(node)) return;
  n.stop = ++stops_;
  output_.send(node, Stop{n.stop});
}

void Keeper::resume(std::uint32_t node) {
  Node& n = nodes_[node];
  if (n.stop == 0) return;
  n.stop = 0;
  n.stopped = false;
  output_.send(node, Resume{});
}

void Keeper::on_time(Cycles now) {
  if (phase_ == Phase::deposed) return;
  if (now >= next_ping_) {
    // Count one interval, even if the call is late. Messages that arrived meanwhile were not read yet, so no node
    // counts as silent for that time.
    next_ping_ = now + options_.ping_interval;
    ++pings_;
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (!has(configured_, node)) continue;
      Node& n = nodes_[node];
      if (n.heard)
        n.misses = 0;
      else if (n.misses < options_.misses && (n.boot != 0 || now >= first_ + options_.find_time))
        ++n.misses;
      n.heard = false;
      if (n.connected) output_.send(node, Ping{pings_});
    }
  }
  decide(now);
}

Cycles Keeper::next_time() const noexcept {
  Cycles next = next_ping_;
  if (phase_ == Phase::asking && first_ + options_.lease > asked_at_) next = std::min(next, first_ + options_.lease);
  return std::min(next, wake_);
}

}  // namespace wherry::kv
