// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Of bypass_echo: what is answered was asked of us, and every good ping and ARP request is answered; an answer goes back to who asked, comes from no
/// group, has sums as right as the question's and is otherwise the question; each first beat in place has one verdict.
module bypass_echo_proof
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
(
    input wire                 clk_i,
    input wire                 rst_i,
    input wire echo_settings_t settings_i,
    input wire                 s_valid,
    input wire way_t           s_way,
    input wire bypass_axis_t   s_payload,
    input wire                 m_tx_ready,
    input wire                 m_verdict_ready
);

  logic s_ready, m_tx_valid, m_verdict_valid, event_o;
  bypass_axis_t m_payload;
  echo_e event_kind_o;
  bypass_echo dut (.*);

  `RESET_FIRST
  `ASSUME_NEXT(settings_stay, 1'b1, settings_i == $past(settings_i))
  `ASSUME(we_are_no_group, !settings_i.mac[40])
  `ASSUME(place_is_a_beat, !s_way.place || s_payload.last)
  `ASSUME_NEXT(offer_stays, s_valid && !s_ready, s_valid && {s_way, s_payload} == $past({s_way, s_payload}))
  logic middle_q;
  always_ff @(posedge clk_i) begin
    if (s_valid && s_ready) middle_q <= !s_payload.last;
    if (rst_i) middle_q <= 1'b0;
  end
  `ASSUME(frame_stays, !(s_valid && middle_q) || !s_way.place)

  // ---- what was asked and what leaves, byte by byte, as the wire has them

  typedef logic [63:0][7:0] bytes64_t;
  bytes64_t asked, answer;
  logic judged, look;
  logic [13:0] bytes;
  echo_e kind;
  assign asked  = dut.axis2_q.data;
  assign answer = dut.put.axis.data;
  assign bytes  = dut.axis2_q.user[13:0];
  assign kind   = dut.kind2_q;
  assign judged = dut.valid2_q && dut.first2_q;
  assign look   = kind != AsItIs;

  function automatic logic [15:0] pair(bytes64_t b, int unsigned i);
    return {b[i], b[i+1]};
  endfunction
  // By the book: RFC 1071.
  function automatic logic [15:0] folded(logic [19:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[19:16]);
    return once[15:0] + 16'(once[16]);
  endfunction
  function automatic logic [19:0] header_sum(bytes64_t b);
    logic [19:0] sum;
    sum = '0;
    for (int unsigned i = 14; i < 34; i += 2) sum += 20'(pair(b, i));
    return sum;
  endfunction

  logic to_us, from_one, ipv4, right, arp, ping, answered, ip_answer;
  logic [15:0] total;
  logic [47:0] destination, source;
  assign destination = {asked[0], asked[1], asked[2], asked[3], asked[4], asked[5]};
  assign source = {asked[6], asked[7], asked[8], asked[9], asked[10], asked[11]};
  assign to_us = destination == settings_i.mac;
  assign from_one = !source[40];
  assign total = pair(asked, 16);
  assign ipv4 = to_us && from_one && pair(
      asked, 12
  ) == 16'h0800 && asked[14] == 8'h45 && {asked[30], asked[31], asked[32], asked[33]} == settings_i.ip;
  assign right = folded(header_sum(asked)) == 16'hffff;
  assign ping        = ipv4 && right && asked[23] == 8'd1 && {asked[20][4:0], asked[21]} == '0 && asked[34] == 8'd8
      && asked[35] == 8'd0 && total >= 16'd28 && 32'(total) + 32'd14 <= 32'(bytes);
  assign arp = from_one && (to_us || destination == '1) && pair(
      asked, 12
  ) == 16'h0806 && pair(
      asked, 14
  ) == 16'd1 && pair(
      asked, 16
  ) == 16'h0800 && asked[18] == 8'd6 && asked[19] == 8'd4 && pair(
      asked, 20
  ) == 16'd1 && {asked[38], asked[39], asked[40], asked[41]} == settings_i.ip && bytes >= 14'd42;
  assign ip_answer = kind == AnsweredIcmp || kind == EchoedUdp || kind == EchoedFragment;
  assign answered = look && dut.answered2_q;

  `ASSERT(only_ours, !(judged && ip_answer) || (ipv4 && right), "answers what was not asked of us, or is damaged")
  `ASSERT(every_ping, !(judged && look && ping && settings_i.icmp) || kind == AnsweredIcmp, "a ping is not answered")
  `ASSERT(no_other_ping, !(judged && kind == AnsweredIcmp) || (ping && settings_i.icmp), "answers what is no ping")
  `ASSERT(every_arp, !(judged && look && settings_i.arp) || arp == (kind == AnsweredArp),
          "an ARP request is not answered, or another is")
  `ASSERT(back_to_asker, !(judged && answered) || (answer[5:0] == asked[11:6] && !answer[0][0]),
          "an answer does not go to who asked, or goes to a group")
  `ASSERT(from_one_of_us, !(judged && answered) || !answer[6][0], "an answer comes from a group")
  `ASSERT(header_sum_kept, !(judged && ip_answer) || folded(header_sum(answer)) == 16'hffff,
          "the IPv4 header's checksum is wrong")
  `ASSERT(icmp_sum_kept, !(judged && kind == AnsweredIcmp) || (folded(20'(pair(asked, 34)) + 20'(pair(asked, 36))
          ) == folded(20'(pair(answer, 34)) + 20'(pair(answer, 36))) && pair(answer, 34) == '0 && pair(answer, 36
          ) != '0), "the ICMP checksum is wrong")
  `ASSERT(rest_kept,
          !(judged && kind == AnsweredIcmp) || (answer[63:38] == asked[63:38] && answer[25:12] == asked[25:12]),
          "an answer differs where it must not")
  `ASSERT(untouched, !dut.valid2_q || (dut.first2_q && look) || answer == asked, "a beat was changed")

  // ---- one verdict each

  logic [7:0] flying_q;
  logic shown, told;
  assign shown = s_valid && s_ready && s_way.place;
  assign told  = m_verdict_valid && m_verdict_ready;
  always_ff @(posedge clk_i) begin
    flying_q <= flying_q + 8'(shown) - 8'(told);
    if (rst_i) flying_q <= '0;
  end
  `ASSERT(verdict_of_a_frame, !m_verdict_valid || flying_q != '0, "a verdict for no frame")
  `ASSERT(verdict_says, !m_verdict_valid || (m_payload.user[47:2] == '0 && m_payload.last), "a verdict has no sense")

  `COVER(ping_answered, judged && kind == AnsweredIcmp)
  `COVER(arp_answered, judged && kind == AnsweredArp && dut.put.place)
  `COVER(told_forward, told && m_payload.user[1:0] == 2'b11)
  `COVER(told_drop, told && !m_payload.user[0])

endmodule
`default_nettype wire
