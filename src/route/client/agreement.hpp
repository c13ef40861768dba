// SPDX-License-Identifier: Apache-2.0
// Collective rounds over a tree of ranks. Each rank contributes two words. Reports go up the tree, and the outcome,
// which combines all words, comes down. Rounds are numbered. Their messages are not counted as application messages.
//
// reduce() is one round. quiesce() (runtime_together.cpp) uses as many rounds as needed. A counting round sums the
// messages that the ranks have sent and handled. When the two sums are equal, a confirming round asks each rank whether
// its counts have changed since. If no counts have changed, all messages were handled at some moment between the
// rounds. This is the four-counter method (F. Mattern, "Algorithms for distributed termination detection", Distributed
// Computing 2, 1987, section 6), except that each rank compares its second count itself.
//
// The method assumes that a rank sends only in response to messages. Here, a rank may also send between two calls of
// try_quiesce(). So with the answer "unchanged" it promises to send nothing outside of handlers until it knows the
// outcome. Without this promise, the sums would miss a message that it sends after its answer, and other ranks would
// leave the quiesce before that message is handled.
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

  /// Two ranks whose contributions cannot be combined.
  struct Mismatch {
    enum class What : std::uint8_t { kCalls, kHandlers } what;
    Rank one, other;
    Combine how, how_of_other;  ///< their calls
  };

  /// For errors: "reduce() of doubles, kMax".
  static std::string_view name(Combine how) noexcept;
  /// `up`, `down`: the handlers of reports and of outcomes.
  Agreement(Rank mine, TreeLinks links, std::uint32_t up, std::uint32_t down, Send send);

  /// Adds this rank's part to the current round. `handlers` must be equal on all ranks. Precondition: !contributed().
  void contribute(Combine how, Words words, std::uint64_t handlers = 0);
  [[nodiscard]] bool contributed() const noexcept { return contributed_; }
  /// Whether take_outcome() has an outcome.
  [[nodiscard]] bool concluded() const noexcept { return outcome_.has_value(); }
  /// Returns the outcome of the last round once.
  std::optional<Words> take_outcome() noexcept;
  /// The number of the current round, which is also the number of concluded rounds.
  [[nodiscard]] std::uint32_t round() const noexcept { return round_; }
  /// Handle a report of a child and an outcome of the parent. False: malformed. If two ranks are in different calls or
  /// have different handlers, mismatch() returns them, and the round never ends.
  [[nodiscard]] bool on_report(ByteView message);
  [[nodiscard]] bool on_outcome(ByteView message);
  [[nodiscard]] const std::optional<Mismatch>& mismatch() const noexcept { return mismatch_; }

 private:
  struct Message {
    std::uint32_t round;
    Combine how;
    Words words;
    std::uint64_t handlers;
    Rank rank;  ///< that makes this call and has these handlers
    std::uint32_t reserved;
  };
  bool include(const Message& part);
  void pass_on();
  void conclude(Words words);

  const Rank mine_;
  const TreeLinks links_;
  const std::uint32_t up_, down_;
  Send send_;
  std::uint32_t round_ = 0;
  Rank arrived_ = 0;          ///< contributions to the current round, this rank's own included
  bool contributed_ = false;  ///< this rank's own is among them
  std::optional<Mismatch> mismatch_;
  Message sum_{};  ///< of the contributions so far; call, handlers and rank are those of the first one
  std::optional<Words> outcome_;
};

}  // namespace wherry::route::detail
