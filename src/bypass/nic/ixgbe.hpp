// SPDX-License-Identifier: Apache-2.0
// 82599, X540, X550 and E610: advanced descriptors with one buffer.
#pragma once

#include "bypass/nic/ring_nic.hpp"

namespace wherry::bypass {

class Ixgbe final : public RingNic {
 public:
  using RingNic::RingNic;
  Status reset() override;
  Status start(const NicSetup& setup) override;
  Status stop() override;
  [[nodiscard]] Link link() override;

 private:
  /// False: requests are still outstanding, so the reset must be done twice.
  bool quiet();
  Status reset_once();
  Status start_transmit(const NicSetup& setup);
  Status start_receive(const NicSetup& setup);
  Status start_transmit_ring(std::uint32_t pair, const NicSetup& setup);
  Status start_receive_ring(std::uint32_t pair, const NicSetup& setup);
  void force_link();
  [[nodiscard]] bool is_82599() const noexcept { return personality_.name == "ixgbe"; }
};

}  // namespace wherry::bypass
