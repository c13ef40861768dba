// SPDX-License-Identifier: Apache-2.0
// Controllers of the e1000 family. They have one register block for device, PHY, filters and MAC, and their rings
// differ (e1000e.hpp, igb.hpp). Sources: DPDK drivers/net/intel/e1000/base ("e1000_82571.c e1000_reset_hw_82571" and so
// on). The register names are those of the 82574, 82576, I210 and I225 datasheets.
#pragma once

#include "bypass/nic/ring_nic.hpp"

namespace wherry::bypass {

class GigabitNic : public RingNic {
 public:
  using RingNic::RingNic;
  Status reset() override;
  Status start(const NicSetup& setup) override;
  Status stop() override;
  [[nodiscard]] Link link() override;

 protected:
  /// Sets up the rings, and their part of receive and transmit control. RCTL.RXEN and TCTL.EN are off. `receive`: bits
  /// to set in RCTL later.
  virtual Status start_rings(const NicSetup& setup, std::uint32_t& receive) = 0;
  /// Called before and after use of MDIC: gets the PHY from firmware, or gives it back. True: firmware agrees.
  virtual bool own_mdio(bool own) = 0;
  /// As own_mdio(), around a reset. Not all families need it.
  virtual bool own_for_reset(bool /*own*/) { return false; }
  [[nodiscard]] virtual std::chrono::milliseconds after_reset() const noexcept = 0;

  static constexpr std::uint32_t kTransmitControl = 0x0400;  ///< TCTL
  static constexpr std::uint32_t kReceiveFilter = 0x5008;    ///< RFCTL

 private:
  void start_link(bool loopback);
  void restart_phy();
};

}  // namespace wherry::bypass
