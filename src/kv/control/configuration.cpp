// SPDX-License-Identifier: Apache-2.0
#include "kv/control/configuration.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace wherry::kv {
namespace {

wherry::Status bad(std::string what) { return {StatusCode::kInvalidArgument, "configuration: " + std::move(what)}; }

}  // namespace

wherry::Status check(const Configuration& c) {
  if ((c.epoch & 0xffff) == 0) return bad(fmt::format("epoch {}: its low 16 bits must not be 0", c.epoch));
  if (c.serving == 0) return bad("no node serves");
  if (without(c.serving, c.members) != 0) {
    const int node = std::countr_zero(without(c.serving, c.members));
    return bad(fmt::format("node {} serves and is not a member", node));
  }
  if (c.bucket_bits < 8 || c.bucket_bits > kMaxBucketBits)
    return bad(fmt::format("bucket_bits {}: want 8 to {}", c.bucket_bits, kMaxBucketBits));
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (c.leaders[slot] >= kMaxNodes || !has(c.serving, c.leaders[slot]))
      return bad(fmt::format("slot {} is led by node {}, which does not serve", slot, c.leaders[slot]));
  }
  for (std::uint32_t a = 0; a < kMaxNodes; ++a) {
    if (!has(c.members, a)) continue;
    if (c.peers[a].ip == 0 || c.peers[a].port == 0) return bad(fmt::format("node {} has no address", a));
    if (c.peers[a].mac >> 48 != 0) return bad(fmt::format("node {}: a MAC address has 48 bits", a));
    for (std::uint32_t b = 0; b < a; ++b) {
      if (has(c.members, b) && c.peers[a].ip == c.peers[b].ip && c.peers[a].port == c.peers[b].port)
        return bad(fmt::format("nodes {} and {} have one address", b, a));
    }
  }
  return wherry::ok_status();
}

void spread_leaders(Leaders& leaders, NodeMask serving) {
  std::array<std::uint32_t, kMaxNodes> count{};
  for (const std::uint8_t leader : leaders) {
    if (leader < kMaxNodes) ++count[leader];
  }
  std::array<std::uint8_t, kMaxNodes> order{};
  std::uint32_t nodes = 0;
  for (std::uint8_t node = 0; node < kMaxNodes; ++node) {
    if (has(serving, node)) order[nodes++] = node;
  }
  if (nodes == 0) return;
  // Nodes that already lead most slots get the remainder, so they keep one slot more.
  std::stable_sort(order.begin(), order.begin() + nodes, [&](auto a, auto b) { return count[a] > count[b]; });
  std::array<std::uint32_t, kMaxNodes> room{};
  for (std::uint32_t i = 0; i < nodes; ++i) room[order[i]] = kSlots / nodes + (i < kSlots % nodes ? 1 : 0);
  std::array<bool, kSlots> keeps{};
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::uint8_t leader = leaders[slot];
    if (leader < kMaxNodes && room[leader] > 0) {
      --room[leader];
      keeps[slot] = true;
    }
  }
  std::uint32_t turn = 0;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (keeps[slot]) continue;
    while (room[order[turn % nodes]] == 0) ++turn;
    leaders[slot] = order[turn % nodes];
    --room[order[turn++ % nodes]];
  }
}

Leaders first_leaders(NodeMask serving) {
  Leaders leaders;
  leaders.fill(kMaxNodes);  // no node: all are handed out, in turn
  spread_leaders(leaders, serving);
  return leaders;
}

}  // namespace wherry::kv
