// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Answers ARP, ping and UDP echo for one Ethernet and one IPv4 address, at a beat a cycle.
/// See docs/design/bypass-functions.md.
///
/// Behaviour: only a frame's first 64 bytes are read or changed, so a frame in place needs no others (way.place).
/// Frames without an answer are dropped, or returned with swapped Ethernet addresses (settings_i.reflect). Wrong
/// checksums stay wrong: swaps keep a sum (RFC 1071, 2), and ICMP's is updated (RFC 1624). Stream frames leave at
/// m_tx with their pair; frames in place get verdicts, in order. Frames without way.look pass unchanged.
/// Latency: 3 cycles from the first beat to the first beat of the answer, or to the verdict.
/// Paths: none.
/// Reset: discards frames in progress.
/// Requirements: tuser of s_payload is the same in all beats of a frame. A frame in place is one beat.
module bypass_echo
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire echo_settings_t settings_i,

    input  wire               s_valid,
    output logic              s_ready,
    // verilator lint_off UNUSEDSIGNAL  // the target
    input  wire way_t         s_way,
    // verilator lint_on UNUSEDSIGNAL
    input  wire bypass_axis_t s_payload,

    output logic         m_tx_valid,
    input  wire          m_tx_ready,
    output logic         m_verdict_valid,
    input  wire          m_verdict_ready,
    output bypass_axis_t m_payload,

    /// A frame has been judged.
    output logic  event_o,
    output echo_e event_kind_o
);

  // ---- stage 1: fields of the first beat

  typedef struct packed {
    logic first;
    logic place;
    logic look;
    logic drop;
    logic to_us;  // its Ethernet address
    logic to_all;
    logic to_group;
    logic from_group;
    logic arp;  // a request for our address
    logic ipv4;  // for our address, without options
    logic icmp;
    logic udp;
    logic later;  // a fragment, but not the first one
    logic ping;
    logic port;  // that is echoed
    logic fits;  // the datagram is within the frame, and its header is
    logic header;  // an Ethernet header
    logic [4:0][16:0] sums;  // of the IPv4 header's words
  } seen_t;

  seen_t seen, seen1_q;
  logic valid1_q, next_first_q, advance;
  bypass_axis_t axis1_q;
  logic [511:0] data;
  logic [13:0] bytes;
  logic [15:0] length, from_port, to_port;
  logic [12:0] fragment;  // its offset
  logic [47:0] destination;
  assign data        = s_payload.data;
  assign bytes       = s_payload.user[13:0];
  assign length      = word_at(data, AtIpLength);
  assign fragment    = 13'(word_at(data, AtIpFragment));
  assign from_port   = word_at(data, AtPayload);
  assign to_port     = word_at(data, AtPayload + 2);
  assign destination = mac_at(data, 0);

  always_comb begin
    seen.first = next_first_q;
    seen.place = s_way.place;
    seen.look = s_way.look;
    seen.drop = s_way.drop;
    seen.to_us = destination == settings_i.mac;
    seen.to_all = destination == '1;
    seen.to_group = destination[40];
    seen.from_group = data[8*AtSource];
    seen.arp = word_at(data, AtEthertype) == EthertypeArp && {mac_at(data, AtIp), word_at(data, AtIp + 6)} ==
        ArpRequest && ip_at(data, AtArpTargetIp) == settings_i.ip && bytes >= 14'(ArpEnd);
    seen.ipv4 = word_at(data, AtEthertype) == EthertypeIpv4 && data[8*AtIp+:8] == Ipv4NoOptions &&
        ip_at(data, AtIpDestination) == settings_i.ip;
    seen.icmp = data[8*AtIpProtocol+:8] == ProtocolIcmp;
    seen.udp = data[8*AtIpProtocol+:8] == ProtocolUdp;
    seen.later = fragment != '0;
    seen.ping = from_port == IcmpEchoRequest;
    seen.port = settings_i.udp_any || (to_port == settings_i.udp_port && from_port != settings_i.udp_port);
    // Minimum length: 20 bytes of header, and 8 of UDP or ICMP, or 1 byte of a later fragment.
    seen.fits = length >= (seen.later ? 16'd21 : 16'd28) && 17'(length) + 17'd14 <= 17'(bytes);
    seen.header = bytes >= 14'd14;
    for (int unsigned i = 0; i < 5; i++)
    seen.sums[i] = 17'(word_at(data, AtIp + 4 * i)) + 17'(word_at(data, AtIp + 4 * i + 2));
  end

  assign s_ready = advance;
  always_ff @(posedge clk_i) begin
    if (advance) begin
      valid1_q <= s_valid;
      seen1_q  <= seen;
      axis1_q  <= s_payload;
      if (s_valid) next_first_q <= s_payload.last;
    end
    if (rst_i) begin
      valid1_q     <= 1'b0;
      next_first_q <= 1'b1;
    end
  end

  // ---- stage 2: the verdict

  // A sum of words is right if it is all ones after its carries are added at the end (RFC 1071).
  // The carries are below 16 here, so a sum that overflows again is small and cannot be all ones.
  logic [19:0] sum;
  logic right_sum, ours, good;
  always_comb begin
    sum = '0;
    for (int i = 0; i < 5; i++) sum += 20'(seen1_q.sums[i]);
  end
  assign right_sum = 17'(sum[15:0]) + 17'(sum[19:16]) == 17'h0ffff;
  assign ours      = seen1_q.ipv4 && seen1_q.to_us && !seen1_q.from_group;
  assign good      = ours && right_sum && seen1_q.fits;

  echo_e kind, kind2_q;
  logic answered, bad;
  always_comb begin
    kind = NotOurs;
    bad  = 1'b0;
    if (seen1_q.arp && settings_i.arp && (seen1_q.to_us || seen1_q.to_all) && !seen1_q.from_group) kind = AnsweredArp;
    if ((seen1_q.icmp && settings_i.icmp) || (seen1_q.udp && settings_i.udp)) begin
      bad = ours && !good;
      if (good) begin
        if (seen1_q.later) kind = EchoedFragment;
        else if (seen1_q.icmp && seen1_q.ping) kind = AnsweredIcmp;
        else if (seen1_q.udp && seen1_q.port) kind = EchoedUdp;
      end
    end
    if (kind == NotOurs && settings_i.reflect && seen1_q.header && !seen1_q.from_group) kind = Reflected;
    else if (bad) kind = Malformed;
    if (!seen1_q.look) kind = AsItIs;
    answered = seen1_q.look ? kind != NotOurs && kind != Malformed : !seen1_q.drop;
  end

  logic valid2_q, place2_q, first2_q, answered2_q, to_one2_q;
  bypass_axis_t axis2_q;
  logic out_ready;
  assign advance = !valid2_q || out_ready;
  always_ff @(posedge clk_i) begin
    if (advance) begin
      valid2_q <= valid1_q;
      first2_q <= seen1_q.first;
      axis2_q  <= axis1_q;
      if (valid1_q && seen1_q.first) begin
        place2_q    <= seen1_q.place;
        kind2_q     <= kind;
        answered2_q <= answered;
        to_one2_q   <= !seen1_q.to_group;
      end
    end
    if (rst_i) valid2_q <= 1'b0;
  end

  assign event_o      = valid2_q && first2_q && out_ready;
  assign event_kind_o = kind2_q;

  // ---- stage 3: what leaves

  logic [511:0] asked, answer;
  logic [16:0] icmp_sum;
  assign asked = axis2_q.data;
  // The type 8 becomes 0. Of the equivalent sums 0xffff and 0 this gives 0xffff, as a message of zeros needs.
  assign icmp_sum = 17'(word_at(asked, AtIcmpChecksum)) + 17'(IcmpEchoRequest);
  always_comb begin
    answer                 = asked;
    answer[0+:48]          = asked[8*AtSource+:48];
    // A group address cannot be a source.
    answer[8*AtSource+:48] = kind2_q == Reflected && to_one2_q ? asked[0+:48] : mac_of(settings_i.mac);
    if (kind2_q == AnsweredArp) begin
      answer[8*AtArpOperation+:16] = word_of(ArpReply);
      answer[8*AtArpSender+:48]    = mac_of(settings_i.mac);
      answer[8*AtArpSenderIp+:32]  = asked[8*AtArpTargetIp+:32];
      answer[8*AtArpTarget+:48]    = asked[8*AtArpSender+:48];
      answer[8*AtArpTargetIp+:32]  = asked[8*AtArpSenderIp+:32];
    end
    if (kind2_q == AnsweredIcmp || kind2_q == EchoedUdp || kind2_q == EchoedFragment) begin
      answer[8*AtIpSource+:32]      = asked[8*AtIpDestination+:32];
      answer[8*AtIpDestination+:32] = asked[8*AtIpSource+:32];
    end
    if (kind2_q == AnsweredIcmp) begin
      answer[8*AtPayload+:16]      = '0;
      answer[8*AtIcmpChecksum+:16] = word_of(icmp_sum[15:0] + 16'(icmp_sum[16]));
    end
    if (kind2_q == EchoedUdp) begin
      answer[8*AtPayload+:16]     = asked[8*(AtPayload+2)+:16];
      answer[8*(AtPayload+2)+:16] = asked[8*AtPayload+:16];
    end
  end

  typedef struct packed {
    logic         place;
    bypass_axis_t axis;
  } out_t;
  out_t put, out;
  logic out_valid, taken;
  always_comb begin
    put.place = place2_q;
    put.axis  = axis2_q;
    if (first2_q && kind2_q != AsItIs) put.axis.data = answer;
    // A verdict: whether to forward the frame, and whether to replace its first beat.
    if (place2_q) put.axis.user = {46'd0, kind2_q != AsItIs, answered2_q};
  end

  stream_fifo #(
      .Width($bits(out_t)),
      .Depth(32)
  ) i_out (
      .*,
      .s_valid  (valid2_q && (place2_q || answered2_q)),
      .s_ready  (out_ready),
      .s_payload(put),
      .m_valid  (out_valid),
      .m_ready  (taken),
      .m_payload(out)
  );
  stream_demux #(
      .Outputs(2),
      .Width  ($bits(bypass_axis_t))
  ) i_demux (
      .*,
      .select_i (out.place),
      .s_valid  (out_valid),
      .s_ready  (taken),
      .s_payload(out.axis),
      .m_valid  ({m_verdict_valid, m_tx_valid}),
      .m_ready  ({m_verdict_ready, m_tx_ready})
  );

  `ASSERT(place_is_a_beat, !(s_valid && s_way.place) || (s_payload.last && next_first_q),
          "a frame in place is more than a beat")
  `ASSERT_NEXT(valid_kept, out_valid && !taken, out_valid && out == $past(out), "a beat changed before it was taken")

endmodule
`default_nettype wire
