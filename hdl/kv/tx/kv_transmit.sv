// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Makes the core's frames, and lets them and the host's take turns on the way to the network.
///
/// Behaviour: a record of `now` becomes a frame, or one for each of its nodes, lowest first; its value, if any, is in the pool. A record of `later` becomes
/// one frame, whose value is the next one of the `word` stream; it waits until that has begun. A `deferred` one, which has no value, waits
/// until memory has what is in its place (done_*), and comes to nothing if dead_i is high then; done_free_o gives that place back.
/// Nobody waits behind
/// somebody else's memory, so frames of `now` overtake those of `later`. The host's and the core's frames alternate when both are there.
/// Both checksums are right, the UDP one 0 unless `summed`. tuser of the core's frames is their size in bytes.
/// Latency: record, or what a deferred one waits for, in to first beat out 4 cycles; the host's beats 1.
/// Paths: none from input to output; m_axis_tready to s_axis_tready and word_ready.
/// Reset: forgets all records and the frame under way; m_axis_tvalid falls.
/// Requirements: peers and self_i change only when nothing is to be sent, self_i three cycles before the next record. At most one record a
/// cycle. A place has no other deferred record until it was given back.
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

    // A record: to which list.
    input  wire        now_valid,
    output logic       now_ready,
    input  wire        later_valid,
    output logic       later_ready,
    input  wire        deferred_valid,
    input  wire send_t send,
    /// Few places are left.
    output logic       now_almost_full_o,
    output logic       later_almost_full_o,

    /// Memory has what is in a place of the pool; places that are free with that.
    input  wire           done_valid_i,
    input  wire job_tag_t done_tag_i,
    input  wire           dead_i,
    output logic          done_free_o,
    output place_t        done_freed_o,

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

  // ---- before a record waits: the sum of what it says

  // Adders of two, each of them a carry chain: as in kv_sum.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [21:0] apart(logic [21:0] a);
    return {a[21:16], a[15] && (a[15] || a[0]), a[14:0]};
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Under the UDP checksum, but for the ports and addresses; its length is there twice.
  logic [11:0][15:0] word;
  logic [ 5:0][16:0] pair;
  logic [ 2:0][17:0] four;
  logic [18:0] twelve_first, twelve_rest;
  logic [19:0] twelve;
  assign word = {send.sum, send.kv};
  always_comb begin
    for (int i = 0; i < 6; i++) pair[i] = 17'(word[2*i]) + 17'(word[2*i+1]);
    for (int i = 0; i < 3; i++) four[i] = 18'(apart(22'(pair[2*i]))) + 18'(apart(22'(pair[2*i+1])));
  end
  assign twelve_first = 19'(apart(22'(four[0]))) + 19'(apart(22'(four[1])));
  assign twelve_rest  = 19'(apart(22'(four[2]))) + 19'({send.length, 1'b0});
  assign twelve       = 20'(apart(22'(twelve_first))) + 20'(apart(22'(twelve_rest)));

  // ---- stage A: which record, to which node

  typedef struct packed {
    endpoint_t to;
    kv_t kv;
    place_t place;
    logic [10:0] length;
    logic summed;
    logic [19:0] sum;
  } record_t;

  record_t record_a;
  logic valid_a, later_a, to_node_a, waiting;
  logic advance_a, advance_b;

  kv_tx_records #(
      .Width($bits(record_t)),
      .NowDepth(NowDepth),
      .LaterDepth(LaterDepth)
  ) i_sends (
      .clk_i,
      .rst_i,
      .now_valid,
      .now_ready,
      .later_valid,
      .later_ready,
      .deferred_valid,
      .place_i(send.place),
      .nodes_i(send.nodes),
      .empty_i(send.length == '0),
      .record_i({send.to, send.kv, send.place, send.length, send.summed, twelve}),
      .now_almost_full_o,
      .later_almost_full_o,
      .value_begun_i,
      .done_valid_i,
      .done_tag_i,
      .dead_i,
      .done_free_o,
      .done_freed_o,
      .valid_o(valid_a),
      .take_i(advance_a),
      .later_o(later_a),
      .to_node_o(to_node_a),
      .node_o(peer_o),
      .record_o(record_a),
      .waiting_o(waiting)
  );

  // ---- stage B: the header

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

  typedef enum logic [1:0] {
    ValueNone   = 2'd0,
    ValuePool   = 2'd1,
    ValueMemory = 2'd2
  } value_source_e;
  endpoint_t to;
  value_source_e source_a;
  assign to       = to_node_a ? peer_i : record_a.to;
  assign source_a = record_a.length == '0 ? ValueNone : later_a ? ValueMemory : ValuePool;

  // verilator lint_off UNUSEDSIGNAL
  logic [18:0] ip_self;
  logic [21:0] ip_to, ip_sum, udp_rest, udp_most, udp_sum;
  assign ip_self  = ip_self_q + 19'(record_a.length);
  assign ip_to    = 22'(to.ip[31:16]) + 22'(to.ip[15:0]);
  assign ip_sum   = apart(ip_to) + apart(22'(ip_self));
  assign udp_rest = 22'(record_a.sum) + 22'(udp_self_q);
  assign udp_most = apart(udp_rest) + 22'(to.port);
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
    headers.ipv4.total_length    = 16'(record_a.length) + 16'(MinIpLength);
    headers.ipv4.flags_offset    = 16'(IpDontFragment);
    headers.ipv4.ttl             = 8'(IpTtl);
    headers.ipv4.protocol        = 8'(IpProtocolUdp);
    headers.ipv4.checksum        = ip_whole;
    headers.ipv4.source          = self_i.ip;
    headers.ipv4.destination     = to.ip;
    headers.udp.source_port      = self_i.port;
    headers.udp.destination_port = to.port;
    headers.udp.length           = 16'(record_a.length) + 16'(MinUdpLength);
    headers.udp.checksum         = record_a.summed ? udp_checksum : '0;
    headers.kv                   = record_a.kv;
  end

  // Reads values from the pool, in the order of the headers.
  logic reader_free, reader_start, needs_pool_a, header_turn, pool_turn, unwritten;

  typedef enum logic [1:0] {
    Between = 2'd0,  // frames
    Host = 2'd1,
    Pool = 2'd2,
    Memory = 2'd3
  } state_e;

  state_e state_q, from;
  logic host_turn_q;  // the core's frame was the last
  logic out_free;

  typedef struct packed {
    headers_t headers;  // of the IPv4 checksum, the complement
    logic [10:0] length;
    logic [10:0] size;
    value_source_e source;
  } header_t;
  header_t header_a, header_b;
  logic header_valid, header_ready, valid_b, take_b;
  assign header_a = '{
          headers: headers,
          length: record_a.length,
          size: record_a.length + 11'(HeaderBytes),
          source: source_a
      };

  // Free of `from`, since much depends on them.
  assign header_turn = out_free && state_q == Between && !(s_axis_tvalid && host_turn_q);
  assign pool_turn = out_free && state_q == Pool;
  assign needs_pool_a = valid_a && source_a == ValuePool;
  assign header_valid = valid_a && (reader_free || !needs_pool_a);
  assign advance_b = (reader_free || !needs_pool_a) && header_ready;
  assign advance_a = !valid_a || advance_b;
  assign reader_start = advance_b && needs_pool_a;

  stream_register #(
      .Width($bits(header_t))
  ) i_header (
      .clk_i,
      .rst_i,
      .s_valid  (header_valid),
      .s_ready  (header_ready),
      .s_payload(header_a),
      .m_valid  (valid_b),
      .m_ready  (header_turn),
      .m_payload(header_b)
  );

  place_t reader_place_q;
  logic [BeatBits-1:0] reader_beat_q;
  logic [BeatBits:0] reader_left_q;  // words still to be read
  logic held_q;  // a word is at pool_data_i

  assign reader_free = reader_left_q == '0;
  assign pool_place_o = reader_place_q;
  assign pool_beat_o = reader_beat_q;
  assign unwritten = filling_i && filling_place_i == reader_place_q && filled_i <= {1'b0, reader_beat_q};
  assign pool_read_o = !reader_free && (!held_q || pool_turn) && !unwritten;

  always_ff @(posedge clk_i) begin
    if (reader_start) begin
      reader_place_q <= record_a.place;
      reader_beat_q  <= '0;
      reader_left_q  <= (BeatBits + 1)'((record_a.length + 11'(BeatBytes - 1)) >> $clog2(BeatBytes));
    end else if (pool_read_o) begin
      reader_beat_q <= reader_beat_q + 1'b1;
      reader_left_q <= reader_left_q - 1'b1;
    end
    if (!held_q || pool_turn) held_q <= pool_read_o;
    if (rst_i) begin
      reader_left_q <= '0;
      held_q <= 1'b0;
    end
  end

  // ---- the way out

  logic [10:0] left_q;  // bytes of the value that are still to come
  logic out_valid, out_load, last;
  logic [63:0] core_keep;
  logic [10:0] size_q;  // of the frame

  logic [ 1:0] pick;
  assign pick[1] = state_q[1];
  assign pick[0] = state_q[1] || state_q[0] ? state_q[0] : s_axis_tvalid && (host_turn_q || !valid_b);

  // In state Between, Between stands for a header.
  always_comb begin
    from = state_q;
    if (state_q == Between && s_axis_tvalid && (host_turn_q || !valid_b)) from = Host;
  end

  always_comb begin
    last = left_q <= 11'(BeatBytes);
    case (from)
      Between: begin
        out_valid = valid_b;
        last      = header_b.source == ValueNone;
      end
      Pool:   out_valid = held_q;
      Memory: out_valid = word_valid;
      default: begin
        out_valid = s_axis_tvalid;
        last      = s_axis_tlast;
      end
    endcase
  end

  assign out_load      = out_valid && out_free;
  assign take_b        = valid_b && header_turn;
  assign word_ready    = out_free && from == Memory;
  assign s_axis_tready = out_free && from == Host;

  // Of a header, or of a value with so many bytes left; groups of eight, so that a byte's is one LUT.
  `YOSYS_KEEP
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
    headers_b = header_b.headers;
    headers_b.ipv4.checksum = ~header_b.headers.ipv4.checksum;
  end
  assign beats = {word_data, pool_data_i, s_axis_tdata, to_beat(headers_b)};

  typedef struct packed {
    logic [511:0] data;
    logic [63:0] keep;
    logic last;
    logic [UserWidth-1:0] user;
  } out_t;
  out_t out;
  always_comb begin
    // As two choices, the second by the late bit. As one index Yosys makes two LUTs for each bit in some joined cores.
    out.data = pick[1] ? (pick[0] ? beats[Memory] : beats[Pool]) : (pick[0] ? beats[Host] : beats[Between]);
    out.keep = pick == Host ? s_axis_tkeep : core_keep;
    out.last = last;
    out.user = from == Host ? s_axis_tuser : UserWidth'(from == Between ? header_b.size : size_q);
  end

  stream_register #(
      .Width($bits(out_t))
  ) i_out (
      .clk_i,
      .rst_i,
      .s_valid  (out_valid),
      .s_ready  (out_free),
      .s_payload(out),
      .m_valid  (m_axis_tvalid),
      .m_ready  (m_axis_tready),
      .m_payload({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser})
  );

  always_ff @(posedge clk_i) begin
    if (out_load) begin
      left_q <= from == Between ? header_b.length : left_q - 11'(BeatBytes);
      if (from == Between) size_q <= header_b.size;
      case (from)
        Between: state_q <= header_b.source == ValuePool ? Pool : header_b.source == ValueMemory ? Memory : Between;
        default: state_q <= last ? Between : from;
      endcase
      if (last) host_turn_q <= from != Host;
    end
    if (rst_i) begin
      state_q     <= Between;
      host_turn_q <= 1'b0;
    end
  end

  assign idle_o = !waiting && !valid_a && !valid_b && (state_q == Between || state_q == Host);
  assign sent_o = take_b;
  assign sent_kind_o = header_b.headers.kv.kind;
  assign passed_o = out_load && from == Host && last;

  `ASSERT(deferred_value, !deferred_valid || send.length == '0, "an answer that waits for memory has no value")

endmodule
`default_nettype wire
