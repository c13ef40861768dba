// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

/// Counts an event of the kernel's (perf_event_open(2)) in user mode, in the calling thread and in threads and
/// processes that it starts later.
class EventCounter {
 public:
  /// Last-level cache misses, if the kernel has a counter for them: PERF_COUNT_HW_CACHE_MISSES.
  static EventCounter cache_misses();
  /// `type` and `config` as in perf_event_attr. Counts from now on. If the kernel refuses, it counts nothing, and
  /// missing() says why.
  EventCounter(std::uint32_t type, std::uint64_t config);
  EventCounter(EventCounter&& other) noexcept;
  EventCounter& operator=(EventCounter&&) = delete;
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;
  ~EventCounter();

  /// Events so far; nullopt: see missing(). If the kernel multiplexed the counter, the count is scaled to the whole
  /// time.
  [[nodiscard]] std::optional<std::uint64_t> read();
  /// The reason if there is no count, else empty.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }

 private:
  int fd_ = -1;
  std::string missing_;
};

/// Scales `count`, which was taken in `running` of `enabled` nanoseconds; nullopt if `running` is 0.
std::optional<std::uint64_t> scaled(std::uint64_t count, std::uint64_t enabled, std::uint64_t running) noexcept;
/// The meaning of perf_event_open's `error`, and the remedy. `paranoid`: kernel.perf_event_paranoid, if known.
std::string why_not_counted(int error, std::optional<int> paranoid);

}  // namespace wherry
