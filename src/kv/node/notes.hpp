// SPDX-License-Identifier: Apache-2.0
// A follower's notes of stored writes whose commit it does not know: pending ones, by leader and place, and leftovers
// of former epochs. Found by bucket through short chains, so that a read looks at one number.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kv/message.hpp"
#include "kv/node/table.hpp"

namespace wherry::kv {

struct Note {
  Location location = 0;
  std::uint32_t version = 0;
  std::uint32_t request = 0;
  std::uint16_t lane = 0;
  std::uint16_t next = 0;
  bool used = false;
  bool removes = false;
  bool in_window = false;  ///< a leader's own leftover that has its place
  std::uint8_t tries = 0;  ///< of the fetch: how often it was sent
  std::uint32_t tag = 0;   ///< of the fetch that asks for a leftover; 0: not asked yet
  Cycles due = 0;          ///< pending: when the leader may be asked again; leftover: when it is to be
};

class Notes {
 public:
  using Index = std::uint16_t;
  static constexpr Index kPending = kMaxNodes * kPlaces;  ///< from here on: leftovers
  static constexpr std::size_t kMostLeftovers = 4095;     ///< the register `state` counts no further

  explicit Notes(std::size_t max_leftovers);

  [[nodiscard]] bool in_bucket(std::uint32_t bucket) const noexcept {
    for (Index i = heads_[bucket % kHeads]; i != kNone; i = notes_[i].next)
      if (bucket_at(notes_[i].location) == bucket) return true;
    return false;
  }
  [[nodiscard]] static Index pending_index(unsigned leader, unsigned place) noexcept {
    return static_cast<Index>(leader * kPlaces + place);
  }
  [[nodiscard]] Note& operator[](Index index) noexcept { return notes_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return notes_.size(); }
  [[nodiscard]] std::size_t leftovers() const noexcept { return leftovers_; }
  [[nodiscard]] bool is_leftover(Location at) const noexcept;

  void put(Index index, const Note& note) noexcept;
  void drop(Index index) noexcept;
  /// A leftover that was not pending before. False: there is no room.
  [[nodiscard]] bool put_leftover(const Note& note) noexcept;
  /// Turns a pending note into a leftover one. False: there is no room.
  [[nodiscard]] bool leave_over(Index index) noexcept;
  void clear() noexcept;

  /// Calls f(index) for the notes of a bucket. f may drop the note that it gets.
  template <typename F>
  void at_bucket(std::uint32_t bucket, F&& f) {
    for (Index i = heads_[bucket % kHeads]; i != kNone;) {
      const Index following = notes_[i].next;
      if (bucket_at(notes_[i].location) == bucket) f(i);
      i = following;
    }
  }
  /// Calls f(index) for the leftovers. f may drop the leftover that it gets.
  template <typename F>
  void each_leftover(F&& f) {
    if (leftovers_ == 0) return;
    for (std::size_t i = kPending; i < notes_.size(); ++i)
      if (notes_[i].used) f(static_cast<Index>(i));
  }

 private:
  static constexpr std::size_t kHeads = 4096;
  static constexpr Index kNone = 0xffff;

  std::array<Index, kHeads> heads_;
  std::vector<Note> notes_;
  std::vector<Index> free_;  // of leftovers; its memory is taken once
  std::size_t leftovers_ = 0;
};

}  // namespace wherry::kv
