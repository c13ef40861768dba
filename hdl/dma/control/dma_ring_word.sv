// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A local copy of one register of each ring, or of bits of it. dma_control_registers passes on every write.
///
/// Behaviour: a RAM written by setting_i: LUT RAM with asynchronous reads, or block RAM (Block), which read_i enables.
/// Latency: 0, with Block 1 cycle.
/// Reset: none; the registers' reset values are written after a reset.
/// Requirements: none.
module dma_ring_word
  import dma_control_pkg::*;
#(
    /// Which of a ring's registers, and which of its bits.
    parameter logic [3:0] Word = 4'd0,
    parameter int unsigned Low = 0,
    parameter int unsigned Width = 32,
    parameter bit Block = 1'b0
) (
    input wire clk_i,
    // verilator lint_off UNUSEDSIGNAL  // the other registers, and bits
    input wire setting_t setting_i,
    // verilator lint_on UNUSEDSIGNAL
    /// With Block: reads the word.
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
