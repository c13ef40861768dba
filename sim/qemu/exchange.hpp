// SPDX-License-Identifier: Apache-2.0
// Sends traffic into the NIC's cable, and compares what returns with the expectation: every byte, every frame, in
// order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/qemu/cable.hpp"
#include "sim/qemu/traffic.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// Limits on the frames in flight.
struct InFlight {
  std::uint32_t frames = 32;
  std::uint32_t slots = 48;
};

/// The reply to a frame that would make a reply too long.
enum class LongFrames : std::uint8_t { kCut, kNothing };

struct Replies {
  LongFrames longer = LongFrames::kCut;
  std::uint32_t longest = Traffic::kLongest;
};

struct ExchangeCounters {
  std::uint64_t sent = 0;
  std::uint64_t replies = 0;     ///< that these frames are worth
  std::uint64_t unanswered = 0;  ///< of the frames sent: no reply is due
  std::uint64_t returned = 0;    ///< replies, as they must be
  std::uint64_t wrong = 0;       ///< others: changed, unknown, twice, or overtaken
  std::uint64_t lost = 0;        ///< replies that did not return
};

class Exchange {
 public:
  Exchange(Cable& machine, const Traffic& traffic, const InFlight& limits)
      : machine_(machine), traffic_(traffic), limits_(limits) {}

  /// Both apply to frames that are sent from now on.
  void set_traffic(const Traffic& traffic) noexcept { traffic_ = traffic; }
  void set_replies(const Replies& replies) noexcept { replies_ = replies; }
  /// Sends `count` more frames, and runs until all have returned. kDeadlineExceeded: no more frames return.
  Status run(std::uint64_t count);
  /// The same, but ends in the middle, when `replies` have returned. pump() sends the other frames and receives,
  /// without running the machine.
  Status run_into(std::uint64_t count, std::uint64_t replies);
  Status pump();
  /// Runs until nothing has returned for a while. Frames that are missing then are lost.
  Status settle();

  [[nodiscard]] const ExchangeCounters& counters() const noexcept { return counters_; }

 private:
  struct Expected {
    std::vector<std::byte> reply;
    std::uint32_t slots = 0;  ///< that its frame takes; of a cut reply, with the last piece
  };
  void send_what_may();
  void expect(std::uint64_t number);
  Status step();
  template <typename Done>
  Status step_until(const Done& done);
  [[nodiscard]] std::uint64_t returned() const noexcept { return counters_.returned + counters_.wrong; }
  void check(const std::vector<std::byte>& frame);
  void forget_front();

  Cable& machine_;
  Traffic traffic_;
  InFlight limits_;
  Replies replies_;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint32_t slots_ = 0;
  std::deque<Expected> expected_;
  ExchangeCounters counters_;
};

}  // namespace wherry::sim
