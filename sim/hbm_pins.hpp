// SPDX-License-Identifier: Apache-2.0
// Connects the card's memory to the pins m_axi_* (AXI3, one array element per channel) of a Verilated core.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <type_traits>

#include "sim/hbm.hpp"

namespace wherry::kv::rtl {

inline constexpr unsigned kHbmAddressBits = 34;

/// Reads bits of a packed array, which is an integer or Verilator's array of words.
template <typename Signals>
[[nodiscard]] std::uint64_t pins_field(const Signals& from, unsigned lsb, unsigned width) {
  if constexpr (std::integral<Signals>) {
    return static_cast<std::uint64_t>(from) >> lsb & ((std::uint64_t{1} << width) - 1);
  } else {
    std::uint64_t value = 0;
    for (unsigned got = 0; got < width;) {
      const unsigned bit = (lsb + got) % 32, take = std::min(32 - bit, width - got);
      value |= (std::uint64_t{from[(lsb + got) / 32]} >> bit & ((std::uint64_t{1} << take) - 1)) << got;
      got += take;
    }
    return value;
  }
}

/// Before the clock's edge.
template <class Core>
void drive_hbm(Core& core, const std::deque<HbmPort>& ports) {
  const auto set_bit = [](auto& signals, std::size_t bit, bool value) {
    using Signals = std::remove_reference_t<decltype(signals)>;
    signals = static_cast<Signals>((signals & ~(1U << bit)) | (value ? 1U : 0U) << bit);
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const AxiAnswer& a = ports[i].answer();
    set_bit(core.m_axi_arready, i, a.ar_ready);
    set_bit(core.m_axi_awready, i, a.aw_ready);
    set_bit(core.m_axi_wready, i, a.w_ready);
    set_bit(core.m_axi_rvalid, i, a.r_valid);
    set_bit(core.m_axi_bvalid, i, a.b_valid);
    if (a.r_valid) std::copy(a.r_data.begin(), a.r_data.end(), &core.m_axi_rdata[8 * i]);
  }
}

/// Call it after that edge's evaluation. True: a transaction is in flight. Violations are in the ports' violation().
template <class Core>
[[nodiscard]] bool sample_hbm(const Core& core, std::deque<HbmPort>& ports) {
  bool active = false;
  for (unsigned i = 0; i < ports.size(); ++i) {
    AxiRequest in;
    in.ar_valid = pins_field(core.m_axi_arvalid, i, 1) != 0;
    if (in.ar_valid) {
      in.ar_address = pins_field(core.m_axi_araddr, i * kHbmAddressBits, kHbmAddressBits);
      in.ar_length = static_cast<std::uint32_t>(pins_field(core.m_axi_arlen, i * 4, 4));
    }
    in.aw_valid = pins_field(core.m_axi_awvalid, i, 1) != 0;
    if (in.aw_valid) {
      in.aw_address = pins_field(core.m_axi_awaddr, i * kHbmAddressBits, kHbmAddressBits);
      in.aw_length = static_cast<std::uint32_t>(pins_field(core.m_axi_awlen, i * 4, 4));
    }
    in.w_valid = pins_field(core.m_axi_wvalid, i, 1) != 0;
    if (in.w_valid) {
      in.w_last = pins_field(core.m_axi_wlast, i, 1) != 0;
      in.w_strobes = static_cast<std::uint32_t>(pins_field(core.m_axi_wstrb, i * 32, 32));
      std::copy(&core.m_axi_wdata[8 * i], &core.m_axi_wdata[8 * i] + 8, in.w_data.begin());
    }
    in.r_ready = pins_field(core.m_axi_rready, i, 1) != 0;
    in.b_ready = pins_field(core.m_axi_bready, i, 1) != 0;
    if (core.rst_i != 0) in = {};
    ports[i].step(in);
    active = active || in.ar_valid || in.aw_valid || in.w_valid || !ports[i].quiet();
  }
  return active;
}

}  // namespace wherry::kv::rtl
