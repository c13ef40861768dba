// SPDX-License-Identifier: Apache-2.0
// The subordinate at m_axil of a Verilated core with bypass's tails: it accepts writes of 4 bytes, and answers each.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_window.hpp"

namespace wherry::sim {

class TailPort {
 public:
  /// In order.
  std::optional<TailWrite> take() {
    if (tails_.empty()) return std::nullopt;
    const TailWrite first = tails_.front();
    tails_.pop_front();
    return first;
  }
  void forget() { tails_.clear(); }
  /// The tail whose address and value became complete in the last cycle.
  [[nodiscard]] const std::optional<TailWrite>& came() const noexcept { return came_; }

  /// A cycle: drive() before the clock edge, sample() after the evaluation. `Core` is Verilator's class.
  template <class Core>
  void drive(Core& core, Pauses& pauses) {
    core.m_axil_awready = pauses() ? 0 : 1;
    core.m_axil_wready = pauses() ? 0 : 1;
    core.m_axil_bvalid = unanswered_ > 0 ? 1 : 0;
    core.m_axil_bresp = 0;
  }
  /// Describes the broken rule. Empty: none.
  template <class Core>
  [[nodiscard]] std::string sample(const Core& core) {
    constexpr std::uint8_t kAllStrobes = 0xF;
    came_.reset();
    if (core.m_axil_bvalid != 0 && core.m_axil_bready != 0) --unanswered_;
    if (core.m_axil_awvalid != 0 && core.m_axil_awready != 0) addresses_.push_back(core.m_axil_awaddr);
    if (core.m_axil_wvalid != 0 && core.m_axil_wready != 0) {
      if (core.m_axil_wstrb != kAllStrobes)
        return fmt::format("a tail is written with strobes {:#x}", core.m_axil_wstrb);
      values_.push_back(core.m_axil_wdata);
    }
    if (addresses_.empty() || values_.empty()) return {};
    came_ = {addresses_.front(), values_.front()};
    tails_.push_back(*came_);
    addresses_.pop_front();
    values_.pop_front();
    ++unanswered_;
    return {};
  }
  /// Forgets everything, after a reset of the core.
  void reset() { *this = {}; }

 private:
  std::deque<std::uint64_t> addresses_;
  std::deque<std::uint32_t> values_;
  std::deque<TailWrite> tails_;
  std::uint32_t unanswered_ = 0;
  std::optional<TailWrite> came_;
};

}  // namespace wherry::sim
