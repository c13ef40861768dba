// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Cuts turns to the card into reads of host memory. Each read gets a tag and a place in the ring of lines.
///
/// Behaviour: a piece stays within a multiple of MRRS, and so within a page. It needs a tag, and room for the
/// longest piece, so each completion finds its place. The ring's lines match AXI's: a turn's first byte is in
/// lane card[5:0] (with stream 0) of a new line. reserve_i keeps less than half of the ring free: requests beyond
/// the link's rate times its round trip only wait in the host's queue, and delay descriptors and doorbells.
/// Throughput: a piece in two cycles, the rate of turns.
/// Combinational paths: none from valid and payload of turns, and none through reads.
/// Latency: turn to its first read 1 cycle.
/// Reset: the ring is empty.
/// Requirements: s_valid is low during reset. Lines holds two of the longest reads, plus a line for each.
module dma_h2c_cutter
  import dma_pkg::*, dma_data_pkg::*;
#(
    /// Lines of the ring; a power of two, at least 256.
    parameter int unsigned Lines = 512,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,

    /// From PCIe's device control register: 128 bytes << mrrs_i, at most 5. It may change between turns.
    input wire [2:0] mrrs_i,
    /// Free part of the ring, in 1/512 of its lines; it may change at any time.
    input wire [7:0] reserve_i,

    `STREAM_RECEIVER(s, turn_t)

    // A piece gets its tag there, and leaves together with its request.
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
  // A turn covers at most two pages, so only the low address bits are added.
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

  // Line and lane of the last assigned byte. A piece takes a new line whenever its bytes pass a line's end.
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

  // Lines return only in a cycle without a piece. Each piece is followed by one: the requester's register is full.
  logic [LineBits:0] free_next;
  assign {free_next, unused_free} = {free_q, 1'b1} + {go ? ~(LineBits + 1)'(fresh) : (LineBits + 1)'(freed_q), go};
  always_ff @(posedge clk_i) begin
    if (go) begin
      line_q <= line_q + LineBits'(fresh);
      lane_q <= last_byte[5:0];
    end
    free_q   <= free_next;
    freed_q  <= (go ? freed_q : 2'd0) + 2'(free_i);
    // One cycle late, and still right, for the same reason.
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
