// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves bypass_verdicts: frames are posted once, in order, with their own verdict. One arbitrary frame is followed.
module bypass_verdicts_proof
  import bypass_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire run_i,
    input wire s_place_valid,
    input wire frame_t s_place_payload,
    input wire s_verdict_valid,
    input wire [1:0] action_i,
    input wire m_line_ready,
    input wire m_ready,
    input wire [2:0] watched_i
);

  localparam bypass_config_t Config = '{queue_bits: 0, rx_bits: 4, tx_bits: 3, pack_bits: 9};
  localparam int unsigned Bits = Config.queue_bits + Config.rx_bits + SlotBits - LineBits;

  logic s_place_ready, s_verdict_ready, m_line_valid, m_valid;
  events_t events_o;
  logic [Bits-1:0] m_line;
  data_t m_line_data;
  post_t m_payload;
  bypass_axis_t s_verdict_payload;
  // The lowest bits of the data carry the verdict's number.
  logic [2:0] verdicts_q;
  assign s_verdict_payload = '{user: 48'(action_i), last: 1'b1, keep: '1, data: data_t'(verdicts_q)};
  bypass_verdicts #(.Config(Config)) dut (.*);

  logic place, post, good;
  assign place = s_place_valid && s_place_ready;
  assign post  = m_valid && m_ready;
  assign good  = s_place_payload.verdict == Good;

  // Frames so far, and the good ones among them; the followed frame, and its verdict.
  logic [2:0] watched_q, places_q, posts_q, goods_q, number_q;
  logic held_q, told_q;
  logic [1:0] action_q;
  frame_t frame_q;
  always_ff @(posedge clk_i) begin
    if (place) begin
      places_q <= places_q + 1'b1;
      if (good) goods_q <= goods_q + 1'b1;
      if (places_q == watched_q) begin
        held_q   <= 1'b1;
        frame_q  <= s_place_payload;
        number_q <= goods_q;
      end
    end
    if (post) posts_q <= posts_q + 1'b1;
    if (s_verdict_valid && s_verdict_ready) begin
      verdicts_q <= verdicts_q + 1'b1;
      if (verdicts_q == number_q && held_q) begin
        told_q   <= 1'b1;
        action_q <= action_i;
      end
    end
    if (rst_i) begin
      watched_q  <= watched_i;
      places_q   <= '0;
      posts_q    <= '0;
      goods_q    <= '0;
      verdicts_q <= '0;
      held_q     <= 1'b0;
      told_q     <= 1'b0;
    end
  end

  `RESET_FIRST
  `ASSUME(pair_exists, s_place_payload.pair == '0)
  `ASSUME(few, places_q != '1)
  // A verdict comes only after the frame's head was taken.
  `ASSUME(verdict_for_a_frame, !s_verdict_valid || verdicts_q != goods_q)
  `ASSUME_NEXT(verdict_kept, s_verdict_valid && !s_verdict_ready, s_verdict_valid && action_i == $past(action_i))
  `ASSUME_NEXT(goes_on_running, 1'b1, run_i == $past(run_i))

  logic mine, forwards, its_place;
  offset_t offset;
  assign offset = slot_offset(frame_q.pair, frame_q.index, Config);
  assign its_place = m_payload.pair == frame_q.pair && m_payload.slots == frame_q.slots && m_payload.in_place
      && m_payload.line == offset[WindowBits-1:LineBits];
  assign mine = post && posts_q == watched_q;
  assign forwards = frame_q.verdict == Good && action_i[0] && run_i;
  `ASSERT(none_before_it_came, !post || posts_q != places_q, "a frame is posted that has not come")
  `ASSERT(in_order, !mine || (held_q && its_place), "frames are posted in another order")
  `ASSERT(with_its_verdict, !mine || m_payload.skip == !forwards, "a frame has another's verdict")
  `ASSERT(its_own, !mine || frame_q.verdict != Good || (s_verdict_valid && verdicts_q == number_q), "a verdict is lost")
  `ASSERT(verdict_taken_with_it, !(s_verdict_valid && s_verdict_ready) || post, "a verdict is taken without its frame")
  `ASSERT(whole_frame, !mine || m_payload.skip || m_payload.bytes == frame_q.bytes, "a frame's length changes")
  `ASSERT(line_with_its_frame,
          !(m_line_valid && m_line_ready) || (post && action_i[1] && m_line_data[2:0] == verdicts_q),
          "a line is replaced without its frame")
  `ASSERT(line_replaced, !(mine && forwards && action_i[1]) || (m_line_valid && m_line_ready), "a line is not replaced")

  logic unused;
  assign unused = ^{offset[LineBits-1:0], told_q, action_q, events_o, m_line, m_line_data[511:3]};

  `COVER(forwarded, mine && !m_payload.skip && watched_q == 3'd1)
  `COVER(replaced_late, m_line_valid && m_line_ready && posts_q == 3'd1)
  `COVER(bad_between, mine && frame_q.verdict != Good && watched_q == 3'd1)

endmodule
`default_nettype wire
