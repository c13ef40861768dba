// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Cuts turns to the card into reads of the host's memory, and gives each a tag and its place in the ring of lines.
///
/// Behaviour: a piece lies within a multiple of MRRS, and so within a page. It goes when there is a tag and when the ring has room for the longest
/// piece, so no completion ever finds its place taken. A turn's bytes lie in the ring as in the card's lines: its first byte is in lane
/// card[5:0] of a fresh line, so lines are what AXI writes. With stream it is lane 0. Less than half of the ring may stay free (reserve_i): what is asked for
/// beyond the link's rate times its round trip waits in the host's queue, and descriptors and doorbells wait behind it.
/// Throughput: a piece in two cycles: no turn comes sooner.
/// Cuts: valid and payload of turns; all of reads.
/// Latency: from a turn to its first read 1 cycle.
/// Reset: the ring is empty.
/// Requirements: in reset s_valid is low. Lines holds at least two of the longest reads, and a line more for each.
module dma_h2c_cutter
  import dma_pkg::*, dma_data_pkg::*;
#(
    /// Lines of the ring; a power of two, at least 256.
    parameter int unsigned Lines = 512,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,

    /// Of PCIe's device control register: 128 bytes << mrrs_i, at most 5. It may change between turns.
    input wire [2:0] mrrs_i,
    /// 1/512 of the ring each that stay free; it may change at any time.
    input wire [7:0] reserve_i,

    `STREAM_RECEIVER(s, turn_t)

    // A piece: its tag comes from there, and with it goes the request.
    output logic      piece_valid,
    input  wire       piece_ready,
    output piece_t    piece,
    input  wire tag_t piece_tag_i,

    `STREAM_SENDER(m_read, read_t)

    /// A line was emptied.
    input wire free_i
);

  if (Lines < 256 || 2 ** LineBits != Lines) begin : gen_check_lines
    $fatal(1, "Lines must be a power of two and at least 256 in %m");
  end

  logic valid, ready, first, last, room_q, go, out_ready;
  logic [51:0] page;
  logic [12:0] low, bytes;
  logic [11:0] reach;
  logic [ 6:0] previous;  // the lane before the turn's first, in the line before its own
  // A turn is in two pages at most, so only the low bits are counted.
  range_split #(
      .AddressWidth(13),
      .LengthWidth(13),
      .MaxLimit(12),
      .UserWidth(59)
  ) i_split (
      .*,
      .s_address({1'b0, s_payload.host[11:0]}),
      .s_length(s_payload.bytes),
      .s_limit(4'd7 + 4'(mrrs_i)),
      .s_user({s_payload.host[63:12], 7'(s_payload.stream ? 6'd0 : s_payload.card[5:0]) + 7'd63}),
      .m_valid(valid),
      .m_ready(ready),
      .m_address(low),
      .m_length(bytes),
      .m_reach(reach),
      .m_first(first),
      .m_last(last),
      .m_user({page, previous})
  );

  // Line and lane of the last byte that has its place. From there a piece takes a fresh line wherever its bytes pass a line's end.
  logic [LineBits-1:0] line_q, line;
  logic [5:0] lane_q, here;
  logic [6:0] after, fresh;
  logic unused_sum, unused_free;  // each takes a carry to the sum above it
  logic [12:0] last_byte;
  logic on;  // in the same line
  logic [LineBits:0] free_q, needed_q;
  logic [1:0] freed_q;
  assign after                   = first ? previous : 7'(lane_q);
  assign here                    = after[5:0] + 1'b1;
  assign {last_byte, unused_sum} = {13'(after), 1'b1} + {13'(reach), 1'b1};
  assign fresh                   = last_byte[12:6];
  assign on                      = !first && lane_q != '1;
  assign go                      = piece_valid && piece_ready;
  assign ready                   = room_q && out_ready && piece_ready;

  assign line                    = line_q + LineBits'(!on);
  assign piece_valid             = valid && room_q && out_ready;
  assign piece                   = '{line: line_t'(line), lane: here, ends: last, bytes: bytes};

  // Lines come back when none are taken: after a piece there is a cycle without one, since the register before the requester is full.
  logic [LineBits:0] free_next;
  assign {free_next, unused_free} = {free_q, 1'b1} + {go ? ~(LineBits + 1)'(fresh) : (LineBits + 1)'(freed_q), go};
  always_ff @(posedge clk_i) begin
    if (go) begin
      line_q <= line_q + LineBits'(fresh);
      lane_q <= last_byte[5:0];
    end
    free_q   <= free_next;
    freed_q  <= (go ? freed_q : 2'd0) + 2'(free_i);
    // A cycle late, and never wrong, for the same reason.
    room_q   <= free_q >= needed_q;
    needed_q <= (LineBits + 1)'(8'd2 << mrrs_i) + (LineBits + 1)'({reserve_i, LineBits'(0)} >> 9) + 1'b1;
    if (rst_i) begin
      line_q  <= '1;
      lane_q  <= '1;
      room_q  <= 1'b0;
      free_q  <= (LineBits + 1)'(Lines);
      freed_q <= '0;
    end
  end

  read_t read;
  assign read = '{tag: 8'(piece_tag_i), bytes: bytes, addr: {page + 52'(low[12]), low[11:0]}};
  stream_register #(
      .Width($bits(read_t)),
      .Half (1'b1)
  ) i_register (
      .*,
      `STREAM_PORTS(s, go, out_ready, read),
      `STREAM_PORTS(m, m_read_valid, m_read_ready, m_read_payload)
  );

  logic unused;
  assign unused = ^{s_payload.channel, s_payload.last, s_payload.card[63:6]};

  `ASSERT(frees_counted, !go || freed_q < 2'd2, "a piece follows another without a cycle between")
  `ASSERT(room_is_right, free_q <= (LineBits + 1)'(Lines), "a line was freed twice, or taken without room")

endmodule
`default_nettype wire
