// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

/// Counts a kernel event (perf_event_open(2)) in user mode, in the calling thread and in the threads and processes that
/// it starts later.
class EventCounter {
 public:
  /// Last-level cache misses, if the kernel has a counter for them: PERF_COUNT_HW_CACHE_MISSES.
  static EventCounter cache_misses();
  /// `type` and `config` as in perf_event_attr. Starts to count. If the kernel refuses, there is no count, and
  /// missing() returns the reason.
  EventCounter(std::uint32_t type, std::uint64_t config);
  EventCounter(EventCounter&& other) noexcept;
  EventCounter& operator=(EventCounter&&) = delete;
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;
  ~EventCounter();

  /// Events so far; nullopt if there is no count (see missing()). If the kernel multiplexed the counter, the count is
  /// scaled to the whole time.
  [[nodiscard]] std::optional<std::uint64_t> read();
  /// The reason why there is no count; empty if there is one.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }

 private:
  int fd_ = -1;
  std::string missing_;
};

/// Scales `count`, measured in `running` ns, to `enabled` ns; nullopt if `running` is 0.
std::optional<std::uint64_t> scaled(std::uint64_t count, std::uint64_t enabled, std::uint64_t running) noexcept;
/// Explains an `error` of perf_event_open, with the remedy. `paranoid`: kernel.perf_event_paranoid, if known.
std::string why_not_counted(int error, std::optional<int> paranoid);

}  // namespace wherry
