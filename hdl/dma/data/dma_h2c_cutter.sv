// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Cuts turns to the card into reads of the host's memory, and gives each a tag and its place in the ring of lines.
///
/// Behaviour: a piece lies within a multiple of MRRS, and so within a page. It goes when there is a tag and when the ring has room for the longest
/// piece, so no completion ever finds its place taken. A turn's bytes lie in the ring as in the card's lines: its first byte is in lane
/// card[5:0] of a fresh line, so lines are what AXI writes. With stream it is lane 0.
/// Throughput: a piece a cycle.
/// Cuts: valid and payload of turns.
/// Latency: from a turn to its first read 1 cycle.
/// Reset: the ring is empty.
/// Requirements: in reset s_valid is low. Lines holds at least two of the longest reads, and a line more for each.
module dma_h2c_cutter
  import dma_pkg::*;
#(
    /// Lines of the ring; a power of two, at least 256.
    parameter int unsigned Lines = 512,
    /// Bits of a tag.
    parameter int unsigned TagBits = 7,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,

    /// Of PCIe's device control register: 128 bytes << mrrs_i, at most 5. It may change between turns.
    input wire [2:0] mrrs_i,

    input  wire        s_valid,
    output logic       s_ready,
    input  wire turn_t s_payload,

    // A piece: its tag comes from there, and with it goes the request.
    output logic                piece_valid_o,
    input  wire                 piece_ready_i,
    input  wire  [ TagBits-1:0] piece_tag_i,
    output logic [        12:0] piece_bytes_o,
    output logic                piece_end_o,    // of the turn
    output logic [LineBits+5:0] piece_place_o,  // of its first byte, in the ring

    output logic  m_read_valid,
    input  wire   m_read_ready,
    output read_t m_read_payload,

    /// A line was emptied.
    input wire free_i
);

  if (Lines < 256 || 2 ** LineBits != Lines) begin : gen_check_lines
    $fatal(1, "Lines must be a power of two and at least 256 in %m");
  end

  logic valid, ready, first, last, room, go, out_ready;
  logic [63:0] address;
  logic [12:0] bytes;
  logic [ 5:0] lane;
  range_split #(
      .AddressWidth(64),
      .LengthWidth(13),
      .MaxLimit(12),
      .UserWidth(6)
  ) i_split (
      .*,
      .s_address(s_payload.host),
      .s_length(s_payload.bytes),
      .s_limit(4'd7 + 4'(mrrs_i)),
      .s_user(s_payload.stream ? '0 : s_payload.card[5:0]),
      .m_valid(valid),
      .m_ready(ready),
      .m_address(address),
      .m_length(bytes),
      .m_first(first),
      .m_last(last),
      .m_user(lane)
  );

  // The line after those that are taken, and the lane after the last byte.
  logic [LineBits-1:0] next_q;
  logic [5:0] lane_q, here;
  logic [LineBits:0] free_q;
  logic [12:0] reach;
  logic [6:0] touched, fresh;
  assign here          = first ? lane : lane_q;
  assign reach         = 13'(here) + bytes;
  assign touched       = 7'((reach + 13'd63) >> 6);
  // The line of its first byte was taken by the piece before, unless that ended with it.
  assign fresh         = touched - 7'(!first && lane_q != '0);
  assign room          = free_q >= (LineBits + 1)'(8'd2 << mrrs_i) + 1'b1;
  assign go            = piece_valid_o && piece_ready_i;
  assign ready         = room && out_ready && piece_ready_i;

  // In LineBits + 6 bits the place of a byte; one that goes on in a line is a line back.
  assign piece_place_o = {!first && lane_q != '0 ? next_q - 1'b1 : next_q, here};
  assign piece_valid_o = valid && room && out_ready;
  assign piece_bytes_o = bytes;
  assign piece_end_o   = last;

  always_ff @(posedge clk_i) begin
    if (go) begin
      next_q <= next_q + LineBits'(fresh);
      lane_q <= reach[5:0];
    end
    free_q <= free_q - (go ? (LineBits + 1)'(fresh) : '0) + (LineBits + 1)'(free_i);
    if (rst_i) begin
      next_q <= '0;
      lane_q <= '0;
      free_q <= (LineBits + 1)'(Lines);
    end
  end

  read_t read;
  assign read = '{tag: 8'(piece_tag_i), bytes: bytes, addr: address};
  stream_register #(
      .Width($bits(read_t))
  ) i_register (
      .*,
      .s_valid  (go),
      .s_ready  (out_ready),
      .s_payload(read),
      .m_valid  (m_read_valid),
      .m_ready  (m_read_ready),
      .m_payload(m_read_payload)
  );

  logic unused;
  assign unused = ^{s_payload.channel, s_payload.last, s_payload.card[63:6]};

endmodule
`default_nettype wire
