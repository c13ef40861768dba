// SPDX-License-Identifier: Apache-2.0
// Functions for the pins s_mem_* (AXI4, 512 bits) of a Verilated card: they read the card's outputs, and drive one
// cycle's request from a model or another Verilated module.
#pragma once

#include <cstdint>
#include <cstring>

#include "sim/memory/axi.hpp"

namespace wherry::sim {

inline constexpr unsigned kAxiIncrementing = 1, kAxiNormalMemory = 3;  // A3.4.1, A4.4 of the AXI specification

/// `Core` is Verilator's class. Identifiers are cut to the width of the pins.
template <class Core>
[[nodiscard]] memory::AxiAnswer axi_answer(const Core& core) {
  memory::AxiAnswer out;
  out.ar_ready = core.s_mem_arready != 0;
  out.r_valid = core.s_mem_rvalid != 0;
  out.aw_ready = core.s_mem_awready != 0;
  out.w_ready = core.s_mem_wready != 0;
  out.b_valid = core.s_mem_bvalid != 0;
  if (out.r_valid) {
    out.r_last = core.s_mem_rlast != 0;
    out.r_error = core.s_mem_rresp != 0;
    out.r_id = core.s_mem_rid;
    std::memcpy(out.r_data.data(), &core.s_mem_rdata[0], sizeof out.r_data);
  }
  if (out.b_valid) {
    out.b_error = core.s_mem_bresp != 0;
    out.b_id = core.s_mem_bid;
  }
  return out;
}

/// Before the clock's edge. Beats are whole words (size 6), except in bursts of one beat.
template <class Core>
void drive_axi(Core& core, const memory::AxiRequest& in) {
  core.s_mem_arvalid = in.ar_valid ? 1 : 0;
  if (in.ar_valid) {
    core.s_mem_araddr = in.ar.address;
    core.s_mem_arlen = static_cast<std::uint8_t>(in.ar.length);
    core.s_mem_arsize = static_cast<std::uint8_t>(in.ar.size);
    core.s_mem_arid = static_cast<std::uint8_t>(in.ar.id);
    core.s_mem_arburst = kAxiIncrementing;
    core.s_mem_arcache = kAxiNormalMemory;
  }
  core.s_mem_rready = in.r_ready ? 1 : 0;
  core.s_mem_awvalid = in.aw_valid ? 1 : 0;
  if (in.aw_valid) {
    core.s_mem_awaddr = in.aw.address;
    core.s_mem_awlen = static_cast<std::uint8_t>(in.aw.length);
    core.s_mem_awsize = static_cast<std::uint8_t>(in.aw.size);
    core.s_mem_awid = static_cast<std::uint8_t>(in.aw.id);
    core.s_mem_awburst = kAxiIncrementing;
    core.s_mem_awcache = kAxiNormalMemory;
  }
  core.s_mem_wvalid = in.w_valid ? 1 : 0;
  if (in.w_valid) {
    core.s_mem_wlast = in.w_last ? 1 : 0;
    core.s_mem_wstrb = in.w_strobes;
    std::memcpy(&core.s_mem_wdata[0], in.w_data.data(), sizeof in.w_data);
  }
  core.s_mem_bready = in.b_ready ? 1 : 0;
}

}  // namespace wherry::sim
