// SPDX-License-Identifier: Apache-2.0
// The host at the AXI4 port s_mem_* of a Verilated card: one read burst of whole words at a time, and no writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "sim/axi_host.hpp"

namespace wherry::sim {

inline constexpr std::size_t kWordBytes = 64;    ///< of 512 bits
inline constexpr std::size_t kPageBytes = 4096;  ///< no burst crosses one

/// `Core` is Verilator's class. Each cycle: drive() before the clock edge, sample() after the evaluation.
template <class Core>
class AxiReader {
 public:
  /// `address` and the size of `to` are multiples of 64, and the range lies in one page.
  void begin(Core& core, std::uint64_t address, std::span<std::byte> to) {
    constexpr unsigned kWordSize = 6;
    core.s_mem_araddr = address;
    core.s_mem_arlen = static_cast<std::uint8_t>(to.size() / kWordBytes - 1);
    core.s_mem_arsize = kWordSize;
    core.s_mem_arburst = kAxiIncrementing;
    core.s_mem_arcache = kAxiNormalMemory;
    to_ = to;
    asked_ = true;
    refused_ = false;
  }
  void drive(Core& core) const {
    core.s_mem_arvalid = asked_ ? 1 : 0;
    core.s_mem_rready = to_.empty() ? 0 : 1;  // what another manager asked for waits for it
    core.s_mem_awvalid = core.s_mem_wvalid = core.s_mem_bready = 0;
  }
  void sample(const Core& core) {
    if (core.s_mem_arready != 0) asked_ = false;
    if (core.s_mem_rvalid == 0 || core.s_mem_rready == 0) return;
    refused_ = refused_ || core.s_mem_rresp != 0 || to_.size() < kWordBytes ||
               (core.s_mem_rlast != 0) != (to_.size() == kWordBytes);
    const std::size_t bytes = std::min(to_.size(), kWordBytes);
    std::memcpy(to_.data(), &core.s_mem_rdata[0], bytes);
    to_ = to_.subspan(bytes);
  }
  [[nodiscard]] bool ended() const noexcept { return to_.empty(); }
  /// The memory answered with an error, or with a wrong number of words.
  [[nodiscard]] bool refused() const noexcept { return refused_; }

 private:
  std::span<std::byte> to_;  ///< what has not come yet
  bool asked_ = false, refused_ = false;
};

}  // namespace wherry::sim
