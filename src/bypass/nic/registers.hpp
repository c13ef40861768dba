// SPDX-License-Identifier: Apache-2.0
// A NIC's registers: through VFIO, in QEMU, or in a test model.
#pragma once

#include <chrono>
#include <cstdint>

namespace wherry::bypass {

class Registers {
 public:
  Registers() = default;
  Registers(const Registers&) = delete;
  Registers& operator=(const Registers&) = delete;
  virtual ~Registers() = default;
  /// Reads BAR 0 at an aligned byte offset. Returns all ones if there is no NIC.
  [[nodiscard]] virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;
  /// Waits at least this time.
  virtual void pause(std::chrono::microseconds time) = 0;
};

/// Reads until `(value & mask) == wanted`. False: this did not happen within `limit`.
inline bool wait_for(Registers& registers, std::uint32_t offset, std::uint32_t mask, std::uint32_t wanted,
                     std::chrono::microseconds limit, std::chrono::microseconds step) {
  for (std::chrono::microseconds waited{0};; waited += step) {
    if ((registers.read(offset) & mask) == wanted) return true;
    if (waited >= limit) return false;
    registers.pause(step);
  }
}

/// Changes some bits.
inline void update(Registers& registers, std::uint32_t offset, std::uint32_t clear, std::uint32_t set) {
  registers.write(offset, (registers.read(offset) & ~clear) | set);
}

}  // namespace wherry::bypass
