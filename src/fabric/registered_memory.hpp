// SPDX-License-Identifier: Apache-2.0
// The memory that a process has registered, for a transport that does not record that itself (TCP). A peer may read
// only this memory.
#pragma once

#include <cstdint>
#include <map>

namespace wherry::fabric {

class RegisteredMemory {
 public:
  void add(std::uint64_t address, std::uint64_t bytes) { regions_.emplace(address, bytes); }
  /// Removes one registration of exactly this memory.
  void remove(std::uint64_t address, std::uint64_t bytes) noexcept {
    for (auto [it, end] = regions_.equal_range(address); it != end; ++it) {
      if (it->second != bytes) continue;
      regions_.erase(it);
      return;
    }
  }
  /// Whether all of this memory lies in one registration.
  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    if (address + bytes < address) return false;
    for (auto it = regions_.upper_bound(address); it != regions_.begin();) {
      --it;
      if (address - it->first <= it->second && bytes <= it->second - (address - it->first)) return true;
    }
    return false;
  }

 private:
  std::multimap<std::uint64_t, std::uint64_t> regions_;  ///< size by address
};

}  // namespace wherry::fabric
