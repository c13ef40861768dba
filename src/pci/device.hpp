// SPDX-License-Identifier: Apache-2.0
// A PCI function as a driver in user space sees it: registers, doorbells, common memory, interrupts, reset. It is
// behind VFIO (vfio_function.hpp) or in a simulation (sim/card), and a driver does not know which.
//
// One thread. Time is the device's: the clock's, or simulated.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wherry/status.hpp"

namespace wherry::pci {

/// Memory of this process that the function reaches at `iova`. It lives as long as the Device.
struct DmaMemory {
  std::span<std::byte> bytes;
  std::uint64_t iova = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// A register of a BAR, 4 bytes, aligned. A function that does not answer reads as all ones, and ignores writes.
  [[nodiscard]] virtual std::uint32_t read32(unsigned bar, std::uint64_t offset) = 0;
  virtual void write32(unsigned bar, std::uint64_t offset, std::uint32_t value) = 0;
  /// Up to 64 bytes that do not cross a multiple of 64, in one write if the processor can (write-combining), after
  /// everything that this thread has written to memory. Size and offset are multiples of 4.
  virtual void write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) = 0;

  /// Whether the function may access memory, and send interrupts.
  virtual Status set_bus_master(bool on) = 0;
  /// Function-level reset. Registers get their reset values. Vectors and bus mastering stay as they were. kUnsupported:
  /// the function has none.
  virtual Status reset() = 0;
  /// Zeroed, in whole pages, at a multiple of 4 KiB. kResourceExhausted.
  virtual Result<DmaMemory> allocate(std::size_t bytes) = 0;
  /// MSI-X vectors from 0 on: each counts up the eventfd with its number. An empty list switches interrupts off. The
  /// descriptors stay the caller's.
  virtual Status set_vectors(std::span<const int> eventfds) = 0;

  [[nodiscard]] virtual std::chrono::nanoseconds now() const = 0;
  /// Lets at most this much time pass. A driver that polls calls it in between.
  virtual void pause(std::chrono::nanoseconds most) = 0;
  /// Sleeps until the eventfd can be read. False: that much time has passed.
  [[nodiscard]] virtual bool wait(int eventfd, std::chrono::nanoseconds most) = 0;
};

}  // namespace wherry::pci
