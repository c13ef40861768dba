// SPDX-License-Identifier: Apache-2.0
// Chooses the node that a request goes to.
#include <algorithm>
#include <bit>

#include "kv/client/core.hpp"

namespace wherry::kv {
namespace {

constexpr std::uint8_t kSilentAfter = 3;  ///< timeouts without a word in between

}  // namespace

bool ClientCore::usable(std::uint8_t node) const noexcept {
  return present(node) && nodes_[node].serving && nodes_[node].silent < kSilentAfter;
}

std::uint8_t ClientCore::node_of(const Endpoint& from) const noexcept {
  for (std::uint8_t n = 0; n < kMaxNodes; ++n)
    if (present(n) && options_.nodes[n].ip == from.ip && options_.nodes[n].port == from.port) return n;
  return kNobody;
}

/// The next usable node, else the next node. Returns `node` itself if there is no other.
std::uint8_t ClientCore::after(std::uint8_t node) const noexcept {
  std::uint8_t any = kNobody;
  for (unsigned step = 1; step <= kMaxNodes; ++step) {
    const auto n = static_cast<std::uint8_t>((node + step) % kMaxNodes);
    if (!present(n)) continue;
    if (usable(n) && n != node) return n;
    if (any == kNobody) any = n;
  }
  return any;
}

/// If the leader is not known, assumes a static cluster, whose slots are dealt to the nodes in turn.
std::uint8_t ClientCore::leader_of(std::uint64_t key) const noexcept {
  const std::uint32_t slot = slot_of(hash_of(key));
  if (leaders_[slot] != kNobody) return leaders_[slot];
  const auto nodes = static_cast<std::uint32_t>(std::popcount(present_));
  if (nodes == 0) return kNobody;
  std::uint8_t node = after(kMaxNodes - 1);
  if (!present(node)) return node;
  for (std::uint32_t skip = slot % nodes; skip > 0;) {
    node = static_cast<std::uint8_t>((node + 1) % kMaxNodes);
    if (present(node)) --skip;
  }
  return node;
}

std::uint8_t ClientCore::reader_for(std::uint64_t key) noexcept {
  switch (options_.reads) {
    case ReadFrom::kLeader: {
      const std::uint8_t leader = leader_of(key);
      return usable(leader) ? leader : after(leader);
    }
    case ReadFrom::kRoundRobin:
      turn_ = after(turn_);
      return turn_;
    case ReadFrom::kNearest:
      break;
  }
  return usable(nearest_) ? nearest_ : after(turn_);
}

/// Sends a ping to all nodes. The first to answer is the nearest one; a silent node may also be back. Until a serving
/// node has answered, pings repeat like requests but more slowly, because a client may start before the nodes serve.
void ClientCore::probe(Cycles now) {
  ++probe_tag_;
  probe_open_ = true;
  probing_ = true;
  active_ = false;
  for (std::uint8_t n = 0; n < kMaxNodes; ++n)
    send(n, {.kind = static_cast<std::uint8_t>(Kind::ping),
             .epoch = epoch_,
             .client = options_.first_lane,
             .request = probe_tag_});
  timers_.set(options_.operations + options_.lanes, now + (heard_ ? options_.probe_every : probe_wait_));
  probe_wait_ = std::min(2 * probe_wait_, options_.probe_every);
}

}  // namespace wherry::kv
