// SPDX-License-Identifier: Apache-2.0
// How much of the agent's memory readers keep from others by holding frames. Thread-safe.
//
// Counted is what a frame takes of the arena, which is more than its content. All readers together may hold `limit`
// bytes; a frame that several hold counts once. A reader that holds one frame at
// most may take another one beyond that, as a loop over frames does, if one more of its size still fits into the
// budget, or if no other reader holds any. So readers that never let go leave room for further frames.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "move/service/frame.hpp"

namespace wherry::move {

class Loans {
 public:
  /// What one reader holds. Guarded by the Loans.
  struct Borrower {
    std::uint64_t frames = 0, bytes = 0;
  };

  /// Both in bytes. Without a call there is no limit.
  void limit(std::uint64_t limit, std::uint64_t budget);
  /// Counts the frame as held by `who` until give_back(). kResourceExhausted: readers hold too much; the message says
  /// how much, and what to do.
  Status lend(const Frame& frame, Borrower& who);
  void give_back(const Frame& frame, Borrower& who);
  /// Of the arena, that frames in the hands of readers take.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Frame*, std::uint64_t> holders_;
  std::uint64_t bytes_ = 0;  ///< of the frames in holders_
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max(), budget_ = limit_;
};

}  // namespace wherry::move
