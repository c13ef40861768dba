// SPDX-License-Identifier: Apache-2.0
// The manager at the AXI4-Lite port s_axil_* of a Verilated core. Only one access is in flight.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wherry::sim {

/// `Core` is Verilator's class. Each cycle: drive() before the clock edge, sample() after the evaluation.
template <class Core>
class AxiLiteManager {
 public:
  void begin_read(Core& core, std::uint32_t offset) {
    core.s_axil_araddr = static_cast<std::remove_cvref_t<decltype(core.s_axil_araddr)>>(offset);
    ar_ = true;
    ended_ = refused_ = false;
  }
  void begin_write(Core& core, std::uint32_t offset, std::uint32_t value) {
    core.s_axil_awaddr = static_cast<std::remove_cvref_t<decltype(core.s_axil_awaddr)>>(offset);
    core.s_axil_wdata = value;
    core.s_axil_wstrb = 0xF;
    aw_ = w_ = true;
    ended_ = refused_ = false;
  }
  void drive(Core& core) const {
    core.s_axil_arvalid = ar_ ? 1 : 0;
    core.s_axil_awvalid = aw_ ? 1 : 0;
    core.s_axil_wvalid = w_ ? 1 : 0;
    core.s_axil_rready = 1;
    core.s_axil_bready = 1;
  }
  void sample(const Core& core) {
    if (core.s_axil_arready != 0) ar_ = false;
    if (core.s_axil_awready != 0) aw_ = false;
    if (core.s_axil_wready != 0) w_ = false;
    if (core.s_axil_rvalid != 0) data_ = core.s_axil_rdata;
    refused_ = refused_ || (core.s_axil_rvalid != 0 && core.s_axil_rresp != 0) ||
               (core.s_axil_bvalid != 0 && core.s_axil_bresp != 0);
    ended_ = ended_ || core.s_axil_rvalid != 0 || core.s_axil_bvalid != 0;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// The core answered with an error.
  [[nodiscard]] bool refused() const noexcept { return refused_; }
  /// The value of the last read.
  [[nodiscard]] std::uint32_t data() const noexcept { return data_; }

 private:
  bool ar_ = false, aw_ = false, w_ = false;  ///< offered
  bool ended_ = true, refused_ = false;
  std::uint32_t data_ = 0;
};

}  // namespace wherry::sim
