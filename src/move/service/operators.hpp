// SPDX-License-Identifier: Apache-2.0
// Runs the operators of streams: reads their frames like other readers, and publishes the results as frames of derived
// streams.
#pragma once

#include <chrono>
#include <memory>

#include "fabric/arena.hpp"
#include "move/service/catalogue.hpp"

namespace wherry::move {

/// Each stream with derived streams has a thread, from its opening until its last frame is processed. A host's ticket
/// ends long before that. The thread holds one frame of the source at a time. Results lie in the arena.
///
/// - A derived frame has the sequence and tag of its source frame.
/// - WhenFull::kEvict: the source evicts frames even if its operators are slow. The operators skip and count these.
/// - WhenFull::kWait: a frame remains until the operators have finished it, which counts as read. If a derived stream
///   is full of unread frames, its operators wait, and so the host waits for the operators.
/// - If an operator fails (an invalid frame, a checked overflow, no memory for 10 s), the source frame remains unread
///   and the derived stream has a gap. The stream's status counts failures and has the first cause.
class Operators {
 public:
  /// Sets the catalogue's operate hook. The catalogue must outlive this object.
  Operators(Catalogue& catalogue, std::shared_ptr<Arena> arena);
  ~Operators();
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  /// Waits until no frame waits for an operator. kDeadlineExceeded: the message has the number of remaining frames.
  Status drain(std::chrono::milliseconds timeout);
  /// Ends after the current frames, and logs the unprocessed ones. Idempotent; not from two threads at once.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with the hook, which an open may still be in
};

}  // namespace wherry::move
