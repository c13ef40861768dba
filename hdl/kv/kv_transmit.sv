// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Makes the core's frames, and lets them and the host's take turns on the way to the network.
///
/// Behaviour: a record of `now` becomes a frame, or one for each of its nodes, lowest first; its value, if any, is in the pool. A record of `later` becomes
/// one frame, whose value is the next one of the `word` stream; it waits until that has begun. Nobody waits behind
/// somebody else's memory, so frames of `now` overtake those of `later`. The host's and the core's frames alternate when both are there.
/// Both checksums are right, the UDP one 0 unless `summed`. tuser of the core's frames is their size in bytes.
/// Latency: record in to first beat out 4 cycles, one more for records of `later`; the host's beats 1.
/// Paths: none from input to output; m_axis_tready to s_axis_tready and word_ready.
/// Reset: forgets all records and the frame under way; m_axis_tvalid falls.
/// Requirements: peers and self_i change only when nothing is to be sent, self_i three cycles before the next record.
module kv_transmit
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// Bits of tuser; 16 or more have room for the size of the core's frames.
    parameter  int unsigned UserWidth  = 16,
    /// Records that wait, of each kind: powers of two.
    parameter  int unsigned NowDepth   = 32,
    parameter  int unsigned LaterDepth = 64,
    localparam int unsigned BeatBits   = $clog2(ValueBeats)
) (
    input wire clk_i,
    input wire rst_i,

    input wire endpoint_t self_i,
    /// Who a node is, in the same cycle; asked in the cycle after its record was chosen.
    output logic [2:0] peer_o,
    input wire endpoint_t peer_i,

    input  wire        now_valid,
    output logic       now_ready,
    input  wire send_t now_send,
    /// Few places are left.
    output logic       now_almost_full_o,

    input  wire        later_valid,
    output logic       later_ready,
    input  wire send_t later_send,
    /// Few places are left.
    output logic       later_almost_full_o,

    // Values from memory, in the order of the records; word_first with the first word of each. A value of no bytes has no word.
    input  wire          word_valid,
    output logic         word_ready,
    input  wire  [511:0] word_data,
    /// A value has begun to arrive: once for each, when or before its first word is at word_valid.
    input  wire          value_begun_i,

    output logic                       pool_read_o,
    output place_t                     pool_place_o,
    output logic        [BeatBits-1:0] pool_beat_o,
    input  wire         [       511:0] pool_data_i,
    input  wire                        filling_i,
    input  wire place_t                filling_place_i,
    input  wire         [  BeatBits:0] filled_i,

    input  wire                  s_axis_tvalid,
    output logic                 s_axis_tready,
    input  wire  [        511:0] s_axis_tdata,
    input  wire  [         63:0] s_axis_tkeep,
    input  wire                  s_axis_tlast,
    input  wire  [UserWidth-1:0] s_axis_tuser,

    output logic                 m_axis_tvalid,
    input  wire                  m_axis_tready,
    output logic [        511:0] m_axis_tdata,
    output logic [         63:0] m_axis_tkeep,
    output logic                 m_axis_tlast,
    output logic [UserWidth-1:0] m_axis_tuser,

    /// Nothing waits, no frame of the core's is under way.
    output logic       idle_o,
    /// A frame of this kind has been sent.
    output logic       sent_o,
    output logic [4:0] sent_kind_o,
    output logic       passed_o
);

  localparam int unsigned SendWidth = $bits(send_t);

  // ---- the two queues

  logic now_there, now_take, later_there, later_take;
  send_t now_head, later_head;
  logic later_empty;  // the value of later_head
  // verilator lint_off UNUSEDSIGNAL
  logic [$clog2(NowDepth+1)-1:0] now_count;
  logic [$clog2(LaterDepth+1)-1:0] later_count;
  // verilator lint_on UNUSEDSIGNAL

  stream_fifo #(
      .Width(SendWidth),
      .Depth(NowDepth),
      .AlmostFull(NowDepth - 8)
  ) i_now (
      .clk_i,
      .rst_i,
      .s_valid(now_valid),
      .s_ready(now_ready),
      .s_payload(now_send),
      .m_valid(now_there),
      .m_ready(now_take),
      .m_payload(now_head),
      .count_o(now_count),
      .almost_full_o(now_almost_full_o)
  );

  // They wait for memory, so that a cycle more in block RAM costs nothing.
  stream_fifo #(
      .Width(SendWidth + 1),
      .Depth(LaterDepth),
      .AlmostFull(LaterDepth - 8),
      .Block(1'b1)
  ) i_later (
      .clk_i,
      .rst_i,
      .s_valid(later_valid),
      .s_ready(later_ready),
      .s_payload({later_send.length == '0, later_send}),
      .m_valid(later_there),
      .m_ready(later_take),
      .m_payload({later_empty, later_head}),
      .count_o(later_count),
      .almost_full_o(later_almost_full_o)
  );

  // Values that have begun to arrive and whose record is still in the queue.
  logic [$clog2(LaterDepth+1)-1:0] begun_q;
  logic later_begun;
  assign later_begun = later_there && (later_empty || begun_q != '0);

  // ---- stage A: which record, to which node; sums, first part

  // Adders of two, each of them a carry chain: as in kv_sum.
  function automatic logic [21:0] apart(logic [21:0] a);
    return {a[21:16], a[15] && (a[15] || a[0]), a[14:0]};
  endfunction

  function automatic logic several_of(logic [3:0] nodes);
    return (nodes[0] && nodes[1]) || (nodes[2] && nodes[3]) || (nodes[1:0] != '0 && nodes[3:2] != '0);
  endfunction
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [2:0] lowest_of(logic [7:0] nodes);
    logic low;
    low = nodes[3:0] != '0;
    lowest_of[2] = !low;
    lowest_of[1] = low ? nodes[1:0] == '0 : nodes[5:4] == '0;
    lowest_of[0] = low ? !nodes[0] && (nodes[1] || !nodes[2]) : !nodes[4] && (nodes[5] || !nodes[6]);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic advance_a, advance_b;
  logic turn_q;  // the queue that was not chosen last
  logic choose_later, chosen;
  // verilator lint_off UNUSEDSIGNAL
  send_t head;  // as far as it is chosen here
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0] sent_q;  // nodes of now_head that have been served
  logic [2:0] now_lowest;
  // What is kept is so that Yosys does not make a chain of it; advance_a is late.
  (* keep *)
  logic [7:0] now_left;
  (* keep *)
  logic [1:0] now_some, now_several;  // of each half
  (* keep *)
  logic now_done;

  assign choose_later = later_begun && (!now_there || turn_q);
  assign chosen       = later_begun || now_there;
  assign head         = choose_later ? later_head : now_head;
  assign now_left     = now_head.nodes & ~sent_q;
  assign now_lowest   = lowest_of(now_left);
  assign now_some     = {now_left[7:4] != '0, now_left[3:0] != '0};
  assign now_several  = {several_of(now_left[7:4]), several_of(now_left[3:0])};
  assign later_take   = advance_a && choose_later;
  assign now_done     = !choose_later && now_several == '0 && now_some != '1;
  assign now_take     = advance_a && now_done;

  always_ff @(posedge clk_i) begin
    if (advance_a && chosen) begin
      turn_q <= !choose_later;
      if (!choose_later) sent_q[now_lowest] <= 1'b1;
    end
    if (value_begun_i != (later_take && !later_empty)) begin
      begun_q <= value_begun_i ? begun_q + 1'b1 : begun_q - 1'b1;
    end
    if (now_take || rst_i) sent_q <= '0;
    if (rst_i) begin
      turn_q  <= 1'b0;
      begun_q <= '0;
    end
  end

  // What does not depend on the frame: IPv4 without addresses' destination and length, UDP likewise.
  // One adder after the other, since it keeps still.
  localparam int unsigned IpFixed = (IpVersionIhl << 8) + IpDontFragment + (IpTtl << 8) + IpProtocolUdp + MinIpLength;
  localparam int unsigned UdpFixed = IpProtocolUdp + 2 * MinUdpLength;
  logic [16:0] self_q;
  logic [17:0] self_port_q;
  logic [18:0] ip_self_q, udp_self_q;
  always_ff @(posedge clk_i) begin
    self_q      <= 17'(self_i.ip[31:16]) + 17'(self_i.ip[15:0]);
    self_port_q <= 18'(self_q) + 18'(self_i.port);
    ip_self_q   <= 19'(self_q) + 19'(IpFixed);
    udp_self_q  <= 19'(self_port_q) + 19'(UdpFixed);
  end

  logic valid_a_q, summed_a_q, later_a_q, to_node_a_q;
  kv_t kv_a_q;
  value_source_e source_a_q;
  place_t place_a_q;
  logic [10:0] length_a_q;
  endpoint_t now_to_a_q, later_to_a_q;  // one of three is chosen in stage B
  logic [2:0] node_a_q;
  logic [18:0] ip_a_q, udp_self_a_q;
  logic [ 2:0][17:0] udp_a_q;
  logic [11:0][15:0] word;
  logic [ 5:0][16:0] pair;
  assign word = {head.sum, head.kv};
  always_comb begin
    for (int i = 0; i < 6; i++) pair[i] = 17'(word[2*i]) + 17'(word[2*i+1]);
  end

  always_ff @(posedge clk_i) begin
    if (advance_a) begin
      valid_a_q    <= chosen;
      summed_a_q   <= head.summed;
      kv_a_q       <= head.kv;
      source_a_q   <= head.length == '0 ? ValueNone : choose_later ? ValueMemory : now_head.source;
      place_a_q    <= now_head.place;
      length_a_q   <= head.length;
      now_to_a_q   <= now_head.to;
      later_to_a_q <= later_head.to;
      later_a_q    <= choose_later;
      to_node_a_q  <= choose_later ? later_head.nodes != '0 : now_head.nodes != '0;
      node_a_q     <= choose_later ? lowest_of(later_head.nodes) : now_lowest;
      ip_a_q       <= ip_self_q + 19'(head.length);
      udp_self_a_q <= udp_self_q + 19'({head.length, 1'b0});
      for (int i = 0; i < 3; i++) begin
        udp_a_q[i] <= 18'(apart(22'(pair[2*i]))) + 18'(apart(22'(pair[2*i+1])));
      end
    end
    if (rst_i) valid_a_q <= 1'b0;
  end

  // ---- stage B: the header

  endpoint_t to;
  assign peer_o = node_a_q;
  assign to     = to_node_a_q ? peer_i : later_a_q ? later_to_a_q : now_to_a_q;

  // verilator lint_off UNUSEDSIGNAL
  logic [21:0] ip_to, ip_sum, udp_most, udp_rest, udp_kv, udp_sum;
  assign ip_to    = 22'(to.ip[31:16]) + 22'(to.ip[15:0]);
  assign ip_sum   = apart(ip_to) + 22'(ip_a_q);
  assign udp_kv   = 22'(udp_a_q[0]) + 22'(udp_a_q[1]);
  assign udp_rest = 22'(udp_a_q[2]) + 22'(udp_self_a_q);
  assign udp_most = apart(apart(udp_kv) + apart(udp_rest)) + 22'(to.port);
  assign udp_sum  = apart(ip_to) + apart(udp_most);

  // Folded: 22 words of 16 bits, so that what is above 16 bits, and one more, are less than 32.
  logic [16:0] ip_folded, udp_folded;
  logic [5:0] udp_low;
  // verilator lint_on UNUSEDSIGNAL
  logic [15:0] ip_whole, udp_checksum;
  logic udp_above;  // not below 65535
  assign ip_folded = {1'b0, ip_sum[15:0]} + 17'(ip_sum[21:16]);
  assign ip_whole = {ip_folded[15:5], ip_folded[4:0] + 5'(ip_folded[16])};
  // The UDP checksum is never 0: of the two numbers that are 0 modulo 65535, the sum is not 65535, but 0.
  assign udp_folded = {1'b0, udp_sum[15:0]} + 17'(udp_sum[20:16]);
  assign udp_low = {1'b0, udp_sum[4:0]} + {1'b0, udp_sum[20:16]} + 6'd1;
  assign udp_above = udp_sum[15:5] == '1 && udp_low[5];
  assign udp_checksum = udp_above ? ~16'(udp_folded[4:0] + 5'd1) | 16'hffe0 : ~udp_folded[15:0];

  headers_t headers;
  always_comb begin
    headers                      = '0;
    headers.ethernet.destination = to.mac;
    headers.ethernet.source      = self_i.mac;
    headers.ethernet.ethertype   = 16'(EthertypeIpv4);
    headers.ipv4.version_ihl     = 8'(IpVersionIhl);
    headers.ipv4.total_length    = 16'(length_a_q) + 16'(MinIpLength);
    headers.ipv4.flags_offset    = 16'(IpDontFragment);
    headers.ipv4.ttl             = 8'(IpTtl);
    headers.ipv4.protocol        = 8'(IpProtocolUdp);
    headers.ipv4.checksum        = ip_whole;
    headers.ipv4.source          = self_i.ip;
    headers.ipv4.destination     = to.ip;
    headers.udp.source_port      = self_i.port;
    headers.udp.destination_port = to.port;
    headers.udp.length           = 16'(length_a_q) + 16'(MinUdpLength);
    headers.udp.checksum         = summed_a_q ? udp_checksum : '0;
    headers.kv                   = kv_a_q;
  end

  // Reads values from the pool, in the order of the headers.
  logic reader_free, reader_start, needs_pool_a;
  (* keep *)
  logic pool_free;

  typedef enum logic [1:0] {
    Between = 2'd0,  // frames
    Host = 2'd1,
    Pool = 2'd2,
    Memory = 2'd3
  } state_e;

  state_e state_q, from;
  logic host_turn_q;  // the core's frame was the last
  logic out_free;

  logic valid_b_q;
  headers_t headers_b_q;  // of the IPv4 checksum, the complement
  logic [10:0] length_b_q, size_b_q;
  value_source_e source_b_q;
  logic take_b;

  // Free of `from`, since much depends on it.
  assign pool_free = reader_free || !needs_pool_a;
  assign advance_b = pool_free && (!valid_b_q || (out_free && state_q == Between && !(s_axis_tvalid && host_turn_q)));
  assign advance_a = !valid_a_q || advance_b;
  assign needs_pool_a = valid_a_q && source_a_q == ValuePool;
  assign reader_start = advance_b && needs_pool_a;

  always_ff @(posedge clk_i) begin
    if (!valid_b_q || take_b) valid_b_q <= valid_a_q && advance_b;
    if (advance_b && valid_a_q) begin
      headers_b_q <= headers;
      length_b_q  <= length_a_q;
      size_b_q    <= length_a_q + 11'(HeaderBytes);
      source_b_q  <= source_a_q;
    end
    if (rst_i) valid_b_q <= 1'b0;
  end

  place_t reader_place_q;
  logic [BeatBits-1:0] reader_beat_q;
  logic [BeatBits:0] reader_left_q;  // words still to be read
  logic held_q, take_pool;  // a word is at pool_data_i

  assign reader_free = reader_left_q == '0;
  assign pool_place_o = reader_place_q;
  assign pool_beat_o = reader_beat_q;
  assign pool_read_o  = reader_left_q != '0 && (!held_q || take_pool)
      && !(filling_i && filling_place_i == reader_place_q && filled_i <= {1'b0, reader_beat_q});

  always_ff @(posedge clk_i) begin
    if (reader_start) begin
      reader_place_q <= place_a_q;
      reader_beat_q  <= '0;
      reader_left_q  <= (BeatBits + 1)'((length_a_q + 11'(BeatBytes - 1)) >> $clog2(BeatBytes));
    end else if (pool_read_o) begin
      reader_beat_q <= reader_beat_q + 1'b1;
      reader_left_q <= reader_left_q - 1'b1;
    end
    if (!held_q || take_pool) held_q <= pool_read_o;
    if (rst_i) begin
      reader_left_q <= '0;
      held_q <= 1'b0;
    end
  end

  // ---- the way out

  logic [10:0] left_q;  // bytes of the value that are still to come
  logic out_load, last;
  logic [63:0] core_keep;
  logic [10:0] size_q;  // of the frame

  assign out_free = !m_axis_tvalid || m_axis_tready;

  logic [1:0] pick;
  assign pick[1] = state_q[1];
  assign pick[0] = state_q[1] || state_q[0] ? state_q[0] : s_axis_tvalid && (host_turn_q || !valid_b_q);

  // In state Between, Between stands for a header.
  always_comb begin
    from = state_q;
    if (state_q == Between && s_axis_tvalid && (host_turn_q || !valid_b_q)) from = Host;
  end

  always_comb begin
    out_load = 1'b0;
    last     = left_q <= 11'(BeatBytes);
    case (from)
      Between: begin
        out_load = out_free && valid_b_q;
        last     = source_b_q == ValueNone;
      end
      Pool:   out_load = out_free && held_q;
      Memory: out_load = out_free && word_valid;
      default: begin
        out_load = out_free && s_axis_tvalid;
        last     = s_axis_tlast;
      end
    endcase
  end

  assign take_b        = valid_b_q && out_free && state_q == Between && !(s_axis_tvalid && host_turn_q);
  assign take_pool     = out_load && from == Pool;
  assign word_ready    = out_free && from == Memory;
  assign s_axis_tready = out_free && from == Host;

  // Of a header, or of a value with so many bytes left; groups of eight, so that a byte's is one LUT.
  (* keep *)
  logic [7:0] group_whole, group_part, below;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      group_whole[i] = !state_q[1] || left_q[10:6] != '0 || left_q[5:3] > 3'(i);
      group_part[i]  = left_q[5:3] == 3'(i);
      below[i]       = left_q[2:0] > 3'(i);
    end
    for (int i = 0; i < 64; i++) core_keep[i] = group_whole[i/8] || (group_part[i/8] && below[i%8]);
  end

  // A LUT for each bit, in which the complement costs nothing.
  logic [3:0][511:0] beats;
  headers_t headers_b;
  always_comb begin
    headers_b = headers_b_q;
    headers_b.ipv4.checksum = ~headers_b_q.ipv4.checksum;
  end
  assign beats = {word_data, pool_data_i, s_axis_tdata, to_beat(headers_b)};

  always_ff @(posedge clk_i) begin
    if (out_free) m_axis_tvalid <= out_load;
    if (out_load) begin
      m_axis_tdata <= beats[pick];
      m_axis_tkeep <= pick == Host ? s_axis_tkeep : core_keep;
      m_axis_tlast <= last;
      m_axis_tuser <= from == Host ? s_axis_tuser : UserWidth'(from == Between ? size_b_q : size_q);
      left_q <= from == Between ? length_b_q : left_q - 11'(BeatBytes);
      if (from == Between) size_q <= size_b_q;
      case (from)
        Between: state_q <= source_b_q == ValuePool ? Pool : source_b_q == ValueMemory ? Memory : Between;
        default: state_q <= last ? Between : from;
      endcase
      if (last) host_turn_q <= from != Host;
    end
    if (rst_i) begin
      m_axis_tvalid <= 1'b0;
      state_q       <= Between;
      host_turn_q   <= 1'b0;
    end
  end

  assign idle_o = !now_there && later_count == '0 && !valid_a_q && !valid_b_q
                && (state_q == Between || state_q == Host);
  assign sent_o = take_b;
  assign sent_kind_o = headers_b_q.kv.kind;
  assign passed_o = out_load && from == Host && last;

  `ASSERT(now_source, !now_valid || now_send.source != ValueMemory, "a value from memory belongs in the other queue")
  `ASSERT(later_source, !later_valid || (later_send.source == ValueMemory && $countones(later_send.nodes) <= 1),
          "only one frame can have a value from memory")
  `ASSERT(begun_in_range, begun_q <= ($clog2(LaterDepth + 1))'(LaterDepth), "more values begun than records can be")
  `ASSERT_NEXT(valid_kept, m_axis_tvalid && !m_axis_tready, m_axis_tvalid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_axis_tvalid && !m_axis_tready, m_axis_tdata == $past(m_axis_tdata)
               && m_axis_tlast == $past(m_axis_tlast) && m_axis_tkeep == $past(m_axis_tkeep),
               "a beat changed before it was taken")

endmodule
`default_nettype wire
