// SPDX-License-Identifier: Apache-2.0
// 82576, I210, I211 (igb) and I225, I226 (igc): advanced descriptors with one buffer.
#pragma once

#include "bypass/nic/gigabit.hpp"

namespace wherry::bypass {

class Igb final : public GigabitNic {
 public:
  using GigabitNic::GigabitNic;

 protected:
  Status start_rings(const NicSetup& setup, std::uint32_t& receive) override;
  bool own_mdio(bool own) override;
  [[nodiscard]] std::chrono::milliseconds after_reset() const noexcept override;

 private:
  Status start_pair(std::uint32_t pair, const NicSetup& setup);
};

}  // namespace wherry::bypass
