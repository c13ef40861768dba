// SPDX-License-Identifier: Apache-2.0
// Connects a memory's port to the pins m_axi_* (AXI4, 512 bits: `AXI_MANAGER` names of hdl/common/axi.svh) of a
// Verilated design.
#pragma once

#include <algorithm>

#include "sim/memory/axi.hpp"

namespace wherry::sim::memory {

/// Drives the port's outputs, before the clock edge.
template <class Design>
void drive_axi(Design& design, const AxiAnswer& answer) {
  design.m_axi_arready = answer.ar_ready;
  design.m_axi_awready = answer.aw_ready;
  design.m_axi_wready = answer.w_ready;
  design.m_axi_rvalid = answer.r_valid;
  design.m_axi_rlast = answer.r_last;
  design.m_axi_rresp = answer.r_error ? 3 : 0;
  design.m_axi_rid = static_cast<decltype(design.m_axi_rid)>(answer.r_id);
  if (answer.r_valid) std::copy(answer.r_data.begin(), answer.r_data.end(), &design.m_axi_rdata[0]);
  design.m_axi_bvalid = answer.b_valid;
  design.m_axi_bresp = answer.b_error ? 3 : 0;
  design.m_axi_bid = static_cast<decltype(design.m_axi_bid)>(answer.b_id);
}

/// The design's outputs in the same cycle, after its combinational paths have settled and before the edge.
template <class Design>
[[nodiscard]] AxiRequest sample_axi(const Design& design) {
  AxiRequest in;
  in.ar_valid = design.m_axi_arvalid != 0;
  if (in.ar_valid) in.ar = {design.m_axi_araddr, design.m_axi_arlen, design.m_axi_arsize, design.m_axi_arid};
  in.r_ready = design.m_axi_rready != 0;
  in.aw_valid = design.m_axi_awvalid != 0;
  if (in.aw_valid) in.aw = {design.m_axi_awaddr, design.m_axi_awlen, design.m_axi_awsize, design.m_axi_awid};
  in.w_valid = design.m_axi_wvalid != 0;
  if (in.w_valid) {
    in.w_last = design.m_axi_wlast != 0;
    in.w_strobes = design.m_axi_wstrb;
    std::copy(&design.m_axi_wdata[0], &design.m_axi_wdata[0] + in.w_data.size(), in.w_data.begin());
  }
  in.b_ready = design.m_axi_bready != 0;
  return in;
}

}  // namespace wherry::sim::memory
