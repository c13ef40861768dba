// SPDX-License-Identifier: Apache-2.0
// Which client has which lanes: the keeper's part of docs/kv-protocol.md, section 7. Pure: it is given the time.
//
// A grant lasts as long as its holder's connection, and `ttl` longer. Meanwhile its client may have it back over
// another connection, to this keeper or to the next one: whoever begins to grant waits one `ttl` first, so that the
// clients of the keeper before come back to what they had.
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

  /// Lanes from `first` up to `end`; nothing is granted anew before `from`. `number`: above those of all grants of the
  /// keepers before.
  LaneGrants(std::uint32_t first, std::uint32_t end, Cycles ttl, Cycles from, std::uint64_t number = 1)
      : first_(first), end_(end), ttl_(ttl), from_(from), next_number_(number) {}

  /// Nobody was here before: grants may begin.
  void begin(Cycles now) noexcept { from_ = now; }
  [[nodiscard]] bool begun(Cycles now) const noexcept { return now >= from_; }
  /// Until when nothing is granted anew.
  [[nodiscard]] Cycles from() const noexcept { return from_; }

  /// `count` lanes in a row that nobody has had for a while. Nothing: there are none, or it is too early. Few lanes
  /// come from the upper end and many from the lower one, aligned, so that a few small grants do not part all of them.
  std::optional<Grant> grant(Holder holder, std::uint32_t count, std::uint64_t session, Cycles now);
  /// What this client had, from this keeper or, under `number`, the one before. Nothing: somebody else has some of it
  /// by now. A client that a keeper before granted the same lanes earlier loses them to this one: see take_ousted().
  std::optional<Grant> reclaim(Holder holder, std::uint64_t session, std::uint32_t first, std::uint32_t count,
                               std::uint64_t number, Cycles now);
  /// Connections whose lanes went back to a client that was granted them later; each is told once.
  [[nodiscard]] std::vector<Holder> take_ousted() noexcept { return std::exchange(ousted_, {}); }
  /// The holder's connection has ended. `over`: it said that it needs its lanes no more.
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
