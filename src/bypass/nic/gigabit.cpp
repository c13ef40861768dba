// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/gigabit.hpp"

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// DPDK e1000/base/e1000_regs.h.
constexpr std::uint32_t kControl = 0x0000, kStatus = 0x0008, kEeprom = 0x0010, kExtended = 0x0018, kMdi = 0x0020,
                        kInterruptCause = 0x00C0, kInterruptClear = 0x00D8, kReceiveControl = 0x0100,
                        kFlowAddressLow = 0x0028, kFlowAddressHigh = 0x002C, kFlowType = 0x0030, kFlowTimer = 0x0170;
// DPDK e1000/base/e1000_defines.h: E1000_CTRL_*.
constexpr std::uint32_t kFullDuplex = 1U << 0, kMasterDisable = 1U << 2, kSetLinkUp = 1U << 6, kInvertLoss = 1U << 7,
                        kSpeedMask = 3U << 8, kSpeed1000 = 2U << 8, kForceSpeed = 1U << 11, kForceDuplex = 1U << 12,
                        kReceivePause = 1U << 27, kSendPause = 1U << 28;
constexpr std::uint32_t kLinkUp = 1U << 1, kStatusSpeed = 3U << 6, kMasterEnabled = 1U << 19,
                        k2500 = 1U << 22;          // STATUS
constexpr std::uint32_t kAutoReadDone = 1U << 9;   // EECD.AUTO_RD
constexpr std::uint32_t kDriverLoaded = 1U << 28;  // CTRL_EXT.DRV_LOAD
constexpr std::uint32_t kMdiWrite = 1U << 26, kMdiRead = 2U << 26, kMdiReady = 1U << 28, kMdiError = 1U << 30;  // MDIC
// RCTL.
constexpr std::uint32_t kReceiveOn = 1U << 1, kAllUnicast = 1U << 3, kAllMulticast = 1U << 4, kLongFrames = 1U << 5,
                        kBroadcast = 1U << 15, kStripFcs = 1U << 26;
// TCTL.
constexpr std::uint32_t kTransmitOn = 1U << 1, kPadShort = 1U << 3, kCollisionThreshold = 0xFFU << 4,
                        kCollisionDistance = 0x3FFU << 12;
constexpr std::uint32_t kCollisions = 15U << 4, kFullDuplexDistance = 63U << 12;
constexpr std::uint32_t kPhy = 1, kPhyControl = 0;  // address of the internal PHY, IEEE 802.3 register 0
constexpr std::uint16_t kPowerDown = 1U << 11, kIsolate = 1U << 10, kAutoNegotiate = 1U << 12, kRestart = 1U << 9;
constexpr std::uint32_t kStandardFrame = 1518;
constexpr auto kLoopbackLink = 3s;  // copper negotiates for 1 to 3 s

}  // namespace

Status GigabitNic::reset() {
  WHERRY_TRY(alive());
  // The NIC makes no new requests, and outstanding ones end. An earlier reset may hang the bus (82574 5.2.5.3; in the
  // driver's words: "prevent the PCI-E bus from sticking"). DPDK e1000_mac.c e1000_disable_pcie_primary_generic waits
  // 80 ms, and then resets in any case.
  update(registers_, kControl, 0, kMasterDisable);
  (void)wait_for(registers_, kStatus, kMasterEnabled, 0, 80ms, 100us);
  registers_.write(kInterruptClear, ~std::uint32_t{0});
  registers_.write(kReceiveControl, 0);
  registers_.write(kTransmitControl, kPadShort);
  (void)registers_.read(kStatus);
  registers_.pause(10ms);
  const bool owned = own_for_reset(true);
  update(registers_, personality_.reset_offset, 0, personality_.reset_mask);
  registers_.pause(5ms);  // no access meanwhile: DPDK e1000_82575.c e1000_reset_hw_82580
  if (!wait_for(registers_, personality_.reset_offset, personality_.reset_mask, 0, 20ms, 1ms))
    return silent("its reset does not end");
  // Without an EEPROM the bit is never set. DPDK also accepts this.
  (void)wait_for(registers_, kEeprom, kAutoReadDone, kAutoReadDone, 10ms, 1ms);
  registers_.pause(after_reset());
  if (owned) (void)own_for_reset(false);
  registers_.write(kInterruptClear, ~std::uint32_t{0});
  (void)registers_.read(kInterruptCause);
  WHERRY_TRY(alive());
  return read_mac();
}

Status GigabitNic::start(const NicSetup& setup) {
  WHERRY_TRY(check(setup));
  WHERRY_TRY(alive());
  update(registers_, kExtended, 0, kDriverLoaded);
  clear_filters();
  // Pause frames would stop the card's transmission, and the card would not notice.
  for (const std::uint32_t offset : {kFlowAddressLow, kFlowAddressHigh, kFlowType, kFlowTimer})
    registers_.write(offset, 0);
  start_link(setup.loopback);
  std::uint32_t receive = kReceiveOn | kBroadcast | kStripFcs;
  if (setup.promiscuous) receive |= kAllUnicast | kAllMulticast;
  if (setup.frame_bytes > kStandardFrame) receive |= kLongFrames;
  if (setup.loopback) receive |= personality_.loopback_mask;
  WHERRY_TRY(start_rings(setup, receive));
  update(registers_, kTransmitControl, kCollisionThreshold | kCollisionDistance,
         kTransmitOn | kPadShort | kCollisions | kFullDuplexDistance);
  registers_.write(kReceiveControl, receive);
  return alive();
}

Status GigabitNic::stop() {
  WHERRY_TRY(alive());
  update(registers_, kExtended, kDriverLoaded, 0);
  return reset();
}

void GigabitNic::start_link(bool loopback) {
  if (loopback) {  // the MAC takes no link from the PHY, and needs a speed
    update(registers_, kControl, kMasterDisable | kSpeedMask | kReceivePause | kSendPause,
           kSetLinkUp | kFullDuplex | kForceSpeed | kForceDuplex | kSpeed1000);
    // Some controllers receive only while the PHY reports a link, which takes a moment after a reset. Other
    // controllers, and any without a cable, do not need this wait.
    (void)wait_for(registers_, kStatus, kLinkUp, kLinkUp, kLoopbackLink, 10ms);
    return;
  }
  // DPDK e1000_82575.c e1000_setup_copper_link_82575.
  update(registers_, kControl, kMasterDisable | kForceSpeed | kForceDuplex | kInvertLoss | kReceivePause | kSendPause,
         kSetLinkUp);
  // The PHY keeps its link over a reset of the MAC, unless the kernel's driver has switched the PHY off.
  if (!wait_for(registers_, kStatus, kLinkUp, kLinkUp, 20ms, 1ms)) restart_phy();
}

void GigabitNic::restart_phy() {
  const bool owned = own_mdio(true);
  const auto done = [&] { return wait_for(registers_, kMdi, kMdiReady, kMdiReady, 2ms, 50us); };
  registers_.write(kMdi, kMdiRead | kPhy << 21 | kPhyControl << 16);
  if (done() && (registers_.read(kMdi) & kMdiError) == 0) {
    const auto control = static_cast<std::uint16_t>(registers_.read(kMdi));
    const std::uint32_t wanted = (control & ~(kPowerDown | kIsolate)) | kAutoNegotiate | kRestart;
    registers_.write(kMdi, kMdiWrite | kPhy << 21 | kPhyControl << 16 | wanted);
    (void)done();
  }
  if (owned) (void)own_mdio(false);
}

Link GigabitNic::link() {
  const std::uint32_t status = registers_.read(kStatus);
  if (status == ~std::uint32_t{0} || (status & kLinkUp) == 0) return {};
  static constexpr std::array<std::uint32_t, 4> kMbits{10, 100, 1000, 1000};
  const std::uint32_t mbits = kMbits[(status & kStatusSpeed) >> 6];
  return {.up = true, .mbits = (status & k2500) != 0 && personality_.mbits_max >= 2500 ? 2500 : mbits};
}

}  // namespace wherry::bypass
