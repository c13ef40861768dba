// SPDX-License-Identifier: Apache-2.0
// A leader's writes in flight: 64 places, with at most one new write per bucket.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kv/message.hpp"
#include "kv/node/table.hpp"

namespace wherry::kv {

struct Place {
  Location location = 0;
  std::uint64_t key = 0;
  std::uint32_t version = 0;
  std::uint32_t request = 0;
  std::uint16_t lane = 0;
  std::uint16_t length = 0;
  bool removes = false;
  bool leftover = false;       ///< a leftover of the leader's own, which stands in the table already
  std::uint8_t answered = 0;   ///< a bit for each member
  std::uint8_t kind = 0;       ///< of the client's request
  std::uint8_t candidate = 0;  ///< which of the key's buckets the location is in
  Endpoint client{};           ///< none for a leftover
  Cycles due = 0;
  Cycles since = 0;        ///< when it was sent first, in this epoch
  std::uint8_t tries = 0;  ///< how often it was sent, in this epoch
};

class Window {
 public:
  Window() : values_(std::make_unique<std::byte[]>(std::size_t{kPlaces} * kMaxValueBytes)) {}

  [[nodiscard]] bool full() const noexcept { return ~busy_ == 0; }
  [[nodiscard]] unsigned in_flight() const noexcept { return static_cast<unsigned>(std::popcount(busy_)); }
  [[nodiscard]] bool busy(unsigned place) const noexcept { return (busy_ >> place & 1) != 0; }
  [[nodiscard]] Place& operator[](unsigned place) noexcept { return places_[place]; }
  [[nodiscard]] bool has_bucket(std::uint32_t bucket) const noexcept {
    if (in_filter_[bucket % kFilter] == 0) return false;
    for (std::uint64_t left = busy_; left != 0; left &= left - 1)
      if (bucket_at(places_[std::countr_zero(left)].location) == bucket) return true;
    return false;
  }

  /// Precondition: the window is not full.
  unsigned take(const Place& what, ByteView value) noexcept {
    const auto place = static_cast<unsigned>(std::countr_zero(~busy_));
    busy_ |= std::uint64_t{1} << place;
    places_[place] = what;
    places_[place].length = static_cast<std::uint16_t>(value.size());
    if (!value.empty()) std::memcpy(values_.get() + place * kMaxValueBytes, value.data(), value.size());
    ++in_filter_[bucket_at(what.location) % kFilter];
    return place;
  }
  void free(unsigned place) noexcept {
    busy_ &= ~(std::uint64_t{1} << place);
    --in_filter_[bucket_at(places_[place].location) % kFilter];
  }
  [[nodiscard]] ByteView value(unsigned place) const noexcept {
    return {values_.get() + place * kMaxValueBytes, places_[place].length};
  }
  void clear() noexcept {
    busy_ = 0;
    in_filter_.fill(0);
  }

  /// Calls f(place) for each used place. f may free that place.
  template <typename F>
  void each(F&& f) {
    for (std::uint64_t left = busy_; left != 0; left &= left - 1) f(static_cast<unsigned>(std::countr_zero(left)));
  }

 private:
  static constexpr std::size_t kFilter = 4096;

  std::uint64_t busy_ = 0;
  std::array<std::uint8_t, kFilter> in_filter_{};
  std::array<Place, kPlaces> places_;
  std::unique_ptr<std::byte[]> values_;
};

}  // namespace wherry::kv
