// SPDX-License-Identifier: Apache-2.0
// The application's side of BenchService.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/cpu.hpp"
#include "fabric/fabric.hpp"
#include "messages.hpp"
#include "wherry/session.hpp"

namespace wherry::bench {

/// Keeps the application's core busy, as an application that waits for an offload does. Two virtual cores may be two
/// threads of one real core. An agent whose neighbour sleeps in a system call is up to a fifth faster, which would
/// distort the measurement. The thread inherits the core of its creator.
class Busy {
 public:
  Busy() : thread_([this] { spin(); }) {}
  ~Busy() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  void spin() const noexcept {
    while (!stop_.load(std::memory_order_relaxed)) cpu_relax();
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Blocking calls over the control connection; one thread. Throws std::runtime_error.
class Remote {
 public:
  explicit Remote(Session& session) noexcept : session_(session) {}

  /// Makes memory known to BenchService. Returns its id. `region` may be freed after detach().
  std::uint32_t attach(const fabric::Region& region);
  void detach(std::uint32_t id);
  /// Nanoseconds of each repetition, on the agent's clock.
  std::vector<double> run(const WorkRequest& request);
  /// Frees BenchService's buffers.
  void release();

 private:
  Bytes call(std::string_view method, ByteView payload);
  Session& session_;
  std::uint32_t next_id_ = 1;
};

}  // namespace wherry::bench
