// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Separates the core's frames from the host's, and checks them: docs/design/kv-protocol.md, section 3.
///
/// Behaviour: a frame belongs to the core if its addresses, port and form are right (first paragraph of that section)
/// and enable_i was high at its first beat. Other frames leave at m_payload, unchanged. The value of a kv frame goes to
/// the pool, beat by beat. One request follows when the frame is known to be complete and correct; otherwise one
/// dropped_* event. A kv frame from a source that is not allowed is not examined further, and takes no place. Only
/// m_ready can stall the stream. kv frames never do.
/// Latency: 2 cycles from the first beat to m_payload, and from a value's beat to the pool. 3 cycles from the last beat
/// to the request, or from the first beat with whole_frames and a UDP checksum of 0.
/// Paths: m_ready to s_ready.
/// Reset: forgets the current frame, and the rest of it is lost.
/// Requirements: self_i and enable_i change only between frames. Otherwise the current frame is lost. `room_i`: the
/// receiver of requests has room for two more than are in flight.
module kv_parser
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// With whole_frames the source gives only whole frames without errors, and s_size beside their first beats. Then a
    /// frame without UDP checksum becomes a request at once, while its value arrives.
    parameter kv_config_t Config = DefaultConfig,
    /// A beat, with Config.user_width bits of tuser, which are passed on.
    parameter type        axis_t = kv_axis_t
) (
    input wire clk_i,
    input wire rst_i,

    input wire enable_i,
    /// This node.
    input wire endpoint_t self_i,

    input  wire               s_valid,
    output logic              s_ready,
    input  wire axis_t        s_payload,
    /// With the last beat: the MAC marked the frame as bad.
    input  wire               s_error,
    /// Bytes of the frame, with its first beat. Unused without whole_frames.
    input  wire        [15:0] s_size,

    output logic  m_valid,
    input  wire   m_ready,
    output axis_t m_payload,

    /// The source of the frame whose first beat is in stage 1. `allowed_i` answers in the same cycle.
    output logic [31:0] source_o,
    input  wire         allowed_i,

    /// The pool's next free place.
    input  wire offered_place_t place_i,
    output logic                place_take_o,
    /// Frees a place whose frame was bad.
    output free_place_t         free_o,

    output pool_write_t pool_o,
    output filling_t    filling_o,

    input  wire      room_i,
    output arrival_t arrival_o,

    output rx_events_t events_o
);

  localparam int unsigned BeatBits = $clog2(ValueBeats);
  localparam bit WholeFrames = Config.whole_frames;

  logic advance;
  assign advance = !(m_valid && !m_ready);
  assign s_ready = advance;

  // ---- stage 1: the beat, and a copy for the checksum in which bytes that do not count are 0

  logic valid1_q, first1_q, error1_q;
  logic next_first_q;  // the next beat is a first one
  axis_t axis1_q;
  logic [511:0] counted1_q;
  logic [15:0] size1_q;
  // Remaining bytes of the value, if the frame has enough. `left1_q` counts from the beat in stage 1 on, if that is not
  // a first beat. `left_q` counts from the beat at the input on. With a first beat in stage 1 it is the whole value.
  logic [15:0] left1_q, left_q, length;
  logic many;  // the beat at the input has nothing else
  logic too_short, too_short1_q;
  logic [63:0] counts;
  // verilator lint_off UNUSEDSIGNAL
  headers_t headers;
  // verilator lint_on UNUSEDSIGNAL
  headers_t headers1;

  assign headers = to_headers(s_payload.data);
  assign headers1 = to_headers(axis1_q.data);
  assign {too_short, length} = {1'b0, headers.udp.length} - 17'(MinUdpLength);
  assign many = left_q[15:6] != '0;

  // Bytes that count for the UDP checksum. In a first beat: the pseudo-header, the UDP header and all that follow. The
  // IPv4 length stands for the UDP length; they differ by LengthsDiffer. In other beats: the value's bytes. They are
  // selected in groups of eight, so that each byte takes one LUT.
  localparam int unsigned LengthsDiffer = MinIpLength - MinUdpLength;
  logic [7:0] group_whole, group_part, below;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      group_whole[i] = next_first_q ? i >= 4 : many || left_q[5:3] > 3'(i);
      group_part[i]  = next_first_q ? i == 3 : left_q[5:3] == 3'(i);
      below[i]       = next_first_q ? i >= 2 : left_q[2:0] > 3'(i);
    end
    for (int i = 0; i < 64; i++) counts[i] = group_whole[i/8] || (group_part[i/8] && below[i%8]);
    for (int i = 16; i < 18; i++) counts[i] = next_first_q || counts[i];
    counts[23] = next_first_q || counts[23];
  end

  always_ff @(posedge clk_i) begin
    if (advance) begin
      valid1_q <= s_valid;
      first1_q <= next_first_q;
      error1_q <= s_error;
      axis1_q  <= s_payload;
      size1_q  <= s_size;
      for (int i = 0; i < 64; i++) begin
        if (counts[i]) counted1_q[8*i+:8] <= s_payload.data[8*i+:8];
        else counted1_q[8*i+:8] <= '0;
      end
      if (s_valid) next_first_q <= s_payload.last;
      left1_q <= left_q;
      if (s_valid) begin
        if (next_first_q) left_q <= length;
        else left_q <= many ? {left_q[15:6] - 1'b1, left_q[5:0]} : '0;
        too_short1_q <= too_short;
      end
    end
    if (rst_i) begin
      valid1_q <= 1'b0;
      next_first_q <= 1'b1;
    end
  end

  // Stage 1 holds the last byte of the value, so the whole frame has arrived.
  logic over1, whole1;
  logic [63:0] last_byte1;  // of a value that ends after so many bytes of the beat, modulo 64
  assign over1 = left1_q[15:7] != '0 || (left1_q[6] && left1_q[5:0] != '0);
  assign last_byte1 = {axis1_q.keep[62:0], axis1_q.keep[63]};
  assign whole1 = first1_q ? headers1.udp.length == 16'(MinUdpLength) && axis1_q.keep[63]
                           : left1_q == '0 || (!over1 && last_byte1[left1_q[5:0]]);

  // verilator lint_off UNUSEDSIGNAL
  logic [3:0][18:0] halves2;  // of the beat in stage 2, eight words each
  // verilator lint_on UNUSEDSIGNAL
  logic [20:0] sum3;  // of the beat in stage 3
  kv_sum i_sum (
      .*,
      .enable_i(advance),
      .beat_i  (counted1_q),
      .halves_o(halves2),
      .sum_o   (sum3)
  );

  // ---- stage 2: whether the frame is the core's. Its value then goes to the pool, otherwise its beats to the host

  typedef struct packed {
    endpoint_t from;
    kv_t kv;
    logic [31:0] hash;
    logic [15:0] value_length;
    logic summed;
    logic right_lengths;
    logic right_size;  // whole_frames: as long as it says
  } frame_t;

  logic ours, form;
  // Compares this node's addresses in groups of three bits, as same_word does. One comparison of all bits takes twice
  // the LUTs in Yosys.
  logic [15:0] same_mac;
  always_comb begin
    for (int i = 0; i < 16; i++) same_mac[i] = headers1.ethernet.destination[3*i+:3] == self_i.mac[3*i+:3];
  end
  assign form = headers1.ethernet.ethertype == 16'(EthertypeIpv4)
      && headers1.ipv4.version_ihl == 8'(IpVersionIhl)
      && headers1.ipv4.protocol == 8'(IpProtocolUdp)
      && (headers1.ipv4.flags_offset & 16'(IpFragmentMask)) == '0;
  assign ours = all_of(
      {same_mac, 8'hff}
  ) && same_word(
      headers1.ipv4.destination, self_i.ip
  ) && same_word(
      {16'd0, headers1.udp.destination_port}, {16'd0, self_i.port}
  ) && enable_i && form;

  assign source_o = headers1.ipv4.source;

  logic [31:0] hash1;
  kv_hash i_hash (
      .key_i (headers1.kv.key),
      .hash_o(hash1)
  );

  frame_t frame1;
  always_comb begin
    frame1 = '0;
    frame1.from.mac = headers1.ethernet.source;
    frame1.from.ip = headers1.ipv4.source;
    frame1.from.port = headers1.udp.source_port;
    frame1.kv = headers1.kv;
    frame1.hash = hash1;
    frame1.value_length = left_q;
    frame1.summed = headers1.udp.checksum != '0;
    frame1.right_lengths = !too_short1_q
        && 17'(headers1.ipv4.total_length) == 17'(headers1.udp.length) + 17'(LengthsDiffer);
    // Valid if the lengths are right.
    frame1.right_size = WholeFrames && size1_q >= 16'(HeaderBytes) && size1_q - 16'(HeaderBytes) >= left_q;
  end

  // The sum of the IPv4 header. Some of its ten words are in the beat's partial sums. For the first word and
  // flags_offset, the part that is missing there is known.
  localparam int unsigned FirstOfIp = IpVersionIhl << 8;
  logic [1:0][16:0] ip2_q;
  logic [1:0] flags2_q;
  logic [17:0] ip_rest2;
  logic [18:0] ip_more2;
  logic [19:0] ip2;
  assign ip_rest2 = 18'(ip2_q[0]) + 18'(ip2_q[1]);
  assign ip_more2 = {5'(ip_rest2[17:14]) + 5'(flags2_q), ip_rest2[13:0]};
  assign ip2      = 20'(halves2[1]) + 20'(ip_more2);

  logic valid2_q, first2_q, error2_q, whole2_q;
  logic ours_q, allowed_q;  // of the frame whose beat is in stage 2
  axis_t  axis2_q;
  frame_t frame2_q;

  always_ff @(posedge clk_i) begin
    if (advance) begin
      valid2_q <= valid1_q;
      first2_q <= first1_q;
      error2_q <= error1_q;
      axis2_q  <= axis1_q;
      whole2_q <= whole1;
      ip2_q[0] <= 17'({headers1.ipv4.ttl, headers1.ipv4.dscp_ecn}) + 17'(headers1.ipv4.identification);
      ip2_q[1] <= 17'(headers1.ipv4.checksum) + 17'(headers1.ipv4.destination[15:0]);
      flags2_q <= headers1.ipv4.flags_offset[15:14];
      if (valid1_q) begin
        if (first1_q) begin
          ours_q    <= ours;
          allowed_q <= allowed_i;
          frame2_q  <= frame1;
        end
      end
    end
    if (rst_i) begin
      valid2_q <= 1'b0;
      ours_q   <= 1'b0;
    end
  end

  assign m_valid   = valid2_q && !ours_q;
  assign m_payload = axis2_q;

  logic starts, wants_place, may_have_place, has_room, taken;
  assign starts         = valid2_q && first2_q && ours_q;
  assign wants_place    = takes_place(frame2_q.kv.kind);
  assign may_have_place = place_i.valid && (place_i.plenty || takes_last_place(frame2_q.kv.kind));
  assign has_room       = room_i && (!wants_place || may_have_place);
  assign taken          = allowed_q && has_room;
  assign place_take_o   = starts && wants_place && taken;

  // Stage 3 knows whether the sums and the lengths are right.
  logic wrong_checksum, wrong_length;
  assign events_o = '{
          passed: m_valid && m_ready && axis2_q.last,
          received: starts,
          dropped_checksum: wrong_checksum,
          dropped_length: wrong_length,
          dropped_source: starts && !allowed_q,
          dropped_busy: starts && !taken && allowed_q
      };

  // ---- stage 3: the verdict

  logic valid3_q, first3_q, last3_q, error3_q, whole3_q, right_ip3_q;
  logic taken3_q;  // the frame of stage 3, and of later beats in stage 2
  logic has_place3_q;
  place_t place3_q;
  logic [BeatBits:0] filled_q;  // all beats of a value: ValueBeats
  logic filling_q;
  frame_t frame3_q;
  logic given3_q;  // the request of the frame in stage 3 has been given

  // A nonzero sum is 0 modulo 65535 if its upper part is the 65535-complement of its lower 16 bits. So no addition is
  // needed: adding ip2's upper part and the missing part (together below 16) changes only the lowest four bits.
  localparam logic [15:0] IpMissing = 16'hffff - 16'(FirstOfIp);
  if (IpMissing[3:0] != '1) begin : gen_check_missing
    $fatal(1, "the first word of the IPv4 header is another one: look at right_ip3_q in %m");
  end

  always_ff @(posedge clk_i) begin
    valid3_q <= advance && valid2_q && ours_q;
    first3_q <= first2_q;
    last3_q  <= axis2_q.last;
    error3_q <= error2_q;
    whole3_q <= whole2_q;
    // A freed place gets no more of its value.
    if (free_o.valid) has_place3_q <= 1'b0;
    if (starts) begin
      frame3_q     <= frame2_q;
      taken3_q     <= taken;
      has_place3_q <= place_take_o;
      place3_q     <= place_i.place;
      right_ip3_q  <= ip2[15:4] == IpMissing[15:4] && ip2[3:0] == ~ip2[19:16];
    end
    if (rst_i) valid3_q <= 1'b0;
  end

  logic pool_full;
  assign pool_full = filled_q == (BeatBits + 1)'(ValueBeats);
  assign pool_o = '{
          write: valid2_q && ours_q && !first2_q && taken3_q && has_place3_q && !pool_full,
          place: place3_q,
          beat: filled_q[BeatBits-1:0],
          data: axis2_q.data
      };
  assign filling_o = '{filling: filling_q, place: place3_q, filled: filled_q};

  always_ff @(posedge clk_i) begin
    if (starts) filled_q <= '0;
    else if (pool_o.write) filled_q <= filled_q + 1'b1;
    if (starts) filling_q <= place_take_o && !axis2_q.last;
    else if ((valid2_q && ours_q && axis2_q.last) || free_o.valid) filling_q <= 1'b0;
    if (rst_i) filling_q <= 1'b0;
  end

  // The sum of all words so far, for the UDP checksum.
  logic [31:0] total_q, total;
  assign total = 32'(sum3) + (first3_q ? 32'(16'hffff - 16'(LengthsDiffer)) : total_q);

  // The value's sum is the complement of the first beat's sum, since a correct frame's total is 65535. Apart from a
  // borrow, the upper bits change at most the lowest six of the difference. Without a value, and so without an earlier
  // first beat, the sum is 0.
  localparam logic [21:0] NoValue = 22'h00ffff;
  logic [21:0] head_q;
  logic [16:0] value_sum;
  assign value_sum = {1'b0, ~head_q[15:0]} - 17'(head_q[21:16]);

  // A LUT compares three bits of each half. `keep` stops Yosys from building a carry chain, because the sum is late.
  `YOSYS_KEEP
  logic [5:0] equal;
  logic right_sum;
  always_comb begin
    for (int i = 0; i < 5; i++) equal[i] = total[3*i+:3] == ~total[16+3*i+:3];
    equal[5] = total[15] == !total[31];
  end
  assign right_sum = equal == '1;

  logic early, right_rest, right_lengths, decided;
  `YOSYS_KEEP
  logic gives, gives_if, frees, frees_if;  // for certain; or if the sum is right, or not
  assign early           = WholeFrames && first3_q && !frame3_q.summed;
  assign right_rest      = right_ip3_q && (early || !error3_q);
  assign right_lengths   = frame3_q.right_lengths && (early ? frame3_q.right_size : whole3_q);
  assign decided         = valid3_q && taken3_q && (early || (last3_q && !(given3_q && !first3_q)));
  assign gives           = decided && right_rest && right_lengths && !frame3_q.summed;
  assign gives_if        = decided && right_rest && right_lengths && frame3_q.summed;
  assign frees           = decided && has_place3_q && !(right_rest && right_lengths);
  assign frees_if        = decided && has_place3_q && frame3_q.summed;

  assign arrival_o.valid = gives || (gives_if && right_sum);
  assign free_o          = '{valid: frees || (frees_if && !right_sum), place: place3_q};
  assign wrong_checksum  = decided && !(right_rest && (!frame3_q.summed || right_sum));
  assign wrong_length    = decided && right_rest && (!frame3_q.summed || right_sum) && !right_lengths;

  always_ff @(posedge clk_i) begin
    if (valid3_q) begin
      total_q <= total;
      if (first3_q) head_q <= total[21:0];
      given3_q <= decided || (given3_q && !first3_q);
    end
    // Placed here, so that it becomes the flip-flops' own reset.
    if (valid3_q && last3_q) head_q <= NoValue;
    if (rst_i) begin
      given3_q <= 1'b0;
      head_q   <= NoValue;
    end
  end

  request_t request;
  assign arrival_o.what = request;
  always_comb begin
    request           = '0;
    request.from      = frame3_q.from;
    request.kv        = frame3_q.kv;
    request.hash      = frame3_q.hash;
    request.too_long  = frame3_q.value_length > 16'(MaxValueBytes);
    request.length    = request.too_long ? 11'(MaxValueBytes) : frame3_q.value_length[10:0];
    request.summed    = frame3_q.summed;
    request.sum       = {value_sum[15:6], value_sum[5:0] - 6'(value_sum[16])};
    request.has_place = has_place3_q;
    request.place     = place3_q;
  end

  `ASSERT(place_was_free, !place_take_o || place_i.valid, "took a place that nobody offered")
  `ASSERT(stranger_takes_nothing, !events_o.dropped_source || !place_take_o,
          "a frame from an address that is not allowed took a place")
  `ASSERT(freed_once, !(free_o.valid && arrival_o.valid), "gave a place back and away")
  `ASSERT_NEXT(host_valid_kept, m_valid && !m_ready, m_valid, "a beat for the host was withdrawn before it was taken")
  `ASSERT_NEXT(host_payload_kept, m_valid && !m_ready, m_payload == $past(m_payload),
               "a beat for the host changed before it was taken")

endmodule
`default_nettype wire
