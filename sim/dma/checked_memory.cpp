// SPDX-License-Identifier: Apache-2.0
#include "sim/dma/checked_memory.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace wherry::sim::dma {

void CheckedMemory::open(std::uint64_t address, std::uint32_t bytes, std::uint64_t seed, std::uint64_t from) {
  const std::size_t begin = address - base_;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (state_[begin + i] != kNothing) std::abort();  // the test's own fault
    state_[begin + i] = kAwaited;
    expected_[begin + i] = source_byte(seed, from + i);
  }
}

std::string CheckedMemory::write(std::uint64_t address, std::uint8_t value) {
  const std::uint64_t at = address - base_;
  if (at >= state_.size()) return fmt::format("{}: a write to {:#x}, where nothing is", name_, address);
  if (state_[at] == kNothing) return fmt::format("{}: a write to {:#x} that no turn asked for", name_, address);
  if (state_[at] == kWritten) return fmt::format("{}: {:#x} was written twice", name_, address);
  state_[at] = kWritten;
  if (expected_[at] == value) return {};
  return fmt::format("{}: {:#x} became {:#04x} and not {:#04x}", name_, address, value, expected_[at]);
}

std::uint32_t CheckedMemory::close(std::uint64_t address, std::uint32_t bytes) {
  std::uint32_t written = 0;
  for (std::size_t at = address - base_; bytes != 0; ++at, --bytes) {
    if (state_[at] == kWritten) ++written;
    state_[at] = kNothing;
  }
  return written;
}

}  // namespace wherry::sim::dma
