// SPDX-License-Identifier: Apache-2.0
// Counts the agent's memory that readers occupy by holding frames. Thread-safe.
//
// A frame counts with its arena bytes, once. All readers together may hold `limit` bytes. Beyond it, a reader with at
// most one frame may still take another one, as a loop over frames does, if one more frame of that size fits into the
// budget, or if no other reader holds one. So readers that never release frames leave room for new ones.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "move/service/frame.hpp"

namespace wherry::move {

class Loans {
 public:
  /// The leases of one reader. Guarded by the Loans.
  struct Borrower {
    std::uint64_t frames = 0, bytes = 0;
  };

  /// Sets both values, in bytes. Without this call there is no limit.
  void limit(std::uint64_t limit, std::uint64_t budget);
  /// Counts the frame as held by `who` until give_back(). kResourceExhausted: readers hold too much; the message says
  /// how much, and what to do.
  Status lend(const Frame& frame, Borrower& who);
  void give_back(const Frame& frame, Borrower& who);
  /// Counts arena memory for readers' results, like frames, until return_bytes(). False: readers would hold too much.
  /// Results may exceed the readers' limit by an eighth, so a reader can still get a few rows of a frame that is as
  /// large as the limit.
  bool take_bytes(std::uint64_t bytes);
  void return_bytes(std::uint64_t bytes);
  /// Arena bytes of frames that readers hold, and of results for readers.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Frame*, std::uint64_t> holders_;
  std::uint64_t bytes_ = 0;    ///< of the frames in holders_, and results_
  std::uint64_t results_ = 0;  ///< taken by take_bytes()
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max(), budget_ = limit_;
};

}  // namespace wherry::move
