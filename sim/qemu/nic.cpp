// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/nic.hpp"

#include <fmt/core.h>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "sim/bypass/layout.hpp"

namespace wherry::sim {
namespace {

// 82574 datasheet 2.5, chapter 10, and 82576 datasheet 2.63, chapter 8; the same in both unless a comment says which.
constexpr std::uint32_t kCtrl = 0x0000;
constexpr std::uint32_t kSetLinkUp = 1U << 6;
constexpr std::uint32_t kReset = 1U << 26;
constexpr std::uint32_t kStatus = 0x0008;
constexpr std::uint32_t kLinkUp = 1U << 1;
constexpr std::uint32_t kMdic = 0x0020;
constexpr std::uint32_t kInterruptMaskClear = 0x00D8;
constexpr std::uint32_t kRctl = 0x0100;
/// Enable; promiscuous for unicast and multicast; long packets; broadcast; strip the CRC. BSIZE 0: 2048 bytes.
constexpr std::uint32_t kReceive = 1U << 1 | 1U << 3 | 1U << 4 | 1U << 5 | 1U << 15 | 1U << 26;
constexpr std::uint32_t kTctl = 0x0400;
constexpr std::uint32_t kTransmit = 1U << 1 | 1U << 3;  ///< enable; pad short packets
constexpr std::uint32_t kLongPacketMax = 0x5004;        ///< 82576: RLPML, bytes with CRC
constexpr std::uint32_t kFilterControl = 0x5008;        ///< 82574: RFCTL
constexpr std::uint32_t kExtendedDescriptors = 1U << 15;
constexpr std::uint32_t kOneBuffer = 1U << 25;  ///< 82576: SRRCTL.DESCTYPE 1, advanced descriptors without headers

// Of a ring, from its base address register on.
constexpr std::uint32_t kBaseHigh = 0x04;
constexpr std::uint32_t kLength = 0x08;
constexpr std::uint32_t kHead = 0x10;
constexpr std::uint32_t kTail = 0x18;
constexpr std::uint32_t kControl = 0x28;

/// MDIC: write PHY register 0 (IEEE 802.3, 22.2.4.1) of PHY 1: auto-negotiation on, and restarted.
constexpr std::uint32_t kRestartNegotiation = 1U << 26 | 1U << 21 | 0x1200;
constexpr std::uint32_t kMdicReady = 1U << 28;

constexpr std::uint32_t kDescriptorBytes = 16;
constexpr std::uint32_t kCrcBytes = 4;
constexpr std::chrono::seconds kNicPatience{60};

}  // namespace

Status NicDriver::change(std::uint32_t offset, std::uint32_t clear, std::uint32_t set) {
  WHERRY_ASSIGN(const std::uint32_t value, registers_.read(offset));
  return registers_.write(offset, (value & ~clear) | set);
}

template <typename Wanted>
Status NicDriver::wait_until(std::uint32_t offset, const Wanted& wanted, const char* what) {
  for (const Deadline deadline(kNicPatience);;) {
    WHERRY_ASSIGN(const std::uint32_t now, registers_.read(offset));
    if (wanted(now)) return {};
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded, fmt::format("the NIC's {}: register {:#x} is {:#x}", what, offset, now)};
    WHERRY_TRY(registers_.pause(1));
  }
}

Status NicDriver::wait_for(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, const char* what) {
  return wait_until(offset, [=](std::uint32_t now) { return (now & mask) == value; }, what);
}

Status NicDriver::stop() {
  WHERRY_TRY(registers_.write(kRctl, 0));
  return registers_.write(kTctl, 0);
}

Status NicDriver::reset() {
  WHERRY_TRY(stop());
  WHERRY_TRY(registers_.write(kInterruptMaskClear, ~0U));
  WHERRY_TRY(change(kCtrl, 0, kReset));
  WHERRY_TRY(wait_for(kCtrl, kReset, 0, "reset does not end"));
  return registers_.write(kInterruptMaskClear, ~0U);
}

Status NicDriver::hit_reset() { return change(kCtrl, 0, kReset); }

Status NicDriver::set_up_ring(std::uint32_t first, std::uint64_t base, std::uint32_t bytes) {
  WHERRY_TRY(registers_.write(first, static_cast<std::uint32_t>(base)));
  WHERRY_TRY(registers_.write(first + kBaseHigh, static_cast<std::uint32_t>(base >> 32)));
  WHERRY_TRY(registers_.write(first + kLength, bytes));
  WHERRY_TRY(registers_.write(first + kHead, 0));
  return registers_.write(first + kTail, 0);
}

Status NicDriver::start_ring(std::uint32_t first) {
  if (!has_own_queues()) return {};
  WHERRY_TRY(change(first + kControl, 0, nic_.ring_enable_mask));
  return wait_for(first + kControl, nic_.ring_enable_mask, nic_.ring_enable_mask, "queue does not start");
}

Status NicDriver::negotiate_link() {
  WHERRY_TRY(change(kCtrl, 0, kSetLinkUp));
  if (has_own_queues()) {  // the 82576's PHY waits for its driver
    WHERRY_TRY(registers_.write(kMdic, kRestartNegotiation));
    WHERRY_TRY(wait_for(kMdic, kMdicReady, kMdicReady, "PHY does not answer"));
  }
  return wait_for(kStatus, kLinkUp, kLinkUp, "link does not come up");
}

Status NicDriver::set_up(const NicRings& rings) {
  WHERRY_TRY(stop());
  WHERRY_TRY(set_up_ring(nic_.rx_ring_offset, rings.rx, rings.rx_entries * kDescriptorBytes));
  WHERRY_TRY(set_up_ring(nic_.tx_ring_offset, rings.tx, rings.tx_entries * kDescriptorBytes));
  if (nic_.rx_buffer_offset != 0) {
    WHERRY_TRY(registers_.write(nic_.rx_buffer_offset, kOneBuffer | kSlotBytes / nic_.rx_buffer_unit));
    WHERRY_TRY(registers_.write(kLongPacketMax, kMaxFrameBytes + kCrcBytes));
  } else {
    WHERRY_TRY(change(kFilterControl, 0, kExtendedDescriptors));
  }
  WHERRY_TRY(start_ring(nic_.rx_ring_offset));
  WHERRY_TRY(start_ring(nic_.tx_ring_offset));
  return negotiate_link();
}

Status NicDriver::start() {
  WHERRY_TRY(wait_until(nic_.rx_tail_offset, [](std::uint32_t tail) { return tail != 0; }, "receive tail stays 0"));
  WHERRY_TRY(registers_.write(kRctl, kReceive));
  return registers_.write(kTctl, kTransmit);
}

Result<bool> NicDriver::link_up() {
  WHERRY_ASSIGN(const std::uint32_t status, registers_.read(kStatus));
  return (status & kLinkUp) != 0;
}

}  // namespace wherry::sim
