// SPDX-License-Identifier: Apache-2.0
// Layout of the card's BAR 2, the only part of the card that a NIC sees. Offsets are in bytes. Queue q has its receive
// ring at q * kRingStride, and its transmit ring kTxRing bytes later.
#pragma once

#include <cstdint>

namespace wherry::sim {

inline constexpr std::uint32_t kBarBytes = 8U << 20;
inline constexpr std::uint32_t kRegisterBytes = 0x1'0000;  ///< of BAR 0, the registers
inline constexpr std::uint32_t kMaxQueues = 16;
inline constexpr std::uint32_t kRingStride = 0x2'0000;
inline constexpr std::uint32_t kTxRing = 0x1'0000;
inline constexpr std::uint32_t kRingBytes = 0x1'0000;  ///< of one ring: 4096 descriptors of 16 bytes
inline constexpr std::uint32_t kRingsEnd = kMaxQueues * kRingStride;
inline constexpr std::uint32_t kHeadWritebacks = 0x20'0000;  ///< kHeadStride bytes a queue
inline constexpr std::uint32_t kHeadStride = 64;
/// The transmit buffer, mapped twice in a row: a frame that crosses its end continues in the second image.
inline constexpr std::uint32_t kPack = 0x28'0000;
inline constexpr std::uint32_t kMaxPackBytes = 0x4'0000;
inline constexpr std::uint32_t kSlots = 0x40'0000;
inline constexpr std::uint32_t kSlotBytes = 2048;
inline constexpr std::uint32_t kMaxSlots = 2048;
/// A beat of the card's streams, and the unit of buffer allocation.
inline constexpr std::uint32_t kLineBytes = 64;
/// The longest frame that the card accepts, without FCS: 9,000 bytes of payload, headers and a VLAN tag.
inline constexpr std::uint32_t kMaxFrameBytes = 9018;

static_assert(kSlots + kMaxSlots * kSlotBytes == kBarBytes);
static_assert(kPack + 2 * kMaxPackBytes <= kSlots);

}  // namespace wherry::sim
