// SPDX-License-Identifier: Apache-2.0
// The clocks of a measurement. On x86 with an invariant time stamp counter, a reading is one
// instruction (11 ns on the machine of docs/guide/probe.md); elsewhere it is clock_gettime(2).
#pragma once

#include <cstdint>
#include <string>

namespace wherry::probe {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  /// Nanoseconds since an arbitrary moment.
  [[nodiscard]] virtual std::uint64_t now_ns() noexcept = 0;
  /// The resolution of a reading, ns: the larger of its step and its cost.
  [[nodiscard]] virtual double resolution_ns() const noexcept = 0;
};

/// The machine's clock. Its constructor calibrates it against CLOCK_MONOTONIC_RAW for 20 ms.
class MachineClock final : public Clock {
 public:
  MachineClock();
  [[nodiscard]] std::uint64_t now_ns() noexcept override;
  [[nodiscard]] double resolution_ns() const noexcept override { return resolution_ns_; }
  /// "tsc" or "clock_gettime".
  [[nodiscard]] const char* name() const noexcept { return tsc_ ? "tsc" : "clock_gettime"; }
  /// The counter's rate; 0 if the counter is not used.
  [[nodiscard]] double ghz() const noexcept { return ghz_; }

 private:
  bool tsc_ = false;
  double ghz_ = 0;
  std::uint64_t scale_ = 0;  // ns = ticks * scale_ / 2^32
  std::uint64_t origin_ = 0;
  double resolution_ns_ = 1;
};

}  // namespace wherry::probe
