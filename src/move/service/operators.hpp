// SPDX-License-Identifier: Apache-2.0
// Runs the operators of streams: reads their frames as any reader does, and publishes what comes of them as frames of
// derived streams.
#pragma once

#include <chrono>
#include <memory>

#include "fabric/arena.hpp"
#include "move/service/catalogue.hpp"

namespace wherry::move {

/// A thread for each stream that has derived ones, from its opening until its last frame is worked off. A host's ticket
/// has ended long before. The thread holds one frame of the source at a time; results lie in the arena.
///
/// - A derived frame has the sequence and the tag of its source's.
/// - WhenFull::kEvict: a source whose operators are slow evicts frames as ever. Those are skipped, and counted.
/// - WhenFull::kWait: a frame stays until the operators are done with it, and counts as read then. A derived stream
///   that is full of unread frames makes its operators wait. Then the host waits for the operators.
/// - An operator that fails (a broken frame, a checked overflow, no memory for 10 s) leaves its source's frame where it
///   is and unread, and a gap in the derived stream. The stream's status counts it and has the first one's cause.
class Operators {
 public:
  /// Takes the catalogue's operate hook. The catalogue must outlive it.
  Operators(Catalogue& catalogue, std::shared_ptr<Arena> arena);
  ~Operators();
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  /// Waits until no frame waits for an operator. kDeadlineExceeded says how many are left.
  Status drain(std::chrono::milliseconds timeout);
  /// Ends after the frames at work; what was not worked off is logged. Idempotent; not from two threads at once.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with the hook, which an open may still be in
};

}  // namespace wherry::move
