// SPDX-License-Identifier: Apache-2.0
// Steps that the ranks of every experiment share: begin and end together, retry a send, and notice that the job has
// failed. All throw std::runtime_error with the reason.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "base/clock.hpp"
#include "wherry/route.hpp"

namespace wherry::bench {

inline void check(const route::Runtime& runtime) {
  if (!runtime.status()) throw std::runtime_error(runtime.status().message());
}

inline void barrier(route::Runtime& runtime) {
  if (!runtime.reduce(std::uint64_t{0})) check(runtime);
}

inline void quiesce(route::Runtime& runtime) {
  if (Status s = runtime.quiesce(); !s) throw std::runtime_error(s.message());
}

/// Runs `turn`, which begins at the same time on all ranks; returns its seconds. It should end when all ranks are done.
template <typename Turn>
double seconds(route::Runtime& runtime, Turn&& turn) {
  barrier(runtime);
  const std::uint64_t start = now_ns();
  turn();
  return static_cast<double>(now_ns() - start) * 1e-9;
}

/// Polls until `condition()`.
template <typename Condition>
void poll_until(route::Runtime& runtime, Condition condition) {
  while (!condition()) {
    runtime.poll();
    check(runtime);
  }
}

/// Sends a message; polls and retries until it is accepted.
template <typename T, typename M>
void send(route::Runtime& runtime, route::Rank to, route::Handler<T> handler, const M& message) {
  while (runtime.try_send(to, handler, message) != StatusCode::kOk) {
    runtime.poll();
    check(runtime);
  }
}

/// Like send(), but adds to `blocked_ns` the time from the first refusal until the message was accepted.
template <typename T>
void send_counting(route::Runtime& runtime, route::Rank to, route::Handler<T> handler, const T& message,
                   std::uint64_t& blocked_ns) {
  if (runtime.try_send(to, handler, message) == StatusCode::kOk) return;
  const std::uint64_t start = now_ns();
  do {
    runtime.poll();
    check(runtime);
  } while (runtime.try_send(to, handler, message) != StatusCode::kOk);
  blocked_ns += now_ns() - start;
}

/// Statistics of a rank since the construction of this object.
class Span {
 public:
  explicit Span(const route::Runtime& runtime) : runtime_(runtime), before_(runtime.statistics()) {}
  /// Average bytes of a transfer.
  [[nodiscard]] double transfer_bytes() const {
    const route::Statistics now = runtime_.statistics();
    const std::uint64_t transfers = now.transfers - before_.transfers;
    return transfers == 0 ? 0 : static_cast<double>(now.bytes_out - before_.bytes_out) / static_cast<double>(transfers);
  }

 private:
  const route::Runtime& runtime_;
  route::Statistics before_;
};

}  // namespace wherry::bench
