// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/e1000e.hpp"

#include <fmt/core.h>

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// DPDK e1000/base/e1000_regs.h.
constexpr std::uint32_t kOwnership = 0x0F00, kReceiveDelay = 0x2820, kReceiveAbsolute = 0x282C, kArbitration = 0x3840,
                        kGap = 0x0410, kVectors = 0x00E4;
constexpr std::uint32_t kSoftwareOwnsMdio = 1U << 5;  // EXTCNF_CTRL.MDIO_SW_OWNERSHIP
constexpr std::uint32_t kExtendedStatus = 1U << 15;   // RFCTL.EXTEN
constexpr std::uint32_t kGranularity = 1U << 24;      // RXDCTL, TXDCTL: thresholds count descriptors
constexpr std::uint32_t kCountDescriptors = 1U
                                            << 22;  // TXDCTL: must be 1 (e1000_82571.c e1000_initialize_hw_bits_82571)
constexpr std::uint32_t kArbitrationClear = 0xFU << 27, kArbitrationSet = 1U << 26;  // TARC0: as there
constexpr std::uint32_t kCopperGap = 8 | 8U << 10 | 6U << 20;  // IPGT, IPGR1, IPGR2: DEFAULT_82543_TIPG_*
constexpr std::uint32_t kWriteBackEach = 1U << 16;             // RXDCTL.WTHRESH
constexpr std::uint32_t kSizeExtension = 1U << 25;             // RCTL.BSEX

}  // namespace

std::chrono::milliseconds E1000e::after_reset() const noexcept {
  return 25ms;
}  // e1000_reset_hw_82571, "Phy configuration"

bool E1000e::own_mdio(bool own) {
  if (!own) {
    update(registers_, kOwnership, kSoftwareOwnsMdio, 0);
    return true;
  }
  // Until the bit reads as set, firmware holds the semaphore. e1000_82571.c e1000_get_hw_semaphore_82573 tries 10
  // times, every 2 ms.
  for (int attempt = 0; attempt < 10; ++attempt) {
    update(registers_, kOwnership, 0, kSoftwareOwnsMdio);
    if ((registers_.read(kOwnership) & kSoftwareOwnsMdio) != 0) return true;
    registers_.pause(2ms);
  }
  return false;
}

Status E1000e::start_rings(const NicSetup& setup, std::uint32_t& receive) {
  const Personality& nic = personality_;
  switch (setup.slot_bytes) {  // RCTL.BSIZE
    case 2048:
      break;
    case 4096:
      receive |= kSizeExtension | 3U << 16;
      break;
    case 8192:
      receive |= kSizeExtension | 2U << 16;
      break;
    default:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: slots of {} bytes: want 2048, 4096 or 8192", nic.name, setup.slot_bytes)};
  }
  // Linux sets bit 31 of IVAR for MSI-X (e1000e/netdev.c e1000_configure_msix, "Cause Tx interrupts on every write
  // back"). If the bit survives a reset, as in QEMU, the NIC writes back descriptors that do not ask for it.
  registers_.write(kVectors, 0);
  update(registers_, kReceiveFilter, 0, kExtendedStatus);
  spread(1, 0);
  registers_.write(kReceiveDelay, 0);
  registers_.write(kReceiveAbsolute, 0);
  registers_.write(kGap, kCopperGap);
  update(registers_, kArbitration, kArbitrationClear, kArbitrationSet);
  write_ring(nic.rx_ring_offset, setup.rings.rx, setup.rings.rx_entries * nic.rx_descriptor_bytes);
  write_ring(nic.tx_ring_offset, setup.rings.tx, setup.rings.tx_entries * nic.tx_descriptor_bytes);
  registers_.write(nic.rx_ring_offset + kRingControl, kGranularity | kWriteBackEach |
                                                          std::uint32_t{nic.rx_prefetch_at_least} << 8 |
                                                          nic.rx_prefetch_below);
  // WTHRESH 0: a descriptor without RS is never written back.
  registers_.write(nic.tx_ring_offset + kRingControl, kGranularity | kCountDescriptors |
                                                          std::uint32_t{nic.tx_prefetch_at_least} << 8 |
                                                          nic.tx_prefetch_below);
  return {};
}

}  // namespace wherry::bypass
