// SPDX-License-Identifier: Apache-2.0
// Descriptors of the NICs in generated/personalities.hpp. Both sides, driver and NIC, are written and read with these
// pure functions of 16 bytes. The rest of a 32-byte receive descriptor must be zero for the NIC; it is ignored here.
//
// Preconditions: values fit their fields (for example, a length is below 1 << tx_length_bits). A too large value from a
// hostile NIC is truncated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bypass/generated/personalities.hpp"

namespace wherry::bypass {

/// The first 16 bytes of a descriptor, as two little-endian quad words.
struct Descriptor {
  std::uint64_t low = 0;   ///< bits 63:0
  std::uint64_t high = 0;  ///< bits 127:64
  friend constexpr bool operator==(const Descriptor&, const Descriptor&) = default;
};

inline constexpr std::size_t kDescriptorBytes = 16;

constexpr void store(const Descriptor& descriptor, std::span<std::byte, kDescriptorBytes> out) noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<std::byte>(descriptor.low >> (8 * i) & 0xFF);
    out[8 + i] = static_cast<std::byte>(descriptor.high >> (8 * i) & 0xFF);
  }
}
[[nodiscard]] constexpr Descriptor load(std::span<const std::byte, kDescriptorBytes> in) noexcept {
  Descriptor descriptor;
  for (std::size_t i = 8; i-- > 0;) {
    descriptor.low = descriptor.low << 8 | std::to_integer<std::uint64_t>(in[i]);
    descriptor.high = descriptor.high << 8 | std::to_integer<std::uint64_t>(in[8 + i]);
  }
  return descriptor;
}

/// Extracts `bits` (at most 32) of the 128 bits, from bit `low` on. The field must not cross bit 64.
[[nodiscard]] constexpr std::uint32_t field_of(const Descriptor& descriptor, unsigned low, unsigned bits) noexcept {
  const std::uint64_t word = low < 64 ? descriptor.low >> low : descriptor.high >> (low - 64);
  return static_cast<std::uint32_t>(word & ((std::uint64_t{1} << bits) - 1));
}
constexpr void set_field(Descriptor& descriptor, unsigned low, unsigned bits, std::uint64_t value) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t& word = low < 64 ? descriptor.low : descriptor.high;
  word = (word & ~(mask << low % 64)) | (value & mask) << low % 64;
}

// Receive: the driver writes an address, and the NIC overwrites it with its report.

/// The driver's form: the packet's address, and no header address (0, because the NIC writes DD there).
[[nodiscard]] constexpr Descriptor make_rx(std::uint64_t address) noexcept { return {address, 0}; }

struct RxDone {
  std::uint32_t bytes = 0;   ///< in this buffer
  std::uint32_t errors = 0;  ///< bits of rx_error_mask
  bool end = false;          ///< the frame ends here
};
[[nodiscard]] constexpr bool rx_done(const Personality& nic, const Descriptor& descriptor) noexcept {
  return field_of(descriptor, nic.rx_done_bit, 1) != 0;
}
/// Precondition: rx_done().
[[nodiscard]] constexpr RxDone read_rx(const Personality& nic, const Descriptor& descriptor) noexcept {
  return {.bytes = field_of(descriptor, nic.rx_length_low, nic.rx_length_bits),
          .errors = static_cast<std::uint32_t>(descriptor.high) & nic.rx_error_mask,
          .end = field_of(descriptor, nic.rx_eop_bit, 1) != 0};
}
/// The form that the NIC writes back.
[[nodiscard]] constexpr Descriptor make_rx_done(const Personality& nic, const RxDone& done) noexcept {
  Descriptor descriptor;
  set_field(descriptor, nic.rx_length_low, nic.rx_length_bits, done.bytes);
  descriptor.high |= done.errors & nic.rx_error_mask;
  set_field(descriptor, nic.rx_done_bit, 1, 1);
  set_field(descriptor, nic.rx_eop_bit, 1, done.end ? 1 : 0);
  return descriptor;
}

// Transmit.

enum class TxKind : std::uint8_t { kData, kContext, kOther };
struct TxPart {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  ///< of this buffer
  std::uint32_t total = 0;  ///< of the frame; only where the NIC has the field
  bool end = false;         ///< EOP
  bool report = false;      ///< RS
  TxKind kind = TxKind::kData;
};
[[nodiscard]] constexpr Descriptor make_tx(const Personality& nic, const TxPart& part) noexcept {
  Descriptor descriptor{part.address, nic.tx_data_word};
  set_field(descriptor, nic.tx_length_low, nic.tx_length_bits, part.bytes);
  if (nic.tx_total_bits != 0) set_field(descriptor, nic.tx_total_low, nic.tx_total_bits, part.total);
  if (part.end) descriptor.high |= nic.tx_eop_mask;
  if (part.report) descriptor.high |= nic.tx_rs_mask;
  return descriptor;
}
[[nodiscard]] constexpr TxPart read_tx(const Personality& nic, const Descriptor& descriptor) noexcept {
  const std::uint64_t type = descriptor.high & nic.tx_type_mask;
  return {.address = descriptor.low,
          .bytes = field_of(descriptor, nic.tx_length_low, nic.tx_length_bits),
          .total = nic.tx_total_bits != 0 ? field_of(descriptor, nic.tx_total_low, nic.tx_total_bits) : 0,
          .end = (descriptor.high & nic.tx_eop_mask) != 0,
          .report = (descriptor.high & nic.tx_rs_mask) != 0,
          .kind = type == nic.tx_type_data      ? TxKind::kData
                  : type == nic.tx_type_context ? TxKind::kContext
                                                : TxKind::kOther};
}
[[nodiscard]] constexpr bool tx_done(const Personality& nic, const Descriptor& descriptor) noexcept {
  return (descriptor.high & nic.tx_done_mask) == nic.tx_done_value;
}
/// The form that the NIC writes back: only the done mark.
[[nodiscard]] constexpr Descriptor make_tx_done(const Personality& nic) noexcept { return {0, nic.tx_done_value}; }

}  // namespace wherry::bypass
