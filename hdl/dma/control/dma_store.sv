// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Stores descriptors: 128 fetched ones of each ring in block RAM, two in a row; and one carried by a doorbell.
///
/// Behaviour: a write covers one or both halves of a row. look_i reads a descriptor by index, or the carried one.
/// Latency: a written descriptor can be read in the next cycle; store_o follows look_i by 1 cycle.
/// Reset: none.
/// Requirements: a carried descriptor is taken before the next one arrives.
module dma_store
  import dma_control_pkg::*;
(
    input wire clk_i,

    input  wire row_t   row_i,
    // verilator lint_off UNUSEDSIGNAL  // of which ring look_i says
    input  wire carry_t carry_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire look_t  look_i,
    output descriptor_t store_o
);

  descriptor_t [1:0] row;
  simple_dual_port_ram #(
      .Width($bits(row)),
      .Depth(Rings << (AheadBits - 1)),
      .WriteWidth($bits(descriptor_t))
  ) i_rows (
      .*,
      .write_i        (row_i.write),
      .write_address_i({row_i.ring, row_i.row}),
      .write_data_i   (row_i.data),
      .read_i         (1'b1),
      .read_address_i ({look_i.ring, look_i.index[AheadBits-1:1]}),
      .read_data_o    (row)
  );

  logic odd_q, is_carried_q;
  descriptor_t carried_q;
  always_ff @(posedge clk_i) begin
    if (carry_i.valid) carried_q <= carry_i.data;
    odd_q        <= look_i.index[0];
    is_carried_q <= look_i.carried;
  end
  assign store_o = is_carried_q ? carried_q : row[odd_q];

endmodule
`default_nettype wire
