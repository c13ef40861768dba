// SPDX-License-Identifier: Apache-2.0
// Which client has which lanes: the keeper's part of docs/kv-protocol.md, section 7. Pure: it is given the time.
//
// A grant lasts as long as its holder's connection, and `ttl` longer. Meanwhile its client may have it back over
// another connection, to this keeper or to the next one: whoever begins to grant waits one `ttl` first, so that the
// clients of the keeper before come back to what they had.
#pragma once

#include <cstdint>
#include <optional>
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
    Holder holder = 0;   ///< 0: its connection has ended
    Cycles free_at = 0;  ///< then
  };

  /// Lanes from `first` up to `end`; nothing is granted anew before `from`.
  LaneGrants(std::uint32_t first, std::uint32_t end, Cycles ttl, Cycles from)
      : first_(first), end_(end), next_(first), ttl_(ttl), from_(from) {}

  /// Nobody was here before: grants may begin.
  void begin(Cycles now) noexcept { from_ = now; }
  [[nodiscard]] bool begun(Cycles now) const noexcept { return now >= from_; }
  /// Until when nothing is granted anew.
  [[nodiscard]] Cycles from() const noexcept { return from_; }

  /// `count` lanes in a row that nobody has had for a while. Nothing: there are none, or it is too early.
  std::optional<Grant> grant(Holder holder, std::uint32_t count, std::uint64_t session, Cycles now);
  /// What this client had, from this keeper or the one before. Nothing: somebody else has some of it by now.
  std::optional<Grant> reclaim(Holder holder, std::uint64_t session, std::uint32_t first, std::uint32_t count,
                               Cycles now);
  /// The holder's connection has ended. `over`: it said that it needs its lanes no more.
  void release(Holder holder, bool over, Cycles now);

  [[nodiscard]] std::uint32_t granted() const noexcept;  ///< lanes, those of ended connections included
  [[nodiscard]] std::size_t count() const noexcept { return grants_.size(); }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return end_ - first_; }

 private:
  [[nodiscard]] const Grant* overlapping(std::uint32_t first, std::uint32_t count) const noexcept;
  void drop_over(Cycles now);

  std::uint32_t first_, end_;
  std::uint32_t next_;  ///< where the search begins: lanes come again as late as possible
  Cycles ttl_;
  Cycles from_;
  std::vector<Grant> grants_;
};

}  // namespace wherry::kv
