// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"
`include "stream.svh"

/// Cuts turns to the host into posted writes, and moves their bytes to lane 0.
///
/// Behaviour: a write stays within a multiple of MPS, and so within a page. It starts when all its bytes are
/// in the ring without an error, so it never pauses for lack of data. After an error, the turn's other bytes
/// are taken from the ring and discarded. A turn is answered when its last write is taken. Bytes move down
/// by lane[5:2] words, through banks with their own addresses (dma_banks), and then by lane[1:0] bytes, in
/// multipliers (byte_shift). These need a word of the next beat, or a cycle of their own after the write.
/// Throughput: a beat a cycle, and a write in two cycles; one cycle more if the last moved beat uses another line.
/// Combinational paths: none from valid and payload of turns and writes.
/// Latency: last byte in the ring to the write's first beat 4 cycles.
/// Reset: discards everything.
/// Requirements: s_valid is low during reset.
module dma_c2h_writer
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter int unsigned Lines = 512,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    /// From PCIe's device control register: 128 bytes << mps_i, at most 2 (512). It may change between turns.
    input wire [2:0] mps_i,

    `STREAM_RECEIVER(s, turn_t)
    `STREAM_SENDER(m, write_t)
    `STREAM_SENDER(m_done, done_t)

    input  wire  [LineBits:0] arrived_i,
    output logic [       5:0] turn_o,
    input  wire               bad_i,

    output bank_read_t      read_o,
    input  wire bank_data_t read_i,
    output logic            free_o
);

  // Fields of the turn that a write keeps.
  typedef struct packed {
    logic [1:0] channel;
    logic       packet_ends;
    logic [5:0] lane;
  } about_t;

  // ---- writes
  logic split_valid, split_ready, split_first, split_last;
  logic [51:0] page;
  logic [12:0] split_low, unused_bytes;
  logic [11:0] split_reach;
  about_t split_about;
  // A turn covers at most two pages, so only the low address bits are added.
  range_split #(
      .AddressWidth(13),
      .LengthWidth(13),
      .MaxLimit(12),
      .UserWidth(52 + $bits(about_t))
  ) i_split (
      .*,
      .s_address({1'b0, s_payload.host[11:0]}),
      .s_length(s_payload.bytes),
      .s_limit(4'd7 + 4'(mps_i)),
      .s_user({s_payload.host[63:12], s_payload.channel, s_payload.stream && s_payload.last, s_payload.card[5:0]}),
      .m_valid(split_valid),
      .m_ready(split_ready),
      .m_address(split_low),
      .m_length(unused_bytes),
      .m_reach(split_reach),
      .m_first(split_first),
      .m_last(split_last),
      .m_user({page, split_about})
  );

  // Registered: the write's first lane, and its number of lines. With a length less 1, the sum is the last byte.
  typedef struct packed {
    logic        first;
    logic        last;
    logic [1:0]  channel;
    logic        packet_ends;
    logic [5:0]  lane;
    logic [3:0]  lines;        // less 1
    logic [8:0]  reach;        // bytes, less 1: MPS is 512 at most
    logic [63:0] addr;
  } write_about_t;
  write_about_t split, about;
  logic valid, ready;
  logic [5:0] split_lane, split_lane_q;
  logic [9:0] split_end;
  assign split_lane = split_first ? split_about.lane : split_lane_q;
  assign split_end = 10'(split_lane) + 10'(split_reach[8:0]);
  assign split = '{
          first: split_first,
          last: split_last,
          channel: split_about.channel,
          packet_ends: split_about.packet_ends,
          lane: split_lane,
          lines: split_end[9:6],
          reach: split_reach[8:0],
          addr: {page + 52'(split_low[12]), split_low[11:0]}
      };
  always_ff @(posedge clk_i) if (split_valid && split_ready) split_lane_q <= split_end[5:0] + 1'b1;
  stream_register #(
      .Width($bits(write_about_t)),
      .Half (1'b1)
  ) i_write (
      .*,
      `STREAM_PORTS(s, split_valid, split_ready, split),
      `STREAM_PORTS(m, valid, ready, about)
  );

  // ---- a beat of the write, taken from the ring
  typedef struct packed {
    logic        head;         // of its write
    logic        tail;
    logic        void_;
    logic        needs;        // a word of the beat after it
    logic        ends;         // its turn
    logic [1:0]  channel;
    logic        packet_ends;
    error_e      error;
    logic [12:0] moved;
    logic [1:0]  fine;
    logic [8:0]  reach;
    logic [63:0] addr;
  } beat_t;

  logic [LineBits:0] line_q, have;
  logic [5:0] lane_q, lane, turn_q;
  logic [8:0] left_q, left;  // bytes of the write, less 1
  logic [12:0] moved_q, moved;
  logic middle_q, void_q, void_, tail, here, fetch, extra, extra_q, extra_free_q, over, d_free;
  logic [5:0] step;  // bytes of the beat, less 1
  logic [6:0] end_;  // lane of the last one
  logic last, last_q, packet_ends, packet_ends_q, needs;
  logic [1:0] channel, channel_q;
  logic [3:0] coarse, extra_coarse_q;
  error_e error, error_q;
  beat_t beat, d_q, r_q, o_q;
  assign turn_o = turn_q;
  // A write uses the register only for its first beat, so the next write can enter it during the others.
  assign last = middle_q ? last_q : about.last;
  assign channel = middle_q ? channel_q : about.channel;
  assign packet_ends = middle_q ? packet_ends_q : about.packet_ends;
  assign lane = middle_q ? lane_q : about.lane;
  assign left = middle_q ? left_q : about.reach;
  assign tail = left[8:6] == '0;
  assign step = left[5:0] | {6{!tail}};
  assign end_ = 7'(lane) + 7'(step);
  assign have = arrived_i - line_q;
  assign here = middle_q || have > (LineBits + 1)'(about.lines);
  always_comb begin
    error = about.first && !middle_q ? ErrorNone : error_q;
    if (error == ErrorNone && !middle_q && bad_i) error = ErrorMemory;
    if (error == ErrorNone && !middle_q && stop_i) error = ErrorReset;
  end
  assign void_ = middle_q ? void_q : error != ErrorNone;
  logic unused_sum;  // takes the 1 of step + 1 to the sum above it
  assign {moved, unused_sum} = {13'(step & {6{!void_}}), 1'b1} + {about.first && !middle_q ? '0 : moved_q, !void_};
  assign fetch = (valid || middle_q) && here && !extra_q && d_free;
  assign ready = here && !extra_q && d_free && !middle_q;
  // The next line: either its first bytes belong to this beat, or it is freed together with it.
  assign needs = step[5:2] == '1 && 3'(step[1:0]) + 3'(lane[1:0]) > 3'd3;
  assign over = tail && (needs || (last && end_[6]));
  assign extra = extra_q && d_free;
  assign beat = '{
          head: !middle_q,
          tail: tail,
          void_: void_,
          needs: needs,
          ends: tail && last,
          channel: channel,
          packet_ends: packet_ends,
          error: error,
          moved: moved,
          fine: lane[1:0],
          reach: about.reach,
          addr: about.addr
      };
  assign free_o = extra ? extra_free_q : fetch && (end_[6] || end_[5:0] == '1 || (tail && last));
  assign read_o.enable = fetch || extra;
  assign coarse = extra_q ? extra_coarse_q : lane[5:2];
  logic [LineBits-1:0] line_after;
  assign line_after = line_q[LineBits-1:0] + 1'b1;
  for (genvar b = 0; b < 16; b++) begin : gen_line
    assign read_o.line[b] = 5'(b) + 5'd1 > 5'(coarse) ? line_t'(line_q[LineBits-1:0]) : line_t'(line_after);
  end

  always_ff @(posedge clk_i) begin
    if (fetch) begin
      middle_q <= !tail;
      last_q <= last;
      channel_q <= channel;
      packet_ends_q <= packet_ends;
      left_q <= {left[8:6] - 1'b1, left[5:0]};
      lane_q <= end_[5:0] + 1'b1;
      void_q <= void_;
      error_q <= error;
      moved_q <= moved;
      extra_q <= over;
      extra_free_q <= last && end_[6];
      extra_coarse_q <= lane[5:2];
      if (tail && last) turn_q <= turn_q + 1'b1;
    end
    if (extra) extra_q <= 1'b0;
    if (free_o) line_q <= line_q + 1'b1;
    if (rst_i) begin
      middle_q <= 1'b0;
      extra_q  <= 1'b0;
      turn_q   <= '0;
      line_q   <= '0;
    end
  end

  // ---- out of the ring, and moved by words: word i comes from bank i + coarse
  logic d_valid_q, d_extra_q, r_valid_q, r_go, r_free, o_valid_q, o_go, o_free, offered, done_free;
  logic [3:0] d_coarse_q;
  // Kept, so that a choice of four stays one LUT, and does not merge with another.
  `YOSYS_KEEP
  logic [15:0][31:0] once, words;
  // Again with an inverted copy: see dma_h2c_store.
  logic [3:0] d_not_coarse_q;
  for (genvar i = 0; i < 16; i++) begin : gen_word
    logic [31:0] low, high, low_more, high_more;
    logic [1:0] far, near;
    assign far = i / 8 % 2 == 0 ? d_coarse_q[3:2] : ~d_not_coarse_q[3:2];
    assign near = i / 2 % 2 == 0 ? d_coarse_q[1:0] : ~d_not_coarse_q[1:0];
    assign low = far[0] ? read_i[(i+4)%16] : read_i[i];
    assign high = far[0] ? read_i[(i+12)%16] : read_i[(i+8)%16];
    assign once[i] = far[1] ? high : low;
    assign low_more = near[0] ? once[(i+1)%16] : once[i];
    assign high_more = near[0] ? once[(i+3)%16] : once[(i+2)%16];
    assign words[i] = near[1] ? high_more : low_more;
  end
  assign d_free = !d_valid_q || (d_extra_q ? !r_valid_q || r_go : r_free);
  assign r_free = !r_valid_q || r_go;
  always_ff @(posedge clk_i) begin
    if (d_free) begin
      d_valid_q      <= fetch || extra;
      d_extra_q      <= extra;
      d_coarse_q     <= coarse;
      d_not_coarse_q <= ~coarse;
      d_q            <= beat;
    end
    if (r_free) begin
      r_valid_q <= d_valid_q && !d_extra_q;
      r_q       <= d_q;
    end
    if (r_go) o_q <= r_q;
    if (o_free) o_valid_q <= r_go;
    if (rst_i) begin
      d_valid_q <= 1'b0;
      d_extra_q <= 1'b0;
      r_valid_q <= 1'b0;
      o_valid_q <= 1'b0;
    end
  end

  // ---- moved by bytes
  // The last 3 bytes come from the next beat, which is one register behind.
  logic [511:0] moved_down;
  logic [ 23:0] after_q;
  byte_shift i_fine (
      .*,
      .load_i(r_free),
      .data_i({24'd0, words}),
      .down_i(d_q.fine),
      .move_i(r_go),
      .data_o(moved_down)
  );
  always_ff @(posedge clk_i) if (r_go) after_q <= 24'({words[0][23:0], 24'd0} >> {r_q.fine, 3'd0});

  assign done_free = !m_done_valid || m_done_ready;
  assign r_go = r_valid_q && (!r_q.needs || d_valid_q) && o_free;
  assign o_free = !o_valid_q || o_go;
  assign offered = o_valid_q && (!o_q.ends || done_free);
  assign o_go = offered && (o_q.void_ || m_ready);
  assign m_valid = offered && !o_q.void_;
  assign m_payload = '{
          first: o_q.head,
          last: o_q.tail,
          bytes: 13'(o_q.reach) + 1'b1,
          addr: o_q.addr,
          data: moved_down | {after_q, 488'd0}
      };
  always_ff @(posedge clk_i) begin
    if (m_done_ready) m_done_valid <= 1'b0;
    if (o_go && o_q.ends) begin
      m_done_valid <= 1'b1;
      m_done_payload <= '{
          channel: o_q.channel,
          error: o_q.error,
          end_of_packet: o_q.packet_ends && o_q.error == ErrorNone,
          bytes: o_q.moved
      };
    end
    if (rst_i) m_done_valid <= 1'b0;
  end

  logic unused;
  assign unused = ^{s_payload.card[63:6], split_reach[11:9], o_q.needs, o_q.fine};

  `ASSERT(lines_are_there, have <= (LineBits + 1)'(Lines), "takes lines that never came")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid && m_payload == $past(m_payload),
               "a write was withdrawn or changed before it was taken")

endmodule
`default_nettype wire
