// SPDX-License-Identifier: Apache-2.0
#include "probe/device/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/random.hpp"
#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

constexpr std::size_t kPlacePage = 4096;
constexpr std::size_t kMostPlaces = 4096;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

void add(Difference& sum, const Difference& part) {
  if (sum.count == 0 && part.count != 0)
    sum = part;
  else
    sum.count += part.count;
}

Status wrong(const char* what, const Difference& found) {
  if (found.count == 0) return {};
  return {
      StatusCode::kInternal,
      fmt::format("wrong data: {} bytes of the {} differ; the first is {:#04x} instead of {:#04x}, {} bytes behind its "
                  "begin",
                  found.count, what, std::to_integer<unsigned>(found.is), std::to_integer<unsigned>(found.want),
                  found.first)};
}

std::byte byte_at(std::uint64_t seed, std::size_t offset, bool poison) noexcept {
  return poison ? ~pattern_byte(seed, offset) : pattern_byte(seed, offset);
}

}  // namespace

Difference compare_pattern(std::span<const std::byte> with, std::uint64_t seed, std::size_t offset,
                           bool poison) noexcept {
  Difference found;
  const auto one = [&](std::size_t i) {
    const std::byte want = byte_at(seed, offset + i, poison);
    if (with[i] == want) return;
    if (found.count++ == 0) found = {.count = 1, .first = offset + i, .is = with[i], .want = want};
  };
  std::size_t i = 0;
  for (; i < with.size() && (offset + i) % 8 != 0; ++i) one(i);
  for (; i + 8 <= with.size(); i += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, &with[i], 8);
    if (value == (poison ? ~splitmix64(seed, (offset + i) / 8) : splitmix64(seed, (offset + i) / 8))) continue;
    for (std::size_t k = 0; k < 8; ++k) one(i + k);
  }
  for (; i < with.size(); ++i) one(i);
  return found;
}

Result<Places> Places::plan(const Shape& shape, const PlaceRules& rules) {
  if (shape.bytes == 0 || shape.depth == 0 || shape.channels == 0)
    return Status(StatusCode::kInvalidArgument, "a transfer has at least 1 byte, depth 1 and 1 channel");
  if (shape.cache != CacheState::kWarm)
    return Status(StatusCode::kUnsupported,
                  "device paths know one state of the caches: this core wrote the source last");
  if (shape.bytes > rules.room || shape.align > rules.room)
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("a transfer of {} bytes: there are {}", shape.bytes, rules.room));
  Places plan;
  plan.bytes_ = shape.bytes;
  plan.first_ = round_up(rules.guard, rules.unit) + shape.align;
  // With alignment each place starts behind a page boundary; otherwise places are adjacent.
  plan.spacing_ = shape.align != 0 ? round_up(shape.bytes, kPlacePage)
                                   : round_up(shape.bytes, std::max(rules.unit, std::size_t{1}));
  if (shape.pattern == Pattern::kStrided)
    plan.spacing_ = round_up(2 * shape.bytes, shape.align != 0 ? kPlacePage : rules.unit);
  if (plan.first_ % rules.unit != 0)
    return Status(StatusCode::kUnsupported,
                  fmt::format("an alignment of {} bytes: this memory takes multiples of {}", shape.align, rules.unit));
  const std::size_t least = shape.depth;
  std::size_t places = std::clamp(rules.spread / plan.spacing_, least, std::max(least, kMostPlaces));
  const std::size_t around = plan.first_ + rules.guard;
  const std::size_t fit = rules.room > around ? (rules.room - around) / plan.spacing_ : 0;
  if (fit < least)
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} transfers of {} bytes at once need {} bytes with what lies around them; there are {}",
                              shape.depth, shape.bytes, around + least * plan.spacing_, rules.room));
  places = std::min(places, fit);
  plan.region_ = round_up(around + places * plan.spacing_, std::max(rules.unit, std::size_t{8}));
  if (plan.region_ > rules.room) plan.region_ = rules.room / rules.unit * rules.unit;
  plan.order_.resize(places);
  std::iota(plan.order_.begin(), plan.order_.end(), 0U);
  if (shape.pattern == Pattern::kRandom) {  // the same in every run
    SplitMix64 random(places);
    for (std::size_t i = places; i > 1; --i)
      std::swap(plan.order_[i - 1], plan.order_[random.below(static_cast<std::uint32_t>(i))]);
  }
  plan.slots_.resize(shape.depth);
  plan.written_.resize(places);
  return plan;
}

std::size_t Places::take(unsigned slot) noexcept {
  slots_[slot] = order_[next_];
  next_ = next_ + 1 == order_.size() ? 0 : next_ + 1;
  return offset(slot);
}

void Places::fill_source(std::span<std::byte> region, std::uint64_t seed) noexcept { fill_pattern(region, seed, 0); }

void Places::fill_destination(std::span<std::byte> region, std::uint64_t seed) noexcept {
  std::fill(written_.begin(), written_.end(), std::uint8_t{0});
  fill_poison(region, seed, 0);
}

Status Places::check(std::span<const std::byte> region, std::uint64_t seed) const {
  if (region.size() != region_) return {StatusCode::kInternal, "the region has not the size that was planned"};
  Difference found;
  std::size_t at = 0;
  const auto part = [&](std::size_t until, bool poison) {
    add(found, compare_pattern(region.subspan(at, until - at), seed, at, poison));
    at = until;
  };
  for (std::size_t place = 0; place < written_.size(); ++place) {
    if (written_[place] == 0) continue;
    part(offset_of_place(place), true);
    part(offset_of_place(place) + bytes_, false);
  }
  part(region.size(), true);
  return wrong("destination", found);
}

Status Places::check_source(std::span<const std::byte> region, std::uint64_t seed) const {
  return wrong("source", compare_pattern(region, seed, 0, false));
}

}  // namespace wherry::probe
