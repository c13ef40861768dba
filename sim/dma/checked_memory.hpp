// SPDX-License-Identifier: Apache-2.0
// Memory that a DMA engine writes: it knows each byte that must come, and that it may come once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace wherry::sim::dma {

/// The content of a source at an address: a hash, so no memory is needed, and addresses differ.
[[nodiscard]] inline std::uint8_t source_byte(std::uint64_t seed, std::uint64_t address) {
  return static_cast<std::uint8_t>(splitmix64(seed, address / 8) >> (address % 8 * 8));
}

class CheckedMemory {
 public:
  CheckedMemory(std::string name, std::uint64_t base, std::size_t bytes)
      : name_(std::move(name)), base_(base), state_(bytes, kNothing), expected_(bytes) {}

  /// From now on `bytes` from `address` on may be written, with those of a source.
  void open(std::uint64_t address, std::uint32_t bytes, std::uint64_t seed, std::uint64_t from);
  /// Empty, or why this byte is wrong.
  [[nodiscard]] std::string write(std::uint64_t address, std::uint8_t value);
  /// Bytes of the range that were written; it may be written no more.
  std::uint32_t close(std::uint64_t address, std::uint32_t bytes);
  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::size_t size() const { return state_.size(); }

 private:
  enum State : std::uint8_t { kNothing, kAwaited, kWritten };
  std::string name_;
  std::uint64_t base_;
  std::vector<State> state_;
  std::vector<std::uint8_t> expected_;
};

}  // namespace wherry::sim::dma
