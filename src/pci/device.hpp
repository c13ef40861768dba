// SPDX-License-Identifier: Apache-2.0
// A PCI function as a driver in user space sees it: registers, doorbells, shared memory, interrupts, reset. The
// function is accessed through VFIO (vfio_function.hpp) or simulated (sim/card); the driver does not know which.
//
// One thread. Time is the device's time: of the clock, or simulated.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wherry/status.hpp"

namespace wherry::pci {

/// Memory of this process that the function can reach at `iova`. It lives as long as the Device.
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

  /// A register of a BAR, 4 bytes, aligned. If the function does not answer, reads give all ones and writes are lost.
  [[nodiscard]] virtual std::uint32_t read32(unsigned bar, std::uint64_t offset) = 0;
  virtual void write32(unsigned bar, std::uint64_t offset, std::uint32_t value) = 0;
  /// Writes up to 64 bytes that do not cross a multiple of 64, as one write if the processor can (write-combining),
  /// after all earlier writes of this thread to memory. Size and offset are multiples of 4.
  virtual void write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) = 0;

  /// Sets whether the function may access memory and send interrupts.
  virtual Status set_bus_master(bool on) = 0;
  /// Function-level reset: registers get their reset values; vectors and bus mastering stay as they were. kUnsupported:
  /// the function has no such reset.
  virtual Status reset() = 0;
  /// Allocates zeroed whole pages, at a multiple of 4 KiB. kResourceExhausted.
  virtual Result<DmaMemory> allocate(std::size_t bytes) = 0;
  /// Sets the MSI-X vectors from 0 on: each increments the eventfd at its index. An empty list switches interrupts off.
  /// The caller keeps the descriptors.
  virtual Status set_vectors(std::span<const int> eventfds) = 0;

  [[nodiscard]] virtual std::chrono::nanoseconds now() const = 0;
  /// Waits at most this time. A driver that polls calls it between polls.
  virtual void pause(std::chrono::nanoseconds most) = 0;
  /// Sleeps until the eventfd can be read. False: `most` is over.
  [[nodiscard]] virtual bool wait(int eventfd, std::chrono::nanoseconds most) = 0;
};

}  // namespace wherry::pci
