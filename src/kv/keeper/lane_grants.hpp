// SPDX-License-Identifier: Apache-2.0
// Records which client owns which lanes: the keeper's part of docs/design/kv-protocol.md, section 7. A pure class: its
// caller passes it the time.
//
// A grant lasts as long as its holder's connection, and then for `ttl`. Until its end, the client can get it back over
// another connection, to this keeper or to the next one. A keeper that starts waits for `ttl` before it makes new
// grants, so that clients of the earlier keeper can get their lanes back.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kv/message.hpp"

namespace wherry::kv {

class LaneGrants {
 public:
  using Holder = std::uint64_t;  ///< a connection, not 0
  struct Grant {
    std::uint64_t session = 0;  ///< names it, for its client to have it back
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint64_t number = 0;  ///< of a later grant it is higher, whichever keeper made it
    Holder holder = 0;         ///< 0: its connection has ended
    Cycles free_at = 0;        ///< then
  };

  /// Grants lanes from `first` up to `end`, and new ones only after `from`. `number`: the first grant's number, above
  /// those of all earlier keepers.
  LaneGrants(std::uint32_t first, std::uint32_t end, Cycles ttl, Cycles from, std::uint64_t number = 1)
      : first_(first), end_(end), ttl_(ttl), from_(from), next_number_(number) {}

  /// There was no earlier keeper, so new grants may begin.
  void begin(Cycles now) noexcept { from_ = now; }
  [[nodiscard]] bool begun(Cycles now) const noexcept { return now >= from_; }
  /// The time before which no new grant is made.
  [[nodiscard]] Cycles from() const noexcept { return from_; }

  /// Grants `count` consecutive lanes that no client has had for a while. No value: there are none, or it is too early.
  /// Few lanes come from the upper end, and many from the lower end, aligned, so that small grants do not split the
  /// whole range.
  std::optional<Grant> grant(Holder holder, std::uint32_t count, std::uint64_t session, Cycles now);
  /// Returns the lanes that this client had, from this keeper or, under `number`, from an earlier one. No value:
  /// another client has some of them now. If an earlier keeper had also granted them to an older client, that client
  /// loses them: see take_ousted().
  std::optional<Grant> reclaim(Holder holder, std::uint64_t session, std::uint32_t first, std::uint32_t count,
                               std::uint64_t number, Cycles now);
  /// Connections whose lanes went to a client with a later grant. Each is reported once.
  [[nodiscard]] std::vector<Holder> take_ousted() noexcept { return std::exchange(ousted_, {}); }
  /// The holder's connection has ended. `over`: the holder said that it no longer needs its lanes.
  void release(Holder holder, bool over, Cycles now);

  [[nodiscard]] std::uint32_t granted() const noexcept;  ///< lanes, those of ended connections included
  [[nodiscard]] std::size_t count() const noexcept { return grants_.size(); }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return end_ - first_; }

 private:
  [[nodiscard]] const Grant* overlapping(std::uint32_t first, std::uint32_t count) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> from_below(std::uint32_t count, std::uint32_t step) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> from_above(std::uint32_t count) const noexcept;
  void drop_over(Cycles now);

  std::uint32_t first_, end_;
  Cycles ttl_;
  Cycles from_;
  std::uint64_t next_number_;
  std::vector<Grant> grants_;
  std::vector<Holder> ousted_;
};

}  // namespace wherry::kv
