// SPDX-License-Identifier: Apache-2.0
// Collective rounds over a tree of ranks: everybody contributes two words, everybody learns what they combine to. The
// rounds are numbered and not counted as messages of the application. reduce() is one round; quiesce() is as many as it
// takes: each rank contributes what it has sent and what it has handled, and when two rounds in a row say the same and
// both sums are equal, nothing was on its way between them (the four-counter method: F. Mattern, "Algorithms for
// distributed termination detection", Distributed Computing 2, 1987, section 6).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.hpp"
#include "route/topology.hpp"

namespace wherry::route::detail {

class Agreement {
 public:
  enum class Combine : std::uint32_t { kQuiesce, kSum, kMin, kMax, kSumDouble, kMinDouble, kMaxDouble, kEnd };
  struct Words {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const Words&, const Words&) noexcept = default;
  };
  using Send = std::function<void(Rank to, std::uint32_t handler, ByteView message)>;

  /// `up` and `down`: handlers of reports and verdicts.
  Agreement(Family family, std::uint32_t up, std::uint32_t down, Send send);

  /// This rank's part of the round at hand. Precondition: !contributed().
  void contribute(Combine how, Words words);
  [[nodiscard]] bool contributed() const noexcept { return contributed_; }
  /// The round's outcome, once: the next round begins.
  std::optional<Words> take_outcome() noexcept;
  /// What children and the parent send. False: no message of ours, or a rank is in another collective call than this
  /// one.
  [[nodiscard]] bool on_report(ByteView message);
  [[nodiscard]] bool on_verdict(ByteView message);
  /// Which collective a rank is in when on_report() says no.
  [[nodiscard]] bool mismatch() const noexcept { return mismatch_; }

 private:
  struct Message {
    std::uint32_t round;
    Combine how;
    Words words;
  };
  bool include(Combine how, Words words);
  void pass_on();
  void conclude(Words words);

  const Family family_;
  const std::uint32_t up_, down_;
  Send send_;
  std::uint32_t round_ = 0;
  Rank arrived_ = 0;  ///< contributions, this rank's own included
  bool contributed_ = false;
  bool mismatch_ = false;
  Combine how_ = Combine::kEnd;
  Words words_;
  std::optional<Words> outcome_;
};

}  // namespace wherry::route::detail
