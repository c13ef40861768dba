// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Reports whether an IPv4 address is in one of the subnets in source_ip and source_mask.
///
/// Behaviour: the address is cut into seven pieces. Each piece reads a LUT RAM. It returns one bit per subnet: the
/// piece agrees with the subnet's address, or the mask ignores it. An address is in a subnet if all seven pieces agree.
/// When a word of the list is written, the table is rebuilt from the register file, row by row. Until then no address
/// is allowed.
/// Latency: allowed_o 0 cycles; the table 1026 after written_i or reset, plus one per cycle with taken_i.
/// Reset: no address is allowed until the table is built.
/// Requirements: the file has the new word one cycle after written_i.
module kv_sources
  import kv_core_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    /// A word of the source list is written.
    input  wire         written_i,
    /// The word of the list to read: the subnet's number, and 1 to read its mask.
    output logic [ 4:0] word_o,
    /// Another block reads the file in this cycle, so word_o is not read.
    input  wire         taken_i,
    /// The word that was read in the previous cycle.
    input  wire  [31:0] word_i,

    input  wire  [31:0] ip_i,
    output logic        allowed_o
);

  localparam int unsigned PieceBits = 5;
  localparam int unsigned Pieces = (32 + PieceBits - 1) / PieceBits;

  if (Sources < 1 || Sources > 16) begin : gen_check_sources
    $fatal(1, "Sources must be 1 to 16 in %m");
  end

  // ---- the walk: for each row all 16 subnets, the last one first; for each the address, then the mask

  typedef struct packed {
    logic [PieceBits-1:0] row;
    logic [3:0] passed;  // subnets of this row that were read
    logic mask;
  } step_t;
  step_t step_q, read_q;
  logic done_q, reads_q;

  assign word_o = {~step_q.passed, step_q.mask};

  always_ff @(posedge clk_i) begin
    reads_q <= !done_q && !taken_i;
    read_q  <= step_q;
    if (!done_q && !taken_i) {done_q, step_q} <= {1'b0, step_q} + 1'b1;
    if (rst_i || written_i) begin
      done_q  <= 1'b0;
      step_q  <= '0;
      reads_q <= 1'b0;
    end
  end

  // ---- a row

  logic [31:0] ip_q, row, agrees;
  logic in_use;
  logic [Pieces-1:0] piece;
  logic [Pieces-1:0][Sources-1:0] row_q;
  logic [PieceBits-1:0] row_number_q;
  logic write_q, right_q;  // right_q: all rows are written

  // The top piece is shorter than the others, so it ignores the upper bits of the row's number.
  assign row    = 32'({Pieces{read_q.row}});
  assign in_use = word_i[31];
  assign agrees = ~word_i | ~(row ^ ip_q);

  always_comb begin
    piece = '1;
    for (int i = 0; i < 32; i++) piece[i/int'(PieceBits)] &= agrees[i];
    piece[Pieces-1] &= in_use;
  end

  always_ff @(posedge clk_i) begin
    write_q <= reads_q && read_q.mask && read_q.passed == '1;
    row_number_q <= read_q.row;
    if (reads_q) begin
      if (!read_q.mask) ip_q <= word_i;
      else for (int i = 0; i < int'(Pieces); i++) row_q[i] <= Sources'({row_q[i], piece[i]});
    end
    right_q <= done_q && !reads_q;
    if (rst_i || written_i) begin
      write_q <= 1'b0;
      right_q <= 1'b0;
    end
  end

  // ---- the table

  logic [Pieces*PieceBits-1:0] ip;
  logic [Pieces-1:0][Sources-1:0] found;
  logic [Sources-1:0] all;
  assign ip = (Pieces * PieceBits)'(ip_i);

  for (genvar i = 0; i < Pieces; i++) begin : gen_piece
    lutram #(
        .Width(Sources),
        .Depth(1 << PieceBits)
    ) i_rows (
        .clk_i,
        .write_i(write_q),
        .write_address_i(row_number_q),
        .write_data_i(row_q[i]),
        .read_address_i(ip[PieceBits*i+:PieceBits]),
        .read_data_o(found[i])
    );
  end

  always_comb begin
    all = '1;
    for (int i = 0; i < int'(Pieces); i++) all &= found[i];
  end
  assign allowed_o = right_q && all != '0;

  `ASSERT(nobody_while_building, done_q || !allowed_o, "an address was judged by a table that is not whole")

endmodule
`default_nettype wire
