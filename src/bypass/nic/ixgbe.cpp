// SPDX-License-Identifier: Apache-2.0
// Sources: DPDK drivers/net/intel/ixgbe: base/ixgbe_common.c, base/ixgbe_82599.c, ixgbe_rxtx.c. Register names are
// those of the 82599 datasheet.
#include "bypass/nic/ixgbe.hpp"

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// base/ixgbe_type.h.
constexpr std::uint32_t kControl = 0x0000, kStatus = 0x0008, kExtended = 0x0018, kInterruptCause = 0x0800,
                        kInterruptClear = 0x0888, kInterruptClearMore = 0x0AB0, kReceiveControl = 0x3000,
                        kReceiveDma = 0x2F00, kReceiveAccess = 0x2200, kTransmitAccess = 0x600C, kMac = 0x4240,
                        kLongest = 0x4268, kAutoControl = 0x42A0, kLinks = 0x42A4, kNegotiation = 0x42B0,
                        kMacControl = 0x4330, kArbiter = 0x4900, kTransmitDma = 0x4A80, kFilter = 0x5080,
                        kManyTransmit = 0x8120, kSecureReceive = 0x8D00, kSecureStatus = 0x8D04, kEeprom = 0x1'0010;
constexpr std::uint32_t kMasterDisable = 1U << 2, kMasterEnabled = 1U << 19;      // CTRL.GIO_DIS, STATUS.GIO
constexpr std::uint32_t kPcie = 0x1'1000, kRepeatReads = 1U << 16;                // GCR.Completion_Timeout_Resend
constexpr std::uint32_t kNoRelaxedOrdering = 1U << 17, kDriverLoaded = 1U << 28;  // CTRL_EXT
constexpr std::uint32_t kFlush = 1U << 26;                                        // RXDCTL, TXDCTL: SWFLSH
constexpr std::uint32_t kReceiveOn = 1U << 0, kTransmitOn = 1U << 0;              // RXCTRL.RXEN, DMATXCTL.TE
constexpr std::uint32_t kStripFcs = 1U << 1, kDmaInitDone = 1U << 3, kFirstSize = 0x3E'0000;                // RDRXCTL
constexpr std::uint32_t kAutoReadDone = 1U << 9;                                                            // EEC.ARD
constexpr std::uint32_t kAllMulticast = 1U << 8, kAllUnicast = 1U << 9, kBroadcast = 1U << 10;              // FCTRL
constexpr std::uint32_t kTransmitFcs = 1U << 0, kMacStripFcs = 1U << 1, kJumbo = 1U << 2, kPad = 1U << 10;  // HLREG0
constexpr std::uint32_t kArbiterOff = 1U << 6;                                // RTTDCS.ARBDIS
constexpr std::uint32_t kSecureOff = 1U << 1, kSecureReady = 1U << 0;         // SECRXCTRL.RX_DIS, SECRXSTAT
constexpr std::uint32_t kOneBuffer = 1U << 25;                                // SRRCTL.DESCTYPE
constexpr std::uint32_t kRelaxed = 1U << 9 | 1U << 11 | 1U << 13 | 1U << 15;  // DCA_RXCTRL, DCA_TXCTRL
constexpr std::uint32_t kReceiveAccessReserved = 1U << 12;  // DCA_RXCTRL: must be cleared (82599 4.6.7)
constexpr std::uint32_t kLinkUp = 1U << 30;                 // LINKS
// AUTOC: 10 Gbit/s without negotiation, forced up, restart; LMS bit 2. ANLP1: negotiation state. MACC.FLU.
constexpr std::uint32_t kForceUp = 1U << 0, kRestart = 1U << 12, kModeMask = 7U << 13, kTenGigabit = 1U << 13,
                        kModeToggle = 4U << 13, kNegotiationState = 0xFU << 16, kMacForceUp = 1U << 0;
constexpr std::uint32_t kQueues = 128, kFarQueue = 64;
constexpr std::uint32_t kFarReceive = 0xD000;      // RXDCTL of queues from 64 on
constexpr std::uint32_t kReceiveAccessStride = 4;  // of queues 0 to 15
constexpr std::uint32_t kSpread = 1;               // MRQC, IXGBE_MRQC_RSSEN
constexpr std::uint32_t kStandardFrame = 1518;

}  // namespace

bool Ixgbe::quiet() {
  update(registers_, kReceiveControl, kReceiveOn, 0);
  registers_.write(kInterruptClear, ~std::uint32_t{0});
  registers_.write(kInterruptClearMore, ~std::uint32_t{0});
  registers_.write(kInterruptClearMore + 4, ~std::uint32_t{0});
  (void)registers_.read(kInterruptCause);
  // ixgbe_common.c ixgbe_stop_adapter_generic: stops all queues, even if another driver started them.
  for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
    registers_.write(personality_.tx_ring_offset + kRingControl + personality_.tx_ring_stride * queue, kFlush);
    const std::uint32_t base = queue < kFarQueue ? personality_.rx_ring_offset + personality_.rx_ring_stride * queue
                                                 : kFarReceive + personality_.rx_ring_stride * (queue - kFarQueue);
    update(registers_, base + kRingControl, personality_.ring_enable_mask, kFlush);
  }
  (void)registers_.read(kStatus);
  registers_.pause(2ms);
  registers_.write(kControl, kMasterDisable);
  return wait_for(registers_, kStatus, kMasterEnabled, 0, 80ms, 100us);
}

Status Ixgbe::reset_once() {
  // A software reset does not change link and PHY.
  update(registers_, personality_.reset_offset, 0, personality_.reset_mask);
  registers_.pause(1us);
  if (!wait_for(registers_, personality_.reset_offset, personality_.reset_mask, 0, 10ms, 10us))
    return silent("its reset does not end");
  registers_.pause(is_82599() ? 50ms : 100ms);  // ixgbe_reset_hw_82599, ixgbe_reset_hw_X540
  return {};
}

Status Ixgbe::reset() {
  WHERRY_TRY(alive());
  const bool was_quiet = quiet();
  WHERRY_TRY(reset_once());
  if (!was_quiet) WHERRY_TRY(reset_once());  // 82599 5.2.5.3.2: twice, if requests did not come to an end
  if (!wait_for(registers_, kEeprom, kAutoReadDone, kAutoReadDone, 100ms, 1ms))
    return silent("it does not load its EEPROM");
  if (!wait_for(registers_, kReceiveDma, kDmaInitDone, kDmaInitDone, 100ms, 1ms))
    return silent("its DMA does not initialize");
  registers_.write(kInterruptClear, ~std::uint32_t{0});
  (void)registers_.read(kInterruptCause);
  WHERRY_TRY(alive());
  return read_mac();
}

Status Ixgbe::start(const NicSetup& setup) {
  WHERRY_TRY(check(setup));
  WHERRY_TRY(alive());
  update(registers_, kControl, kMasterDisable, 0);
  update(registers_, kExtended, 0, kNoRelaxedOrdering | kDriverLoaded);
  // The card takes a read as the end of a frame, so the NIC must not repeat reads (docs/design/bypass-core.md).
  update(registers_, kPcie, kRepeatReads, 0);
  clear_filters();
  WHERRY_TRY(start_transmit(setup));
  WHERRY_TRY(start_receive(setup));
  if (setup.loopback) force_link();
  return alive();
}

Status Ixgbe::start_transmit(const NicSetup& setup) {
  const Personality& nic = personality_;
  const bool jumbo = setup.frame_bytes > kStandardFrame;
  update(registers_, kMac, nic.loopback_mask | kJumbo,
         kTransmitFcs | kPad | kMacStripFcs | (jumbo ? kJumbo : 0) | (setup.loopback ? nic.loopback_mask : 0));
  update(registers_, kLongest, 0xFFFFU << 16, setup.frame_bytes << 16);
  // One packet buffer, 64 queues. Needs the arbiter to be off (ixgbe_rxtx.c ixgbe_dev_mq_tx_configure).
  update(registers_, kArbiter, 0, kArbiterOff);
  registers_.write(kManyTransmit, 0);
  update(registers_, kArbiter, kArbiterOff, 0);
  update(registers_, kTransmitDma, 0, kTransmitOn);
  for (std::uint32_t pair = 0; pair < setup.pairs; ++pair) WHERRY_TRY(start_transmit_ring(pair, setup));
  return {};
}

Status Ixgbe::start_transmit_ring(std::uint32_t pair, const NicSetup& setup) {
  const Personality& nic = personality_;
  const std::uint32_t ring = tx_ring(pair);
  write_ring(ring, setup.rings.tx + pair * setup.ring_stride, setup.rings.tx_entries * nic.tx_descriptor_bytes);
  update(registers_, kTransmitAccess + nic.tx_ring_stride * pair, kRelaxed, 0);
  // WTHRESH 0: a descriptor without RS is never written back. Set the thresholds before the enable bit.
  const std::uint32_t thresholds = std::uint32_t{nic.tx_prefetch_at_least} << 8 | nic.tx_prefetch_below;
  registers_.write(ring + kRingControl, thresholds);
  return enable_ring(ring, thresholds, "transmit");
}

Status Ixgbe::start_receive(const NicSetup& setup) {
  registers_.write(kFilter, kBroadcast | (setup.promiscuous ? kAllUnicast | kAllMulticast : 0));
  spread(setup.pairs, kSpread);
  update(registers_, kReceiveDma, kFirstSize, kStripFcs);
  for (std::uint32_t pair = 0; pair < setup.pairs; ++pair) WHERRY_TRY(start_receive_ring(pair, setup));
  // Erratum of the 82599: if traffic comes in, close the security block before switching on the receiver (ixgbe_82599.c
  // ixgbe_enable_rx_dma_82599 waits 40 ms, and then continues in any case).
  update(registers_, kSecureReceive, 0, kSecureOff);
  (void)wait_for(registers_, kSecureStatus, kSecureReady, kSecureReady, 40ms, 10us);
  update(registers_, kReceiveControl, 0, kReceiveOn);
  update(registers_, kSecureReceive, kSecureOff, 0);
  return {};
}

Status Ixgbe::start_receive_ring(std::uint32_t pair, const NicSetup& setup) {
  const Personality& nic = personality_;
  const std::uint32_t ring = rx_ring(pair);
  write_ring(ring, setup.rings.rx + pair * setup.ring_stride, setup.rings.rx_entries * nic.rx_descriptor_bytes);
  registers_.write(nic.rx_buffer_offset + nic.rx_ring_stride * pair,
                   kOneBuffer | setup.slot_bytes / nic.rx_buffer_unit);
  update(registers_, kReceiveAccess + kReceiveAccessStride * pair, kRelaxed | kReceiveAccessReserved, 0);
  return enable_ring(ring, 0, "receive");
}

/// The MAC transmits only with a link, even in loopback. A reset undoes this setting.
void Ixgbe::force_link() {
  if (!is_82599()) {  // X540 15.2.1: MACC.FLU
    update(registers_, kMacControl, 0, kMacForceUp);
    return;
  }
  // ixgbe_rxtx.c ixgbe_setup_loopback_link_82599 and ixgbe_82599.c ixgbe_reset_pipeline_82599.
  const std::uint32_t wanted = (registers_.read(kAutoControl) & ~kModeMask) | kTenGigabit | kForceUp | kRestart;
  registers_.write(kAutoControl, wanted ^ kModeToggle);
  for (int i = 0; i < 10 && (registers_.read(kNegotiation) & kNegotiationState) == 0; ++i) registers_.pause(4ms);
  registers_.write(kAutoControl, wanted);
  registers_.pause(50ms);
}

Status Ixgbe::stop() {
  WHERRY_TRY(alive());
  update(registers_, kExtended, kDriverLoaded, 0);
  return reset();
}

Link Ixgbe::link() {
  const std::uint32_t links = registers_.read(kLinks);
  if (links == ~std::uint32_t{0} || (links & kLinkUp) == 0) return {};
  static constexpr std::array<std::uint32_t, 4> kMbits{0, 100, 1000, 10'000};  // LINKS_SPEED_82599
  return {.up = true, .mbits = kMbits[links >> 28 & 3]};
}

}  // namespace wherry::bypass
