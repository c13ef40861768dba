// SPDX-License-Identifier: Apache-2.0
// Which memory a process has registered, where no transport keeps that itself (TCP): a peer may read this and no other.
#pragma once

#include <cstdint>
#include <map>

namespace wherry::fabric {

class RegisteredMemory {
 public:
  void add(std::uint64_t address, std::uint64_t bytes) { regions_.emplace(address, bytes); }
  /// One registration of exactly this memory.
  void remove(std::uint64_t address, std::uint64_t bytes) noexcept {
    for (auto [it, end] = regions_.equal_range(address); it != end; ++it) {
      if (it->second != bytes) continue;
      regions_.erase(it);
      return;
    }
  }
  /// Whether all of it lies in one registration.
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
