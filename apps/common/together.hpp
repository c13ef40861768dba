// SPDX-License-Identifier: Apache-2.0
// Functions that several applications share.
#pragma once

#include <chrono>
#include <utility>

#include "wherry/route.hpp"

namespace wherry::apps {

using route::Handler;
using route::Rank;
using route::Runtime;

/// Sends a message; call it outside of handlers. While there is no room, it handles arriving messages. Returns false if
/// the job has failed; runtime.status() has the reason.
template <typename T>
[[nodiscard]] bool deliver(Runtime& runtime, Rank to, Handler<T> handler, const T& message) noexcept {
  for (;;) {
    const StatusCode code = runtime.try_send(to, handler, message);
    if (code != StatusCode::kWouldBlock) return code == StatusCode::kOk;
    runtime.poll();
  }
}

/// Returns when every rank has called it. A fast rank may send while a slow one is still inside, so the handlers' data
/// must be ready before the call.
inline Status barrier(Runtime& runtime) {
  const auto none = runtime.reduce(std::uint64_t{0});
  return none ? Status() : none.status();
}

/// All ranks end together, successfully or not: no rank waits for a failed one.
inline Status together(Runtime& runtime, Status mine) {
  const auto failures = runtime.reduce(std::uint64_t{mine ? 0u : 1u});
  if (!failures) return failures.status();
  if (*failures != 0 && mine) return {StatusCode::kCancelled, "another rank failed: its message says why"};
  return mine;
}

/// Calls `work()` until no rank has work and no message is in flight. work() does a piece of this rank's work, and
/// returns false if there is none now. Handlers may add work. This ends correctly: a rank takes part in a round of
/// quiesce only if it has no work, and work between two rounds either shows in its counts, or sent nothing and changed
/// nothing for other ranks.
template <typename Work>
Status until_all_idle(Runtime& runtime, Work work) {
  for (;;) {
    while (work()) {
    }
    const StatusCode code = runtime.try_quiesce();
    if (code == StatusCode::kOk) return {};
    if (code != StatusCode::kWouldBlock) return runtime.status();
  }
}

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace wherry::apps
