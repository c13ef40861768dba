// SPDX-License-Identifier: Apache-2.0
// 82574: extended receive descriptors, and data descriptors for transmission. Only one of its two queues is used.
#pragma once

#include "bypass/nic/gigabit.hpp"

namespace wherry::bypass {

class E1000e final : public GigabitNic {
 public:
  using GigabitNic::GigabitNic;

 protected:
  Status start_rings(const NicSetup& setup, std::uint32_t& receive) override;
  bool own_mdio(bool own) override;
  bool own_for_reset(bool own) override { return own_mdio(own); }  // it falls to firmware with the reset
  [[nodiscard]] std::chrono::milliseconds after_reset() const noexcept override;
  /// Only one, because its two queues would need another form of indirection table.
  [[nodiscard]] std::uint32_t most_pairs() const noexcept override { return 1; }
};

}  // namespace wherry::bypass
