// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/igb.hpp"

#include <array>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// DPDK e1000/base/e1000_regs.h. Offsets of a ring's registers: SRRCTL, DCA_RXCTRL and DCA_TXCTRL, DVMOLR.
constexpr std::uint32_t kExtendedInterruptClear = 0x1528, kLongest = 0x5004, kSemaphore = 0x5B50, kShared = 0x5B5C,
                        kPcie = 0x5B00;
constexpr std::uint32_t kRepeatReads = 1U << 16;  // GCR, e1000_82575.c set_pcie_completion_timeout: off
constexpr std::uint32_t kAccess = 0x14, kOffload = 0x38;
constexpr std::uint32_t kSpread = 2;            // MRQC, E1000_MRQC_ENABLE_RSS_8Q
constexpr std::uint32_t kOneBuffer = 1U << 25;  // SRRCTL.DESCTYPE (e1000_base.h)
constexpr std::uint32_t kRelaxed =
    1U << 9 | 1U << 11 | 1U << 13 | 1U << 15;                      // DCA_RXCTRL, DCA_TXCTRL: relaxed ordering
constexpr std::uint32_t kStripPerQueue = 1U << 31;                 // DVMOLR.STRCRC
constexpr std::uint32_t kSoftware = 1U << 0, kFirmware = 1U << 1;  // SWSM.SMBI, SWSM.SWESMBI
// SW_FW_SYNC: the bit of each port's PHY for software; firmware's bit is 16 higher. e1000_defines.h, e1000_82575.h
// E1000_SWFW_PHY0_SM to PHY3_SM.
constexpr std::array<std::uint32_t, 4> kPhyOfPort{0x02, 0x04, 0x20, 0x40};
constexpr std::uint32_t kStatus = 0x0008;           // STATUS.LAN_ID, 3:2: the port
constexpr std::uint32_t kWriteBackEach = 1U << 16;  // RXDCTL.WTHRESH

}  // namespace

std::chrono::milliseconds Igb::after_reset() const noexcept { return 0ms; }

bool Igb::own_mdio(bool own) {
  // e1000_i210.c e1000_acquire_swfw_sync_i210: first the register's semaphore, then the PHY's bit in it. Wherry owns
  // the function, so a driver that left SMBI set no longer runs.
  const std::uint32_t phy = kPhyOfPort[registers_.read(kStatus) >> 2 & 3];
  bool latched = false;
  for (int attempt = 0; attempt < 200 && !latched; ++attempt) {
    update(registers_, kSemaphore, 0, kFirmware);
    latched = (registers_.read(kSemaphore) & kFirmware) != 0;
    if (!latched) registers_.pause(50us);
  }
  if (!latched) return false;
  const std::uint32_t shared = registers_.read(kShared);
  const bool free = (shared & phy << 16) == 0;
  if (!own || free) registers_.write(kShared, own ? shared | phy : shared & ~phy);
  update(registers_, kSemaphore, kSoftware | kFirmware, 0);
  return !own || free;
}

Status Igb::start_rings(const NicSetup& setup, std::uint32_t& /*receive*/) {
  registers_.write(kExtendedInterruptClear, ~std::uint32_t{0});
  // The card takes a read as the end of a frame, so the NIC must not repeat reads (docs/design/bypass-core.md).
  update(registers_, kPcie, kRepeatReads, 0);
  spread(setup.pairs, kSpread);
  registers_.write(kLongest, setup.frame_bytes);
  for (std::uint32_t pair = 0; pair < setup.pairs; ++pair) WHERRY_TRY(start_pair(pair, setup));
  return {};
}

Status Igb::start_pair(std::uint32_t pair, const NicSetup& setup) {
  const Personality& nic = personality_;
  const std::uint32_t rx = rx_ring(pair), tx = tx_ring(pair);
  const std::uint64_t further = pair * setup.ring_stride;
  // Queue 0 is on after a reset (82576 8.10.8). The queue must be off while its ring changes.
  WHERRY_TRY(disable_ring(rx, "receive"));
  WHERRY_TRY(disable_ring(tx, "transmit"));
  write_ring(rx, setup.rings.rx + further, setup.rings.rx_entries * nic.rx_descriptor_bytes);
  write_ring(tx, setup.rings.tx + further, setup.rings.tx_entries * nic.tx_descriptor_bytes);
  registers_.write(nic.rx_buffer_offset + nic.rx_ring_stride * pair,
                   kOneBuffer | setup.slot_bytes / nic.rx_buffer_unit);
  // With relaxed ordering, the done mark might overtake the data.
  update(registers_, rx + kAccess, kRelaxed, 0);
  update(registers_, tx + kAccess, kRelaxed, 0);
  if (nic.name == "i210") update(registers_, rx + kOffload, 0, kStripPerQueue);  // igb_rxtx.c eth_igb_rx_init
  WHERRY_TRY(enable_ring(rx, kWriteBackEach | std::uint32_t{nic.rx_prefetch_at_least} << 8 | nic.rx_prefetch_below,
                         "receive"));
  // WTHRESH 0: a descriptor without RS is never written back.
  return enable_ring(tx, std::uint32_t{nic.tx_prefetch_at_least} << 8 | nic.tx_prefetch_below, "transmit");
}

}  // namespace wherry::bypass
