// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Many event counters in one block RAM.
///
/// Behaviour: in each cycle one counter may grow by amount_i, even the same one in every cycle. Counters wrap. clear_i
/// or reset sets all to 0, one per cycle (clearing_o). Events during this time are lost.
/// Latency: an event can be read 2 cycles later. `read_data_o` comes 1 cycle after read_i, and stays until the next.
/// Reset: begins to clear.
/// Requirements: index_i and read_index_i are below Counters.
module counter_ram #(
    /// Counters; at least 2.
    parameter int unsigned Counters = 128,
    /// Bits of a counter; at least 1.
    parameter int unsigned Width = 32,
    /// Bits of the added amount; 1 to Width.
    parameter int unsigned AmountWidth = 1,
    localparam int unsigned IndexWidth = $clog2(Counters)
) (
    input wire clk_i,
    input wire rst_i,

    input wire                   add_i,
    input wire [ IndexWidth-1:0] index_i,
    input wire [AmountWidth-1:0] amount_i,

    input  wire                   read_i,
    input  wire  [IndexWidth-1:0] read_index_i,
    output logic [     Width-1:0] read_data_o,

    input  wire  clear_i,
    output logic clearing_o
);

  if (Counters < 2) begin : gen_check_counters
    $fatal(1, "Counters must be at least 2 in %m");
  end
  if (AmountWidth < 1 || AmountWidth > Width) begin : gen_check_amount_width
    $fatal(1, "AmountWidth must be 1 to Width in %m");
  end

  // An event in its second cycle, when the RAM has read its counter.
  logic add_q;
  logic [IndexWidth-1:0] index_q;
  logic [AmountWidth-1:0] amount_q;
  // Data written to the RAM in the same cycle as a read, which returned the old data.
  logic forward_q;
  logic [Width-1:0] written_q;
  logic clearing_q;
  logic [IndexWidth-1:0] clear_index_q;

  logic [Width-1:0] counter, sum;
  logic write;
  logic [IndexWidth-1:0] write_index;
  logic [Width-1:0] write_data;

  assign sum         = (forward_q ? written_q : counter) + Width'(amount_q);
  assign write       = clearing_q || add_q;
  assign write_index = clearing_q ? clear_index_q : index_q;
  assign write_data  = clearing_q ? '0 : sum;
  assign clearing_o  = clearing_q;

  always_ff @(posedge clk_i) begin
    add_q <= add_i && !clearing_q && !clear_i;
    index_q <= index_i;
    amount_q <= amount_i;
    forward_q <= add_q && index_q == index_i;
    written_q <= sum;
    if (clearing_q) begin
      clear_index_q <= clear_index_q + 1'b1;
      if (clear_index_q == IndexWidth'(Counters - 1)) clearing_q <= 1'b0;
    end
    if (rst_i || clear_i) begin
      clearing_q <= 1'b1;
      clear_index_q <= '0;
    end
    if (rst_i) add_q <= 1'b0;
  end

  // Two copies of the same counters: one for the sums, one for reads.
  simple_dual_port_ram #(
      .Width(Width),
      .Depth(Counters)
  ) i_sums (
      .*,
      .write_i(write),
      .write_address_i(write_index),
      .write_data_i(write_data),
      .read_i(add_i),
      .read_address_i(index_i),
      .read_data_o(counter)
  );

  simple_dual_port_ram #(
      .Width(Width),
      .Depth(Counters)
  ) i_read (
      .*,
      .write_i(write),
      .write_address_i(write_index),
      .write_data_i(write_data),
      .read_address_i(read_index_i)
  );

endmodule
`default_nettype wire
