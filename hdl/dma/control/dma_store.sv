// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Descriptors that were fetched: 128 of each ring, in block RAM, two in a row; and one of each ring that came with a doorbell, in LUTs.
///
/// Behaviour: a row is written in one or both halves. What is read is the descriptor of read_ring_i at read_index_i, or with read_carried_i the ring's carried
/// one.
/// Latency: written, it can be read from the next cycle on; read_o 1 cycle after the read.
/// Reset: none.
/// Requirements: none.
module dma_store
  import dma_control_pkg::*;
(
    input wire clk_i,

    input wire              [          1:0] write_i,
    input wire ring_t                       write_ring_i,
    input wire              [AheadBits-2:0] write_row_i,
    input wire descriptor_t [          1:0] write_data_i,

    input wire              carry_i,
    input wire ring_t       carry_ring_i,
    input wire descriptor_t carry_data_i,

    input  wire ring_t  read_ring_i,
    input  wire ahead_t read_index_i,
    input  wire         read_carried_i,
    output descriptor_t read_o
);

  descriptor_t [1:0] row;
  simple_dual_port_ram #(
      .Width($bits(row)),
      .Depth(Rings << (AheadBits - 1)),
      .WriteWidth($bits(descriptor_t))
  ) i_rows (
      .*,
      .write_address_i({write_ring_i, write_row_i}),
      .read_i         (1'b1),
      .read_address_i ({read_ring_i, read_index_i[AheadBits-1:1]}),
      .read_data_o    (row)
  );

  ring_t ring_q;
  logic odd_q, carried_q;
  descriptor_t carried;
  lutram #(
      .Width($bits(descriptor_t)),
      .Depth(Rings)
  ) i_carried (
      .*,
      .write_i        (carry_i),
      .write_address_i(carry_ring_i),
      .write_data_i   (carry_data_i),
      .read_address_i (ring_q),
      .read_data_o    (carried)
  );
  always_ff @(posedge clk_i) begin
    ring_q    <= read_ring_i;
    odd_q     <= read_index_i[0];
    carried_q <= read_carried_i;
  end
  assign read_o = carried_q ? carried : row[odd_q];

endmodule
`default_nettype wire
