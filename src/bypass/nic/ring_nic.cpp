// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/ring_nic.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// Registers that are the same in all families: DPDK e1000/base/e1000_regs.h and ixgbe/base/ixgbe_type.h (STATUS, RAL,
// RAH, MTA, GPRC, GPTC).
constexpr std::uint32_t kStatus = 0x0008, kReceiveAddress = 0x5400, kMulticastTable = 0x5200, kGoodReceived = 0x4074,
                        kGoodSent = 0x4080;
constexpr std::uint32_t kReceiveAddresses = 16, kMulticastWords = 128;
constexpr std::uint32_t kAddressValid = 1U << 31;  // RAH.AV
// Registers of families that can spread over more than two queues: RXCSUM, MRQC, RETA, RSSRK (E1000_RETA, IXGBE_RETA,
// ...).
constexpr std::uint32_t kReceiveChecksum = 0x5000, kManyReceive = 0x5818, kIndirection = 0x5C00, kHashKey = 0x5C80;
constexpr std::uint32_t kHashInDescriptor = 1U << 13;  // RXCSUM.PCSD: the packet checksum excludes RSS (ixgbe_rxtx.c)
constexpr std::uint32_t kIndirections = 128, kKeyWords = 10;
/// MRQC: hashes over IPv4 and IPv6, alone, with TCP and with UDP. Fragments of a datagram have no ports, so they may go
/// to another pair than whole datagrams.
constexpr std::uint32_t kHashedFields = 1U << 16 | 1U << 17 | 1U << 20 | 1U << 21 | 1U << 22 | 1U << 23;
/// A key that repeats every 16 bits gives both directions of a flow the same hash: S. Woo, K. Park, Scalable TCP
/// Session Monitoring with Symmetric Receive-side Scaling, KAIST 2012, section 3.
constexpr std::uint32_t kSymmetricKey = 0x5A6D'5A6D;
constexpr auto kQueueLimit = 10ms;  // DPDK ixgbe/ixgbe_rxtx.c IXGBE_REGISTER_POLL_WAIT_10_MS

Status refused(const Personality& nic, std::string_view what, std::uint64_t value, std::string_view want) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {} {:#x}: want {}", nic.name, what, value, want)};
}

}  // namespace

Status RingNic::check(const NicSetup& setup) const {
  const Personality& nic = personality_;
  if (setup.pairs < 1 || setup.pairs > most_pairs())
    return {StatusCode::kInvalidArgument,
            fmt::format("{}: {} queue pairs: want 1 to {}", nic.name, setup.pairs, most_pairs())};
  if (setup.pairs > 1 && (setup.ring_stride == 0 || setup.ring_stride % nic.ring_align != 0))
    return refused(nic, "rings at a distance of", setup.ring_stride,
                   fmt::format("a multiple of {} bytes", nic.ring_align));
  for (const std::uint64_t base : {setup.rings.rx, setup.rings.tx})
    if (base % nic.ring_align != 0)
      return refused(nic, "ring at", base, fmt::format("a multiple of {} bytes", nic.ring_align));
  const auto entries = [&](std::uint32_t count, std::uint32_t multiple, std::string_view what) -> Status {
    if (count < nic.ring_min || count > nic.ring_max || count % multiple != 0)
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: {} ring of {} descriptors: want {} to {}, a multiple of {}", nic.name, what, count,
                          nic.ring_min, nic.ring_max, multiple)};
    return {};
  };
  WHERRY_TRY(entries(setup.rings.rx_entries, nic.rx_ring_multiple, "receive"));
  WHERRY_TRY(entries(setup.rings.tx_entries, nic.tx_ring_multiple, "transmit"));
  if (setup.slot_bytes == 0 || setup.slot_bytes % nic.rx_buffer_unit != 0 || setup.slot_bytes > nic.rx_buffer_max)
    return refused(nic, "slots of", setup.slot_bytes,
                   fmt::format("a multiple of {}, at most {} bytes", nic.rx_buffer_unit, nic.rx_buffer_max));
  if (setup.frame_bytes < 64 || setup.frame_bytes > nic.frame_max)
    return refused(nic, "frames of", setup.frame_bytes, fmt::format("64 to {} bytes", nic.frame_max));
  if (setup.loopback && !has_loopback())
    return {StatusCode::kInvalidArgument, fmt::format("{}: the NIC has no loopback", nic.name)};
  return {};
}

std::uint32_t RingNic::most_pairs() const noexcept { return std::min<std::uint32_t>(kMostPairs, personality_.queues); }

void RingNic::spread(std::uint32_t pairs, std::uint32_t enable) {
  if (pairs == 1) {
    registers_.write(kManyReceive, 0);
    registers_.write(kReceiveChecksum, 0);
    return;
  }
  for (std::uint32_t word = 0; word < kKeyWords; ++word) registers_.write(kHashKey + 4 * word, kSymmetricKey);
  for (std::uint32_t entry = 0; entry < kIndirections; entry += 4) {
    std::uint32_t four = 0;
    for (std::uint32_t i = 0; i < 4; ++i) four |= (entry + i) % pairs << (8 * i);
    registers_.write(kIndirection + entry, four);
  }
  registers_.write(kReceiveChecksum, kHashInDescriptor);
  registers_.write(kManyReceive, enable | kHashedFields);
}

void RingNic::write_ring(std::uint32_t offset, std::uint64_t base, std::uint32_t bytes) {
  registers_.write(offset + kRingBaseLow, static_cast<std::uint32_t>(base));
  registers_.write(offset + kRingBaseHigh, static_cast<std::uint32_t>(base >> 32));
  registers_.write(offset + kRingLength, bytes);
  registers_.write(offset + kRingHead, 0);
  registers_.write(offset + kRingTail, 0);
}

Status RingNic::disable_ring(std::uint32_t offset, std::string_view what) {
  registers_.write(offset + kRingControl, 0);
  if (!wait_for(registers_, offset + kRingControl, personality_.ring_enable_mask, 0, kQueueLimit, 100us))
    return silent(fmt::format("the {} queue does not stop", what));
  return {};
}

Status RingNic::enable_ring(std::uint32_t offset, std::uint32_t control, std::string_view what) {
  const std::uint32_t enable = personality_.ring_enable_mask;
  registers_.write(offset + kRingControl, control | enable);
  if (!wait_for(registers_, offset + kRingControl, enable, enable, kQueueLimit, 100us))
    return silent(fmt::format("the {} queue does not start", what));
  return {};
}

Status RingNic::read_mac() {
  const std::uint32_t low = registers_.read(kReceiveAddress), high = registers_.read(kReceiveAddress + 4);
  for (unsigned i = 0; i < 4; ++i) mac_[i] = static_cast<std::uint8_t>(low >> (8 * i));
  for (unsigned i = 0; i < 2; ++i) mac_[4 + i] = static_cast<std::uint8_t>(high >> (8 * i));
  if (mac_ == MacAddress{} || (mac_[0] & 1) != 0)
    return silent(fmt::format("its MAC address reads as {}: its EEPROM was not loaded", text_of(mac_)));
  return {};
}

void RingNic::clear_filters() {
  for (std::uint32_t i = 1; i < kReceiveAddresses; ++i) {
    registers_.write(kReceiveAddress + 8 * i, 0);
    registers_.write(kReceiveAddress + 8 * i + 4, 0);
  }
  for (std::uint32_t i = 0; i < kMulticastWords; ++i) registers_.write(kMulticastTable + 4 * i, 0);
  update(registers_, kReceiveAddress + 4, 0, kAddressValid);
}

Status RingNic::alive() {
  if (registers_.read(kStatus) == ~std::uint32_t{0})
    return silent("it does not answer: it was removed, or has no power");
  return {};
}

Status RingNic::silent(std::string_view what) const {
  return {StatusCode::kUnavailable, fmt::format("NIC ({}): {}", personality_.name, what)};
}

Progress RingNic::progress() {
  return {.rx_head = registers_.read(personality_.rx_ring_offset + kRingHead),
          .tx_head = registers_.read(personality_.tx_ring_offset + kRingHead),
          .received = registers_.read(kGoodReceived),
          .sent = registers_.read(kGoodSent)};
}

std::string text_of(const MacAddress& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

}  // namespace wherry::bypass
