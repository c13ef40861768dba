// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/lane_grants.hpp"

#include <algorithm>
#include <bit>

namespace wherry::kv {
namespace {

/// Grants of at least this many lanes come from the lower end. By default, clients ask for 1 (Python) or 64 (C++)
/// lanes.
constexpr std::uint32_t kMany = 16;

}  // namespace

void LaneGrants::drop_over(Cycles now) {
  std::erase_if(grants_, [&](const Grant& g) { return g.holder == 0 && now >= g.free_at; });
}

const LaneGrants::Grant* LaneGrants::overlapping(std::uint32_t first, std::uint32_t count) const noexcept {
  for (const Grant& g : grants_)
    if (first < g.first + g.count && g.first < first + count) return &g;
  return nullptr;
}

std::optional<std::uint32_t> LaneGrants::from_below(std::uint32_t count, std::uint32_t step) const noexcept {
  for (std::uint64_t at = first_; at + count <= end_;) {
    const Grant* const in_the_way = overlapping(static_cast<std::uint32_t>(at), count);
    if (in_the_way == nullptr) return static_cast<std::uint32_t>(at);
    const std::uint64_t behind = std::uint64_t{in_the_way->first} + in_the_way->count - first_;
    at = first_ + (behind + step - 1) / step * step;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> LaneGrants::from_above(std::uint32_t count) const noexcept {
  for (std::uint64_t end = end_; end >= std::uint64_t{first_} + count;) {
    const Grant* const in_the_way = overlapping(static_cast<std::uint32_t>(end - count), count);
    if (in_the_way == nullptr) return static_cast<std::uint32_t>(end - count);
    end = in_the_way->first;
  }
  return std::nullopt;
}

std::optional<LaneGrants::Grant> LaneGrants::grant(Holder holder, std::uint32_t count, std::uint64_t session,
                                                   Cycles now) {
  drop_over(now);
  if (!begun(now) || count == 0 || count > lanes()) return std::nullopt;
  std::optional<std::uint32_t> at;
  if (count >= kMany) at = from_below(count, std::bit_ceil(count));
  if (!at) at = count >= kMany ? from_below(count, 1) : from_above(count);
  if (!at) return std::nullopt;
  grants_.push_back(
      {.session = session, .first = *at, .count = count, .number = next_number_++, .holder = holder, .free_at = 0});
  return grants_.back();
}

std::optional<LaneGrants::Grant> LaneGrants::reclaim(Holder holder, std::uint64_t session, std::uint32_t first,
                                                     std::uint32_t count, std::uint64_t number, Cycles now) {
  if (count == 0 || first < first_ || std::uint64_t{first} + count > end_) return std::nullopt;
  for (Grant& g : grants_) {
    if (g.session != session || g.first != first || g.count != count) continue;
    g.holder = holder;
    return g;
  }
  drop_over(now);
  // This keeper does not know the grant. An earlier keeper made it, and meanwhile it may have expired and gone to
  // another client. When this keeper begins to make new grants, all grants that it does not know have expired.
  if (begun(now)) return std::nullopt;
  const auto in_the_way = [&](const Grant& g) { return first < g.first + g.count && g.first < first + count; };
  if (std::ranges::any_of(grants_, [&](const Grant& g) { return in_the_way(g) && g.number >= number; }))
    return std::nullopt;
  // If an earlier keeper granted the same lanes to two clients one after the other, the later grant is valid.
  std::erase_if(grants_, [&](const Grant& g) {
    if (!in_the_way(g)) return false;
    if (g.holder != 0) ousted_.push_back(g.holder);
    return true;
  });
  grants_.push_back(
      {.session = session, .first = first, .count = count, .number = number, .holder = holder, .free_at = 0});
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
