// SPDX-License-Identifier: Apache-2.0
// Collective rounds over a tree of ranks: everybody contributes two words, everybody learns what they combine to. The
// rounds are numbered and not counted as messages of the application. reduce() is one round. quiesce()
// (runtime_together.cpp) is as many as it takes: a counting round sums what the ranks have sent and handled; when both
// sums are equal, a confirming round asks each rank whether its two counts have changed since. If no rank's have, every
// message had been handled at a moment between the rounds: this is the four-counter method (F. Mattern, "Algorithms for
// distributed termination detection", Distributed Computing 2, 1987, section 6), with the second count compared by each
// rank instead of in the sum. The method assumes that only messages make a rank send. A rank of ours may also send
// between two calls of try_quiesce(), so that with its answer "unchanged" it promises to send nothing, outside of
// handlers, until it knows the outcome. Without the promise, a message that it sends after its answer would be missing
// in the sums, and other ranks would leave the quiesce before that message has been handled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "route/topology.hpp"

namespace wherry::route::detail {

class Agreement {
 public:
  enum class Combine : std::uint32_t { kQuiesce, kConfirm, kSum, kMin, kMax, kSumDouble, kMinDouble, kMaxDouble, kEnd };
  struct Words {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const Words&, const Words&) noexcept = default;
  };
  using Send = std::function<void(Rank to, std::uint32_t handler, ByteView message)>;

  /// Two ranks that cannot agree.
  struct Mismatch {
    enum class What : std::uint8_t { kCalls, kHandlers } what;
    Rank one, other;
    Combine how, how_of_other;  ///< their calls
  };

  /// "reduce() of double, kMax": for errors.
  static std::string_view name(Combine how) noexcept;
  /// `up` and `down`: handlers of reports and verdicts.
  Agreement(Rank mine, Family family, std::uint32_t up, std::uint32_t down, Send send);

  /// This rank's part of the round at hand. `handlers` must be the same on all ranks. Precondition: !contributed().
  void contribute(Combine how, Words words, std::uint64_t handlers = 0);
  [[nodiscard]] bool contributed() const noexcept { return contributed_; }
  /// Whether take_outcome() has one.
  [[nodiscard]] bool concluded() const noexcept { return outcome_.has_value(); }
  /// The round's outcome, once: the next round begins.
  std::optional<Words> take_outcome() noexcept;
  /// The number of the round at hand: so many have been concluded.
  [[nodiscard]] std::uint32_t round() const noexcept { return round_; }
  /// What children and the parent send. False: no message of ours. Two ranks that are in different calls, or have
  /// different handlers, are a mismatch(): the round never ends.
  [[nodiscard]] bool on_report(ByteView message);
  [[nodiscard]] bool on_verdict(ByteView message);
  [[nodiscard]] const std::optional<Mismatch>& mismatch() const noexcept { return mismatch_; }

 private:
  struct Message {
    std::uint32_t round;
    Combine how;
    Words words;
    std::uint64_t handlers;
    Rank rank;  ///< whose call and handlers these are
    std::uint32_t reserved;
  };
  bool include(const Message& part);
  void pass_on();
  void conclude(Words words);

  const Rank mine_;
  const Family family_;
  const std::uint32_t up_, down_;
  Send send_;
  std::uint32_t round_ = 0;
  Rank arrived_ = 0;  ///< contributions, this rank's own included
  bool contributed_ = false;
  std::optional<Mismatch> mismatch_;
  Message sum_{};  ///< of the contributions so far; call, handlers and rank are those of the first one
  std::optional<Words> outcome_;
};

}  // namespace wherry::route::detail
