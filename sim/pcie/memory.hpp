// SPDX-License-Identifier: Apache-2.0
// Host memory: pages are created when they are written, and others read as zeros. Ranges may be memory of the caller,
// as a program's own memory is part of the host's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

/// Told of writes that devices made. In the call the memory already holds the data.
class MemoryWatcher {
 public:
  virtual void on_memory_write(std::uint64_t address, std::uint32_t bytes) = 0;

 protected:
  ~MemoryWatcher() = default;
};

class HostMemory {
 public:
  explicit HostMemory(std::uint64_t bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
  /// Precondition of both: the range lies within size().
  void read(std::uint64_t address, std::span<std::byte> into) const;
  void write(std::uint64_t address, std::span<const std::byte> data);
  /// From now on the range is `by`, which must outlive the memory. Precondition: whole pages within size(), of no other
  /// such range.
  void back(std::uint64_t address, std::span<std::byte> by);
  /// Writes of devices that touch the range. `watcher` must outlive the memory.
  void watch(std::uint64_t address, std::uint64_t bytes, MemoryWatcher& watcher);
  /// As write(), and tells the watchers.
  void device_write(std::uint64_t address, std::span<const std::byte> data);

 private:
  using Page = std::array<std::byte, kPageBytes>;
  struct Watch {
    std::uint64_t begin, end;
    MemoryWatcher* watcher;
  };
  struct Backed {
    std::uint64_t begin, end;
    std::byte* memory;
  };
  /// Where the byte is, if it is the caller's memory; null: a page's.
  [[nodiscard]] std::byte* backed(std::uint64_t address) const noexcept;

  std::uint64_t bytes_;
  std::vector<Backed> backed_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<Watch> watches_;
};

}  // namespace wherry::sim::pcie
