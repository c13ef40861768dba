// SPDX-License-Identifier: Apache-2.0
// The card's BARs, and the structures in memory that software and engine write for each other (docs/design/dma.md,
// "Formats"). The structures are little endian, like this machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace wherry::dma {

static_assert(std::endian::native == std::endian::little);

inline constexpr unsigned kRegisterBar = 0, kBellBar = 2;
inline constexpr std::uint64_t kBellBytes = 4096;  ///< 64 of each ring, 8 rings, and their like again
inline constexpr unsigned kRings = 8;              ///< 0 to 3 to the card, 4 to 7 to the host
inline constexpr unsigned kMostChannels = 4;
inline constexpr std::size_t kBellStride = 64, kTailOffset = 32;
inline constexpr std::size_t kStatusStride = 64;  ///< of the status words
inline constexpr std::size_t kPageBytes = 4096;   ///< a packet's buffer lies in one
/// The engine's buffer for requested data to the card: H2cLines lines of 64 bytes (hdl/dma/dma_engine.sv).
inline constexpr std::uint32_t kMostAhead = 512 * 64;
inline constexpr std::uint32_t kMostBytes = (1U << 28) - 1;  ///< of a descriptor

enum class Direction : std::uint8_t { kToCard, kToHost };
[[nodiscard]] constexpr unsigned ring_number(Direction direction, unsigned channel) noexcept {
  return (direction == Direction::kToHost ? kMostChannels : 0) + channel;
}

/// The reason why a transfer failed; the same as error_e of hdl/dma/dma_pkg.sv.
enum class Error : std::uint8_t {
  kNone,
  kUnsupported,  ///< PCIe: unsupported request
  kAborted,      ///< PCIe: completer abort
  kPoisoned,     ///< PCIe: data marked as wrong
  kTimeout,      ///< PCIe: no completion in time
  kMalformed,    ///< a completion of the wrong size, or a descriptor that cannot be
  kMemory,       ///< the card's memory refused it
  kReset,        ///< the function, or the ring, was reset before it was done
};
[[nodiscard]] std::string_view to_string(Error error) noexcept;

struct Descriptor {
  std::uint64_t host = 0;  ///< bus address (IOVA)
  std::uint64_t card = 0;
  std::uint32_t bytes = 0;  ///< 1 to kMostBytes
  std::uint32_t flags = 0;
  std::uint64_t cookie = 0;
};
inline constexpr std::uint32_t kFlagStream = 1U << 0, kFlagInterrupt = 1U << 1, kFlagEndOfPacket = 1U << 2;
inline constexpr std::size_t kDescriptorBytes = 32;
static_assert(sizeof(Descriptor) == kDescriptorBytes);

/// A status word, or a packet entry.
struct StatusWord {
  std::uint32_t count = 0;
  std::uint32_t flags = 0;
  std::uint32_t bytes = 0;
  std::uint32_t spare = 0;
  [[nodiscard]] Error error() const noexcept { return static_cast<Error>(flags & 7); }
  [[nodiscard]] bool stopped() const noexcept { return (flags >> 3 & 1) != 0; }
  [[nodiscard]] bool end_of_packet() const noexcept { return (flags >> 4 & 1) != 0; }
};
inline constexpr std::size_t kStatusWordBytes = 16;
static_assert(sizeof(StatusWord) == kStatusWordBytes);

}  // namespace wherry::dma
