// SPDX-License-Identifier: Apache-2.0
// Host memory. Pages are created when they are written; others read as zeros. A range may be memory of the caller, as a
// program's own memory is part of the host's.
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

/// Learns of the writes that devices made. During the call, the memory already holds the data.
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
  /// Precondition of both calls: the range lies within size().
  void read(std::uint64_t address, std::span<std::byte> into) const;
  void write(std::uint64_t address, std::span<const std::byte> data);
  /// From now on the range is the memory `by`, which must outlive this object. Precondition: whole pages within size()
  /// that are not in another such range.
  void back(std::uint64_t address, std::span<std::byte> by);
  /// Reports to `watcher` the writes of devices that touch the range. It must outlive the memory.
  void watch(std::uint64_t address, std::uint64_t bytes, MemoryWatcher& watcher);
  /// Like write(), and informs the watchers.
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
  /// The byte's place if it is in the caller's memory; null if it is in a page.
  [[nodiscard]] std::byte* backed(std::uint64_t address) const noexcept;

  std::uint64_t bytes_;
  std::vector<Backed> backed_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<Watch> watches_;
};

}  // namespace wherry::sim::pcie
