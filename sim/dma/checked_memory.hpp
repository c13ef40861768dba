// SPDX-License-Identifier: Apache-2.0
// Memory that a DMA engine writes. It knows each expected byte, and accepts it only once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace wherry::sim::dma {

/// The content of a source at an address: a hash, which needs no memory and differs between addresses.
[[nodiscard]] inline std::uint8_t source_byte(std::uint64_t seed, std::uint64_t address) {
  return static_cast<std::uint8_t>(splitmix64(seed, address / 8) >> (address % 8 * 8));
}

class CheckedMemory {
 public:
  CheckedMemory(std::string name, std::uint64_t base, std::size_t bytes)
      : name_(std::move(name)), base_(base), state_(bytes, kNothing), expected_(bytes) {}

  /// Allows the writing of `bytes` from `address` on, with the bytes of a source.
  void open(std::uint64_t address, std::uint32_t bytes, std::uint64_t seed, std::uint64_t from);
  /// Returns why this byte is wrong; empty if it is right.
  [[nodiscard]] std::string write(std::uint64_t address, std::uint8_t value);
  /// Ends the writing of the range, and returns how many of its bytes were written.
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
