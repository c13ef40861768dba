// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"
`include "dma.svh"
`include "stream.svh"

/// The only PCIe requester of the DMA engine: reads data and descriptors, and writes data and status words.
///
/// Behaviour:
/// - Reads: clients alternate by requests. m_read's tag is the client's; bit 7 is the client (0 data, 1 descriptors).
/// - A request waits while its tag is in flight, overdue or from before a stop, or if CompletionLines, the host side's
///   buffer, has no room for the longest request: an endpoint's completion credits are infinite, so only this limits them.
/// - Completions go to their request's client. One with a tag not in flight is dropped, and pulses unexpected_o.
/// - Time-out: an incomplete request ends after timeout_i ticks (of 2^TickBits cycles; 0: never; up to one tick
///   late), by a beat with ErrorTimeout and final_. It is then overdue: its tag is not reused for another time-out, or
///   until its completions have come. They are dropped, and each pulses unexpected_o. Until then it keeps its room.
/// - Writes: whole, in order of acceptance. Status writes precede waiting data; they use StatusBytes bytes only.
/// - stop_i (a reset of the function): requests in flight are dead. Their completions or time-outs are absorbed; their
///   tags are kept like those of others. Reads offered meanwhile are discarded; writes continue.
/// Combinational paths: none from valid and payload of reads and writes. Completions pass through.
/// Latency: reads and writes 1 cycle, completions 0.
/// Reset: forgets requests in flight. For Tags + FetchTags cycles no read is accepted.
/// Requirements: in reset no valid is high; no older completion comes; requests are as in read_t and write_t. If
/// timeout_i becomes 0 with requests in flight, those without an answer keep their tags.
module dma_requester
  import dma_pkg::*;
#(
    /// Tags for data: a power of two, 2 to 128.
    parameter int unsigned Tags = 128,
    /// Tags for descriptors: a power of two, 2 to Tags.
    parameter int unsigned FetchTags = Tags,
    /// Room for completions at the host's side, in lines of 64 bytes plus a header. Each uses a whole line or more.
    parameter int unsigned CompletionLines = 1024,
    /// Cycles in a tick of the time-out, as a power of two. 16: 262 us at 250 MHz.
    parameter int unsigned TickBits = 16,
    /// Bytes of a status write that are used; 4 to 64, a multiple of 4.
    parameter int unsigned StatusBytes = 32
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    input wire [6:0] timeout_i,

    // Clients: 0 data, 1 descriptors.
    input  wire         [1:0] s_read_valid,
    output logic        [1:0] s_read_ready,
    input  wire read_t  [1:0] s_read_payload,
    // Both clients share one ready; a completion for no client also waits for it.
    output logic        [1:0] m_completion_valid,
    input  wire               m_completion_ready,
    output completion_t       m_completion_payload,

    // 0 data, 1 status words.
    input  wire         [1:0] s_write_valid,
    output logic        [1:0] s_write_ready,
    input  wire write_t [1:0] s_write_payload,

    `DMA_HOST_PORTS

    output logic unexpected_o,
    output logic timed_out_o,
    /// No request is in flight.
    output logic idle_o
);

  localparam int unsigned TagBits = $clog2(Tags);
  localparam int unsigned Bits = TagBits + 1;  // with the client
  localparam int unsigned Places = Tags + FetchTags;
  localparam int unsigned AgeBits = 8;
  localparam int unsigned LifeBits = 4;  // lives that end within one time-out, and one more

  if (Tags < 2 || Tags > 128 || 2 ** TagBits != Tags) begin : gen_check_tags
    $fatal(1, "Tags must be a power of two, 2 to 128 in %m");
  end
  if (FetchTags < 2 || FetchTags > Tags || 2 ** $clog2(FetchTags) != FetchTags) begin : gen_check_fetch_tags
    $fatal(1, "FetchTags must be a power of two, 2 to Tags in %m");
  end
  if (CompletionLines < 65) begin : gen_check_lines
    $fatal(1, "CompletionLines must have room for the longest request, 65 in %m");
  end
  if (StatusBytes < 4 || StatusBytes > 64 || StatusBytes % 4 != 0) begin : gen_check_status
    $fatal(1, "StatusBytes must be 4 to 64 and a multiple of 4 in %m");
  end

  // A request as it was issued. It is in flight while `turn` differs from ended_turn.
  typedef struct packed {
    logic                turn;
    logic                overdue;  // its client was told
    logic [LifeBits-1:0] life;     // of which life of the function
    logic [6:0]          lines;    // of 64 bytes that it touches, or one more
    logic [AgeBits-1:0]  tick;     // when it was issued, or became overdue
  } issued_t;
  typedef logic [Bits-1:0] index_t;
  localparam int unsigned LineBits = $clog2(CompletionLines + 1);

  // ---- time, lives of the function, and the sweep after a reset
  logic [TickBits-1:0] cycle_q;
  logic [ AgeBits-1:0] tick_q;
  logic stop_q, sweeping_q;
  logic [LifeBits-1:0] life_q;
  index_t sweep_q;
  always_ff @(posedge clk_i) begin
    cycle_q <= cycle_q + 1'b1;
    if (cycle_q == '1) tick_q <= tick_q + 1'b1;
    stop_q <= stop_i;
    if (stop_i && !stop_q) life_q <= life_q + 1'b1;
    if (sweeping_q) begin
      sweep_q <= sweep_q + 1'b1;
      if (sweep_q == index_t'(Places - 1)) sweeping_q <= 1'b0;
    end
    if (rst_i) begin
      cycle_q    <= '0;
      tick_q     <= '0;
      life_q     <= '0;
      stop_q     <= 1'b0;
      sweeping_q <= 1'b1;
      sweep_q    <= '0;
    end
  end

  // ---- reads
  read_t request, request_out;
  logic request_valid, request_ready, client, unused_request_last, issue, free, fits, swallow, out_ready;
  // Kept, so that it is computed in parallel with the tag's path, not after it.
  `YOSYS_KEEP
  logic goes, offered_one;
  logic old_q;  // the request that was looked at is too old; it ends when it is taken, unless a completion comes first
  logic [6:0] request_reach;
  logic [12:0] request_end;
  index_t request_index;
  stream_arbiter #(
      .Inputs(2),
      .Width ($bits(read_t))
  ) i_reads (
      .*,
      `STREAM_PORTS(s, s_read_valid, s_read_ready, s_read_payload),
      .s_last ('1),
      `STREAM_PORTS(m, request_valid, request_ready, request),
      .m_last (unused_request_last),
      .m_index(client)
  );
  assign request_end   = request.bytes + 13'(request.addr[5:0]);
  // The request's lines less 1, or one more if it ends with a line. So at most 65 lines are noted.
  assign request_reach = request_end[12:6];
  assign request_index = {client, request.tag[TagBits-1:0]};
  assign swallow       = stop_i;
  assign goes          = fits && out_ready && !sweeping_q && !old_q;
  assign request_ready = swallow || (free && goes);
  assign offered_one   = request_valid && goes && !swallow;
  assign issue         = free && offered_one;
  always_comb begin
    request_out = request;
    request_out.tag = {client, 7'(request.tag[TagBits-1:0])};
  end
  stream_register #(
      .Width($bits(read_t))
  ) i_read_register (
      .*,
      `STREAM_PORTS(s, issue, out_ready, request_out),
      `STREAM_PORTS(m, m_read_valid, m_read_ready, m_read_payload)
  );

  // ---- requests in flight: read by a new request, by a completion, or else by the search for expired ones
  issued_t issued, about;
  logic about_ended, request_ended, request_issued, expire, end_, in_flight, exists, alive;
  index_t about_index, look_q;
  logic [$bits(issued_t)-2:0] unused_request_issued;
  lutram #(
      .Width($bits(issued_t)),
      .Depth(Places),
      .ReadPorts(2)
  ) i_issued (
      .*,
      .write_i(issue || expire),
      .write_address_i(old_q ? look_q : request_index),
      .write_data_i(issued),
      .read_address_i({about_index, request_index}),
      .read_data_o({about, request_issued, unused_request_issued})
  );
  lutram #(
      .Width(1),
      .Depth(Places),
      .ReadPorts(2)
  ) i_ended (
      .*,
      .write_i(end_ || sweeping_q),
      .write_address_i(about_index),
      .write_data_i(about.turn),
      .read_address_i({about_index, request_index}),
      .read_data_o({about_ended, request_ended})
  );
  assign free = request_issued == request_ended;
  always_comb begin
    issued = '{turn: !request_ended, overdue: 1'b0, life: life_q, lines: request_reach + 1'b1, tick: tick_q};
    if (old_q) begin
      issued = about;
      issued.overdue = 1'b1;
      issued.tick = tick_q;
    end
  end
  // A tag beyond the descriptors' tags is never in flight.
  assign exists    = !s_completion_valid || !s_completion_payload.tag[7]
                     || 32'(s_completion_payload.tag[TagBits-1:0]) < FetchTags;
  assign in_flight = about.turn != about_ended && exists;
  assign alive = about.life == life_q && !about.overdue && !stop_i;
  // For m_completion_valid: all that comes late, in two halves of a LUT each.
  `YOSYS_KEEP
  logic of_this_life, flies_in_time;
  assign of_this_life  = about.life[2:0] == life_q[2:0];
  assign flies_in_time = in_flight && !about.overdue && about.life[3] == life_q[3];

  // ---- completions
  completion_t completion;
  logic
      looked_q,
      tell_q,  // old_q: and its client awaits it
      middle_q,
      known_q,
      forward_q;  // of a completion: its first beat's tag is in flight, and its client awaits it
  logic looking, expired, inject, known, forward, beat, taken;
  // Kept, so that they are computed in parallel with the tag's path.
  `YOSYS_KEEP
  logic told, begins, last_beat, ends_first, ends_later;
  assign looking = !s_completion_valid && !middle_q;
  assign about_index = sweeping_q ? sweep_q : !s_completion_valid ? look_q : index_t'({
      s_completion_payload.tag[7], s_completion_payload.tag[TagBits-1:0]});
  assign expired = timeout_i != '0 && AgeBits'(tick_q - about.tick) > AgeBits'(timeout_i);
  // A check takes two successive cycles without completions: to find an expired request, and to end it. In the second,
  // no request is issued.
  assign inject = looking && old_q;
  assign known = middle_q ? known_q : in_flight && !sweeping_q;
  assign forward = middle_q ? forward_q && !stop_i : known && alive;
  always_comb begin
    completion = s_completion_payload;
    completion.tag = 8'(about_index[TagBits-1:0]);
    if (looking) begin
      completion.first  = 1'b1;
      completion.last   = 1'b1;
      completion.final_ = 1'b1;
      completion.error  = ErrorTimeout;
      completion.bytes  = '0;
    end
  end
  assign m_completion_payload = completion;
  // `told`: of a time-out, or of a completion's later beats. `begins`: perhaps of a completion's first beat.
  // The client: bit 7 of the tag, or that of the expired request.
  assign told = !stop_i && ((inject && tell_q) || (s_completion_valid && middle_q && forward_q));
  assign begins = !stop_i && s_completion_valid && !middle_q && !sweeping_q;
  for (genvar i = 0; i < 2; i++) begin : gen_valid
    assign m_completion_valid[i] = about_index[TagBits] == 1'(i) && (told || (begins && of_this_life && flies_in_time));
  end
  assign taken = m_completion_ready;
  assign s_completion_ready = taken && !sweeping_q;
  assign beat = s_completion_valid && s_completion_ready;
  assign expire = inject && taken;
  assign last_beat = beat && s_completion_payload.last && s_completion_payload.final_;
  assign ends_first = last_beat && !middle_q && exists && !sweeping_q;
  assign ends_later = last_beat && middle_q && known_q;
  assign end_ = (expire && about.overdue) || ends_later || (ends_first && about.turn != about_ended);
  assign unexpected_o = beat && !middle_q && (!known || about.overdue);
  assign timed_out_o = expire && !about.overdue;
  always_ff @(posedge clk_i) begin
    if (beat) begin
      middle_q  <= !s_completion_payload.last;
      known_q   <= known;
      forward_q <= forward;
    end
    if (middle_q && stop_i) forward_q <= 1'b0;
    if (looking && !looked_q) begin
      looked_q <= !sweeping_q;
      old_q    <= in_flight && expired && !sweeping_q;
      tell_q   <= alive;
    end
    if (stop_i) tell_q <= 1'b0;
    if (!looking) begin  // a completion may be of the same
      looked_q <= 1'b0;
      old_q    <= 1'b0;
    end
    if (looking && looked_q && (taken || !old_q)) begin
      looked_q <= 1'b0;
      old_q    <= 1'b0;
      look_q   <= look_q == index_t'(Places - 1) ? '0 : look_q + 1'b1;
    end
    if (rst_i) begin
      looked_q  <= 1'b0;
      old_q     <= 1'b0;
      tell_q    <= 1'b0;
      middle_q  <= 1'b0;
      forward_q <= 1'b0;
      look_q    <= '0;
    end
  end

  // ---- room for completions; an ended request is counted a cycle later
  logic [LineBits-1:0] room_q;
  logic [Bits:0] flying_q;
  logic [6:0] ended_lines_q;
  logic ended_q;
  // Kept, so that returned room is added in parallel with the request's path, not after it.
  `YOSYS_KEEP
  logic [LineBits-1:0] room;
  assign room   = room_q + LineBits'(ended_lines_q);
  // Room for the longest request, so that the check does not depend on the request's length.
  assign fits   = room_q >= LineBits'(65);
  assign idle_o = flying_q == '0 && !sweeping_q;
  always_ff @(posedge clk_i) begin
    ended_q       <= end_;
    ended_lines_q <= end_ ? about.lines : '0;
    room_q        <= room + (issue ? ~LineBits'(request_reach) : '0);  // ~x is -x - 1
    flying_q      <= flying_q + (Bits + 1)'(issue) - (Bits + 1)'(ended_q);
    if (rst_i) begin
      ended_q       <= 1'b0;
      ended_lines_q <= '0;
      room_q        <= LineBits'(CompletionLines);
      flying_q      <= '0;
    end
  end

  // ---- writes: the upper lanes carry data only, so they need no multiplexer
  localparam int unsigned StatusBits = 8 * StatusBytes;
  localparam int unsigned HeadBits = $bits(write_t) - 512 - 1;
  localparam int unsigned MixBits = HeadBits + 1 + StatusBits;
  logic write_valid, write_ready, to_data, inside_q;
  logic [HeadBits:0] head;
  logic [StatusBits-1:0] low;
  logic [511:0] write_data;
  logic [1:0][MixBits-1:0] offered;
  // The few status words have priority, so data's ready does not wait for its own valid.
  // Status words are one beat each, so only data hold the output.
  for (genvar i = 0; i < 2; i++) begin : gen_writer
    assign offered[i] = {s_write_payload[i][$bits(write_t)-1:512], s_write_payload[i].data[StatusBits-1:0]};
  end
  assign to_data       = inside_q || !s_write_valid[1];
  assign {head, low}   = to_data ? offered[0] : offered[1];
  assign write_valid   = s_write_valid[0] || !to_data;
  assign s_write_ready = {write_ready && !inside_q, write_ready && to_data};
  always_ff @(posedge clk_i) begin
    if (write_ready && to_data && s_write_valid[0]) inside_q <= !s_write_payload[0].last;
    if (rst_i) inside_q <= 1'b0;
  end
  always_comb begin
    write_data = s_write_payload[0].data;
    write_data[StatusBits-1:0] = low;
  end
  stream_register #(
      .Width($bits(write_t))
  ) i_write_register (
      .*,
      `STREAM_PORTS(s, write_valid, write_ready, {head, write_data}),
      `STREAM_PORTS(m, m_write_valid, m_write_ready, m_write_payload)
  );

  logic unused;
  assign unused = ^{s_write_payload[1].data, request.tag, request_end[5:0]};

  `ASSERT(request_in_a_page, !request_valid || 14'(request.addr[11:0]) + 14'(request.bytes) <= 14'd4096,
          "a read crosses a page")
  `ASSERT(request_of_bytes, !request_valid || request.bytes != '0, "a read of no bytes")
  `ASSERT(tags_within, !request_valid || 32'(request.tag) < (client ? FetchTags : Tags), "a tag beyond the client's")
  `ASSERT(status_is_a_beat, !s_write_valid[1] || (s_write_payload[1].first && s_write_payload[1].last),
          "a status write of several beats")
  `ASSERT(sweeps_first, !sweeping_q || !looked_q, "a look in the sweep")
  `ASSERT(old_is_of_a_look, !old_q || looked_q, "too old without a look")
  `ASSERT(old_flies, !(looking && old_q) || in_flight, "what is too old is over")
  `ASSERT(room_is_right, room_q <= LineBits'(CompletionLines), "room for completions was made up")
  `ASSERT(flying_is_right, flying_q <= (Bits + 1)'(2 * Tags), "more is in flight than there are tags")

endmodule
`default_nettype wire
