// SPDX-License-Identifier: Apache-2.0
// Threads that make blocking calls for a path, one for each slot, so that several calls run concurrently.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "probe/path.hpp"

namespace wherry::probe {

/// One thread uses this object. Memory is allocated only in start().
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// `work(slot)` runs in the slot's thread, and returns 0 or an errno. With one slot it runs within post().
  void start(unsigned slots, std::function<int(unsigned)> work);
  /// Returns false if the slot is in use.
  bool post(unsigned slot);
  /// Returns the number of ended slots, and writes them. `error`: the first errno. `wait`: waits for one slot in use.
  unsigned poll(std::span<unsigned> done, bool wait, int& error);
  /// CPU time of the threads up to the last ended transfer.
  [[nodiscard]] Path::CpuTime cpu_time() const;
  /// Waits for calls in progress.
  void stop() noexcept;

 private:
  enum State : std::uint32_t { kFree, kPosted, kEnded, kStop };
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> state{kFree};
    int error = 0;
    std::atomic<std::uint64_t> user_ns{0}, system_ns{0};
    std::thread thread;
  };
  void run(Slot& slot, unsigned index);

  std::function<int(unsigned)> work_;
  std::unique_ptr<Slot[]> slots_;
  unsigned count_ = 0, under_way_ = 0;
  std::atomic<std::uint32_t> ended_{0};
};

}  // namespace wherry::probe
