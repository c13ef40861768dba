// SPDX-License-Identifier: Apache-2.0
#include "kv/net/neighbour_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/try.hpp"
#include "kv/net/neighbour.hpp"

namespace wherry::kv {

NeighbourTable::Neighbour* NeighbourTable::neighbour(std::uint32_t ip) noexcept {
  std::size_t i = 0;
  while (i < known_ && neighbours_[i].ip != ip) ++i;
  if (i == neighbours_.size()) return nullptr;
  if (i == known_) neighbours_[known_++] = {.ip = ip};
  return &neighbours_[i];
}

wherry::Status NeighbourTable::add(std::uint32_t ip, const Path& path) {
  Neighbour* const known = neighbour(ip);
  if (known == nullptr)
    return {StatusCode::kResourceExhausted, fmt::format("more than {} neighbours", neighbours_.size())};
  known->path = path;
  return {};
}

wherry::Status NeighbourTable::keep(std::uint32_t ip) {
  WHERRY_TRY(add(ip, find(ip)));
  neighbour(ip)->kept = true;
  refresh_ns_ = 0;
  return {};
}

/// Prefers the previous interface: if two interfaces reach the neighbour, frames must not alternate between them.
void NeighbourTable::look_for(Neighbour& one) const {
  for (std::size_t i = 0; i < interfaces_.size(); ++i) {
    const std::size_t interface = (one.path.interface + i) % interfaces_.size();
    const auto mac = resolve_mac(interfaces_[interface], one.ip, std::chrono::milliseconds(0));
    if (!mac) continue;
    one.path = {.mac = *mac, .interface = interface};
    return;
  }
}

bool NeighbourTable::refresh(std::uint64_t now_ns) {
  constexpr std::uint64_t kSoon = 50'000'000, kLater = 2'000'000'000;
  constexpr std::uint64_t kFirst = 2'000'000;  // a neighbour answers faster than that
  if (now_ns < refresh_ns_) return complete_;
  complete_ = true;
  refresh_ns_ = now_ns + kLater;
  for (Neighbour& one : std::span(neighbours_).first(known_)) {
    if (!one.kept) continue;
    if (one.due_ns <= now_ns) {
      // If the thread may not enter that namespace, the table keeps its present entries.
      (void)network_.run([&] { look_for(one); });
      const std::uint64_t again = one.due_ns == 0 ? kFirst : kSoon;
      one.due_ns = now_ns + (one.path.mac != 0 ? kLater : again);
    }
    complete_ = complete_ && one.path.mac != 0;
    refresh_ns_ = std::min(refresh_ns_, one.due_ns);
  }
  return complete_;
}

NeighbourTable::Path NeighbourTable::find(std::uint32_t ip) const noexcept {
  for (std::size_t i = 0; i < known_; ++i)
    if (neighbours_[i].ip == ip) return neighbours_[i].path;
  return {};
}

void NeighbourTable::learn(std::uint32_t ip, const Path& path) noexcept {
  for (std::size_t i = 0; i < known_; ++i)
    if (neighbours_[i].ip == ip && neighbours_[i].kept) neighbours_[i].path = path;
}

}  // namespace wherry::kv
