// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A register of each ring, or bits of it, for the block that looks it up: dma_control_registers tells of each write to it.
///
/// Behaviour: a RAM of the rings, written by setting_i: of LUTs, read without a clock; or block RAM (Block), whose output holds while read_i is low.
/// Latency: 0, with Block 1 cycle.
/// Reset: none; registers are written with their reset values after one.
/// Requirements: none.
module dma_ring_word
  import dma_control_pkg::*;
#(
    /// The word among a ring's registers, and its bits.
    parameter logic [3:0] Word = 4'd0,
    parameter int unsigned Low = 0,
    parameter int unsigned Width = 32,
    parameter bit Block = 1'b0
) (
    input wire clk_i,
    // verilator lint_off UNUSEDSIGNAL  // the other registers, and bits
    input wire setting_t setting_i,
    // verilator lint_on UNUSEDSIGNAL
    /// With Block: it is read.
    input wire read_i,
    input wire ring_t ring_i,
    output logic [Width-1:0] value_o
);

  logic write;
  assign write = setting_i.ring_valid && setting_i.place == Word;
  if (Block) begin : gen_block
    simple_dual_port_ram #(
        .Width(Width),
        .Depth(Rings)
    ) i_values (
        .*,
        .write_i        (write),
        .write_address_i(setting_i.ring),
        .write_data_i   (setting_i.data[Low+:Width]),
        .read_address_i (ring_i),
        .read_data_o    (value_o)
    );
  end else begin : gen_lutram
    logic unused;
    assign unused = read_i;
    lutram #(
        .Width(Width),
        .Depth(Rings)
    ) i_values (
        .*,
        .write_i        (write),
        .write_address_i(setting_i.ring),
        .write_data_i   (setting_i.data[Low+:Width]),
        .read_address_i (ring_i),
        .read_data_o    (value_o)
    );
  end

endmodule
`default_nettype wire
