// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A register of each ring, or bits of it, for the block that looks it up: dma_control_registers tells of each write to it.
///
/// Behaviour: a LUT RAM of the rings, written by setting_i, read without a clock.
/// Latency: 0.
/// Reset: none; registers are written with their reset values after one.
/// Requirements: none.
module dma_ring_word
  import dma_control_pkg::*;
#(
    /// The word among a ring's registers, and its bits.
    parameter logic [3:0] Word = 4'd0,
    parameter int unsigned Low = 0,
    parameter int unsigned Width = 32
) (
    input wire clk_i,
    // verilator lint_off UNUSEDSIGNAL  // the other registers, and bits
    input wire setting_t setting_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire ring_t ring_i,
    output logic [Width-1:0] value_o
);

  lutram #(
      .Width(Width),
      .Depth(Rings)
  ) i_values (
      .*,
      .write_i        (setting_i.ring_valid && setting_i.place == Word),
      .write_address_i(setting_i.ring),
      .write_data_i   (setting_i.data[Low+:Width]),
      .read_address_i (ring_i),
      .read_data_o    (value_o)
  );

endmodule
`default_nettype wire
