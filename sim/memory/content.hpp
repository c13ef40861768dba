// SPDX-License-Identifier: Apache-2.0
// The content of a simulated memory, in 64-byte beats. Only written pages are allocated. Others read as zeros.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

namespace wherry::sim::memory {

inline constexpr std::size_t kBeatBytes = 64;
inline constexpr std::uint64_t kPageBytes = 4096;

/// The lowest bytes come first, as in Verilator.
using Beat = std::array<std::uint32_t, kBeatBytes / 4>;
/// Bit i: byte i counts.
using Strobes = std::uint64_t;
inline constexpr Strobes kAllBytes = ~Strobes{0};

/// One thread. Addresses are in bytes, without an upper limit; the memories' ports check their own.
class Content {
 public:
  /// `address` is rounded down to its beat.
  [[nodiscard]] Beat read(std::uint64_t address) const;
  void write(std::uint64_t address, const Beat& beat, Strobes strobes = kAllBytes);

  /// Direct access for a test or a host, with any alignment and length.
  void load(std::uint64_t address, std::span<const std::uint8_t> bytes);
  void dump(std::uint64_t address, std::span<std::uint8_t> bytes) const;

  [[nodiscard]] std::size_t pages() const noexcept { return pages_.size(); }

 private:
  using Page = std::array<Beat, kPageBytes / kBeatBytes>;
  [[nodiscard]] const Page* find(std::uint64_t number) const;
  [[nodiscard]] Page& make(std::uint64_t number);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  /// The page of the last access, because most accesses go to the same page.
  mutable std::uint64_t last_number_ = ~std::uint64_t{0};
  mutable Page* last_ = nullptr;
};

}  // namespace wherry::sim::memory
