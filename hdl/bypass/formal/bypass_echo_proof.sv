// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves bypass_echo: each frame leaves in order or is counted as dropped. Beats, length and pair stay;
/// fields are swapped as ARP, IPv4, ICMP and UDP require. It follows two beats of one arbitrary frame,
/// and computes the answer without the module's functions. The simulation checks header checksums.
module bypass_echo_proof
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire echo_settings_t settings_i,
    input wire s_valid,
    input wire way_t s_way,
    input wire bypass_axis_t s_payload,
    input wire m_tx_ready,
    input wire m_verdict_ready,
    input wire [1:0] watched_i
);

  logic s_ready, m_tx_valid, m_verdict_valid, event_o;
  bypass_axis_t m_payload;
  echo_e event_kind_o;
  bypass_echo dut (.*);

  // ---- what comes in

  logic [1:0] watched_q, came_q, beat_q;  // frames begun, and the beat of the one that comes
  way_t [3:0] ways_q;
  way_t way_q;
  logic [47:0] user_q;
  bypass_axis_t [1:0] mine_q;  // the watched frame's beats
  logic in;
  logic [1:0] number;  // of the frame that comes
  assign in = s_valid && s_ready;
  assign number = came_q - 2'(beat_q != '0);
  always_ff @(posedge clk_i) begin
    if (in) begin
      if (beat_q == '0) begin
        came_q         <= came_q + 1'b1;
        ways_q[came_q] <= s_way;
        way_q          <= s_way;
        user_q         <= s_payload.user;
      end
      beat_q <= s_payload.last ? '0 : beat_q == 2'd2 ? 2'd2 : beat_q + 1'b1;
      if (number == watched_q && beat_q < 2'd2) mine_q[beat_q[0]] <= s_payload;
    end
    if (rst_i) begin
      watched_q <= watched_i;
      came_q   <= '0;
      beat_q    <= '0;
    end
  end

  `RESET_FIRST
  `ASSUME(few, came_q != '1)
  `ASSUME(a_frame_in_place_is_a_beat, !s_valid || !s_way.place || (s_payload.last && beat_q == '0))
  `ASSUME(user_stays, !s_valid || beat_q == '0 || (s_payload.user == user_q && s_way == way_q))
  `ASSUME_NEXT(beat_stays, s_valid && !s_ready, s_valid && s_payload == $past(s_payload) && s_way == $past(s_way))
  `ASSUME_NEXT(settings_stay, 1'b1, settings_i == $past(settings_i))

  // ---- the decision, and what must leave because of it

  logic [1:0] judged_q, to_send_q, to_tell_q, my_place_q;
  logic known_q, sends_q;
  echo_e kind_q;
  way_t  way;
  logic sends, drops;
  assign way   = ways_q[judged_q];
  assign drops = way.look ? event_kind_o == NotOurs || event_kind_o == Malformed : way.drop;
  assign sends = !way.place && !drops;
  always_ff @(posedge clk_i) begin
    if (event_o) begin
      judged_q  <= judged_q + 1'b1;
      to_send_q <= to_send_q + 2'(sends);
      to_tell_q <= to_tell_q + 2'(way.place);
      if (judged_q == watched_q) begin
        known_q    <= 1'b1;
        kind_q     <= event_kind_o;
        sends_q    <= sends;
        my_place_q <= to_send_q;
      end
    end
    if (rst_i) begin
      judged_q  <= '0;
      to_send_q <= '0;
      to_tell_q <= '0;
      known_q   <= 1'b0;
    end
  end

  // ---- what leaves

  logic [1:0] sent_q, told_q, out_beat_q;
  logic out, mine;
  assign out  = m_tx_valid && m_tx_ready;
  assign mine = m_tx_valid && known_q && sends_q && sent_q == my_place_q;
  always_ff @(posedge clk_i) begin
    if (out) begin
      out_beat_q <= m_payload.last ? '0 : out_beat_q == 2'd2 ? 2'd2 : out_beat_q + 1'b1;
      if (m_payload.last) sent_q <= sent_q + 1'b1;
    end
    if (m_verdict_valid && m_verdict_ready) told_q <= told_q + 1'b1;
    if (rst_i) begin
      sent_q     <= '0;
      told_q     <= '0;
      out_beat_q <= '0;
    end
  end

  // ---- the answer, byte by byte in wire order

  logic [511:0] asked, answer;
  logic [47:0] mac;
  logic [31:0] ip;
  logic [16:0] sum;
  always_comb begin
    for (int i = 0; i < 6; i++) mac[8*i+:8] = settings_i.mac[40-8*i+:8];
    for (int i = 0; i < 4; i++) ip[8*i+:8] = settings_i.ip[24-8*i+:8];
    asked         = mine_q[0].data;
    answer        = asked;
    answer[47:0]  = asked[95:48];
    answer[95:48] = mac;
    sum           = 17'({asked[8*36+:8], asked[8*37+:8]}) + 17'h00800;
    case (kind_q)
      AnsweredArp: begin
        answer[8*20+:16] = 16'h0200;
        answer[8*22+:48] = mac;
        answer[8*28+:32] = asked[8*38+:32];
        answer[8*32+:48] = asked[8*22+:48];
        answer[8*38+:32] = asked[8*28+:32];
      end
      AnsweredIcmp, EchoedUdp, EchoedFragment: begin
        answer[8*26+:32] = asked[8*30+:32];
        answer[8*30+:32] = asked[8*26+:32];
      end
      Reflected: if (!asked[0]) answer[95:48] = asked[47:0];
      default:   answer = asked;
    endcase
    if (kind_q == AnsweredIcmp) begin
      answer[8*34+:16]                   = '0;
      {answer[8*36+:8], answer[8*37+:8]} = sum[15:0] + 16'(sum[16]);
    end
    if (kind_q == EchoedUdp) begin
      answer[8*34+:16] = asked[8*36+:16];
      answer[8*36+:16] = asked[8*34+:16];
    end
  end

  logic of_ip, for_us;
  assign of_ip  = kind_q == AnsweredIcmp || kind_q == EchoedUdp || kind_q == EchoedFragment;
  assign for_us = asked[47:0] == mac && asked[8*12+:16] == 16'h0008 && asked[8*30+:32] == ip;

  `ASSERT(judged_after_it_came, !event_o || judged_q != came_q, "a frame is judged that has not come")
  `ASSERT(sent_after_it_was_judged, !m_tx_valid || sent_q != to_send_q, "more frames leave than are answered")
  `ASSERT(told_after_it_was_judged, !m_verdict_valid || told_q != to_tell_q, "more verdicts than frames in place")
  logic holds_one, under_way, same;  // in the cell; a frame that has not come to its end; a beat as it came
  bypass_axis_t mine_came;
  assign holds_one = dut.valid1_q || dut.valid2_q || dut.out_valid;
  assign under_way = beat_q != '0 && 2'(sent_q + 1'b1) == to_send_q;
  assign mine_came = mine_q[out_beat_q[0]];
  assign same = m_payload.keep == mine_came.keep && m_payload.last == mine_came.last
      && m_payload.user == mine_came.user;
  `ASSERT(nothing_uncounted, holds_one || judged_q == came_q, "a frame came, and was not counted")
  `ASSERT(nothing_lost, holds_one || sent_q == to_send_q || under_way, "a frame was answered, and did not leave")
  `ASSERT(no_verdict_lost, holds_one || told_q == to_tell_q, "a frame in place has no verdict")
  `ASSERT(beats_kept, !mine || out_beat_q[1] || same, "a frame's length or pair changes")
  `ASSERT(first_beat_right, !mine || out_beat_q != '0 || m_payload.data == answer, "an answer has wrong fields")
  `ASSERT(later_beats_kept, !mine || out_beat_q != 2'd1 || m_payload.data == mine_q[1].data,
          "bytes behind the first 64 change")
  `ASSERT(ip_for_us_alone, !mine || !of_ip || for_us, "a datagram for another one is answered")
  `ASSERT(arp_for_us_alone, !mine || kind_q != AnsweredArp || (asked[8*38+:32] == ip && asked[8*20+:16] == 16'h0100),
          "a question for another one is answered")

  logic unused;
  assign unused = ^ways_q;

  `COVER(two_beats, mine && out_beat_q == 2'd1 && kind_q == EchoedUdp)
  `COVER(second_is_answered, mine && kind_q == AnsweredIcmp && watched_q == 2'd1 && my_place_q == '0)
  `COVER(arp, mine && kind_q == AnsweredArp)
  `COVER(in_place, m_verdict_valid && to_send_q == 2'd1)

endmodule
`default_nettype wire
