// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/lane_grants.hpp"

#include <algorithm>

namespace wherry::kv {

void LaneGrants::drop_over(Cycles now) {
  std::erase_if(grants_, [&](const Grant& g) { return g.holder == 0 && now >= g.free_at; });
}

const LaneGrants::Grant* LaneGrants::overlapping(std::uint32_t first, std::uint32_t count) const noexcept {
  for (const Grant& g : grants_)
    if (first < g.first + g.count && g.first < first + count) return &g;
  return nullptr;
}

std::optional<LaneGrants::Grant> LaneGrants::grant(Holder holder, std::uint32_t count, std::uint64_t session,
                                                   Cycles now) {
  drop_over(now);
  if (!begun(now) || count == 0 || count > lanes()) return std::nullopt;
  // From where the last one ended, then from the beginning.
  for (const std::uint32_t start : {next_, first_}) {
    std::uint32_t at = start;
    while (std::uint64_t{at} + count <= end_) {
      const Grant* const in_the_way = overlapping(at, count);
      if (in_the_way == nullptr) {
        grants_.push_back({.session = session, .first = at, .count = count, .holder = holder});
        next_ = at + count;
        return grants_.back();
      }
      at = in_the_way->first + in_the_way->count;
    }
  }
  return std::nullopt;
}

std::optional<LaneGrants::Grant> LaneGrants::reclaim(Holder holder, std::uint64_t session, std::uint32_t first,
                                                     std::uint32_t count, Cycles now) {
  if (count == 0 || first < first_ || std::uint64_t{first} + count > end_) return std::nullopt;
  for (Grant& g : grants_) {
    if (g.session != session || g.first != first || g.count != count) continue;
    g.holder = holder;
    return g;
  }
  drop_over(now);
  // This keeper does not know of it: the one before granted it, unless it has lapsed since and went to another client.
  // Once this keeper grants anew, what it does not know of has lapsed.
  if (begun(now) || overlapping(first, count) != nullptr) return std::nullopt;
  grants_.push_back({.session = session, .first = first, .count = count, .holder = holder});
  return grants_.back();
}

void LaneGrants::release(Holder holder, bool over, Cycles now) {
  for (Grant& g : grants_) {
    if (g.holder != holder) continue;
    g.holder = 0;
    g.free_at = over ? now : now + ttl_;
  }
}

std::uint32_t LaneGrants::granted() const noexcept {
  std::uint32_t sum = 0;
  for (const Grant& g : grants_) sum += g.count;
  return sum;
}

}  // namespace wherry::kv
