// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// Rotates the bytes of a line of 64 down by 0 to 63 lanes.
///
/// Behaviour: byte i of m_data is byte (i + s_down) mod 64 of s_data. s_user stays with its line. Words rotate first, in
/// two choices of four, then bytes by 0 to 3 lanes, in multipliers (byte_shift).
/// Throughput: a line a cycle.
/// Cuts: valid and payload. m_ready passes through to s_ready.
/// Latency: 2 cycles.
/// Reset: empties both stages. The payload keeps its value.
/// Requirements: s_valid is low during reset.
module dma_axi_rotate #(
    parameter int unsigned UserWidth = 1
) (
    input wire clk_i,
    input wire rst_i,

    input  wire                  s_valid,
    output logic                 s_ready,
    input  wire  [        511:0] s_data,
    input  wire  [          5:0] s_down,
    input  wire  [UserWidth-1:0] s_user,

    output logic                 m_valid,
    input  wire                  m_ready,
    output logic [        511:0] m_data,
    output logic [UserWidth-1:0] m_user
);

  // ---- by words
  logic [15:0][31:0] line;
  // Kept, so that a choice of four stays one LUT, and does not merge with another.
  `YOSYS_KEEP
  logic [15:0][31:0] once, words;
  `YOSYS_KEEP
  logic [5:0] down;
  assign down = s_down;
  assign line = s_data;
  for (genvar i = 0; i < 16; i++) begin : gen_word
    logic [31:0] low, high, low_more, high_more;
    assign low       = down[4] ? line[(i+4)%16] : line[i];
    assign high      = down[4] ? line[(i+12)%16] : line[(i+8)%16];
    assign once[i]   = down[5] ? high : low;
    assign low_more  = down[2] ? once[(i+1)%16] : once[i];
    assign high_more = down[2] ? once[(i+3)%16] : once[(i+2)%16];
    assign words[i]  = down[3] ? high_more : low_more;
  end

  // ---- by bytes: the multipliers hold both stages' data
  logic middle_q, out_q, load, move;
  logic [UserWidth-1:0] middle_user_q, out_user_q;
  assign move    = !out_q || m_ready;
  assign load    = !middle_q || move;
  assign s_ready = load;
  assign m_valid = out_q;
  assign m_user  = out_user_q;
  byte_shift i_bytes (
      .*,
      .load_i(load),
      .data_i({words[0][23:0], words}),
      .down_i(down[1:0]),
      .move_i(move),
      .data_o(m_data)
  );
  always_ff @(posedge clk_i) begin
    if (load) begin
      middle_q      <= s_valid;
      middle_user_q <= s_user;
    end
    if (move) begin
      out_q      <= middle_q;
      out_user_q <= middle_user_q;
    end
    if (rst_i) begin
      middle_q <= 1'b0;
      out_q    <= 1'b0;
    end
  end

endmodule
`default_nettype wire
