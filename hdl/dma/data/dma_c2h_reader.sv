// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Fetches the data of turns to the host, from AXI or from the packet stream, into a ring of lines.
///
/// Behaviour: the ring's lines match the card's: a turn's first byte is in lane card[5:0]. Reads go ahead while
/// the ring has room; all have id 0, so data come in order. The writer gets a turn when its reads begin (AXI), or
/// when its length is known (stream). A stream turn waits for earlier reads. It then takes its channel's packet
/// until that ends or its bytes are full; a beat of another channel stops it. A beat's rest is the next turn's.
/// stop_i: a stream turn ends at once, with an unused line if it has none; the rest of its packet is discarded.
/// Combinational paths: none from valid and payload of turns, AR and the stream. R enters the ring directly.
/// Latency: turn to its address 3 cycles; at most one burst in two cycles.
/// Reset: discards everything, so both sides of the bus must be reset.
/// Requirements: no valid is high during reset. A packet's beat fills lanes from 0 on, and all 64 except in the last.
module dma_c2h_reader
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Lines of the ring; a power of two, at least 128.
    parameter int unsigned Lines = 512,
    /// Bursts in flight, and turns in work; a power of two, 2 to 32.
    parameter int unsigned Outstanding = 32,
    parameter bit Stream = 1'b1,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,

    `STREAM_RECEIVER(s, turn_t)

    // The AXI read channels; the write channels are idle.
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,

    `STREAM_RECEIVER(s_axis, dma_axis_t)

    /// Whose packet comes next.
    output logic       stream_valid_o,
    output logic [1:0] stream_channel_o,

    output bank_write_t write_o,
    /// A line was emptied.
    input  wire         free_i,

    // Turns for the writer. With stream: `last` ends the packet, `bytes` came, card[5:0] is the first byte's lane.
    `STREAM_SENDER(m, turn_t)

    /// The number of lines that have arrived.
    output logic [LineBits:0] arrived_o,
    /// The present data of this turn came with an error.
    input  wire  [       5:0] turn_i,
    output logic              bad_o,
    /// A stream turn is in progress.
    output logic              busy_o
);

  if (Lines < 128 || 2 ** LineBits != Lines) begin : gen_check_lines
    $fatal(1, "Lines must be a power of two and at least 128 in %m");
  end

  // ---- turns
  logic quiet, from_stream, stream_busy, stream_ends, split_ready, told_ready, told_valid, memory;
  turn_t told;
  assign from_stream = Stream && s_payload.stream;
  assign memory      = s_valid && !from_stream;
  // A stream turn stays at the input until it ends, so it needs no register here.
  assign busy_o      = stream_busy;
  assign s_ready     = from_stream ? stream_ends : split_ready && told_ready;
  // The queue is in block RAM; its extra cycle passes while the card is being read.
  localparam int unsigned TurnBits = $bits(turn_t);
  logic [TurnBits-59:0] waits, waited;  // without the card's line, bits 63 to 6
  assign waits     = {told[TurnBits-1:64], told[5:0]};
  assign m_payload = {waited[TurnBits-59:6], 58'd0, waited[5:0]};
  stream_fifo #(
      .Width($bits(waits)),
      .Depth(Outstanding),
      .Block(1'b1)
  ) i_turns (
      .*,
      `STREAM_PORTS(s, told_valid, told_ready, waits),
      `STREAM_PORTS(m, m_valid, m_ready, waited)
  );

  // ---- their bursts
  typedef struct packed {
    logic        last;
    logic [5:0]  lines;  // less 1
    logic [63:0] addr;
  } burst_t;
  logic split_valid, split_go, unused_first;
  logic valid, ready, burst_ready, address_ready, fits, go;
  logic [51:0] page;
  logic [12:0] low, unused_bytes;
  logic [11:0] reach;
  logic [12:0] last_byte;
  burst_t split, burst;
  // A turn covers at most two pages, so only the low address bits are added.
  range_split #(
      .AddressWidth(13),
      .LengthWidth(13),
      .MaxLimit(12),
      .UserWidth(52)
  ) i_split (
      .*,
      .s_valid(memory && told_ready),
      .s_ready(split_ready),
      .s_address({1'b0, s_payload.card[11:0]}),
      .s_length(s_payload.bytes),
      .s_limit(4'd12),
      .s_user(s_payload.card[63:12]),
      .m_valid(split_valid),
      .m_ready(split_go),
      .m_address(low),
      .m_length(unused_bytes),
      .m_reach(reach),
      .m_first(unused_first),
      .m_last(split.last),
      .m_user(page)
  );
  // The burst stays within a page, so it has at most 64 lines.
  assign last_byte   = 13'(low[5:0]) + 13'(reach);
  assign split.lines = last_byte[11:6];
  assign split.addr  = {page + 52'(low[12]), low[11:0]};
  stream_register #(
      .Width($bits(burst_t)),
      .Half (1'b1)
  ) i_burst (
      .*,
      `STREAM_PORTS(s, split_valid, split_go, split),
      `STREAM_PORTS(m, valid, ready, burst)
  );
  assign ready = fits && burst_ready && address_ready;
  assign go    = valid && ready;
  logic [71:0] ar;
  stream_register #(
      .Width(72)
  ) i_address (
      .*,
      `STREAM_PORTS(s, go, address_ready, {burst.addr, 8'(burst.lines)}),
      `STREAM_PORTS(m, m_axi_req.ar_valid, m_axi_resp.ar_ready, ar)
  );
  // Whether a burst ends its turn.
  logic burst_valid, burst_ends, answered;
  stream_fifo #(
      .Width(1),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_bursts (
      .*,
      `STREAM_PORTS(s, go, burst_ready, burst.last),
      `STREAM_PORTS(m, burst_valid, answered, burst_ends)
  );
  always_comb begin
    m_axi_req.aw       = '0;
    m_axi_req.aw_valid = 1'b0;
    m_axi_req.w        = '0;
    m_axi_req.w_valid  = 1'b0;
    m_axi_req.b_ready  = 1'b0;
    m_axi_req.ar       = '0;
    m_axi_req.ar.addr  = ar[71:8];
    m_axi_req.ar.len   = ar[7:0];
    m_axi_req.ar.size  = 3'd6;
    m_axi_req.ar.burst = axi_pkg::BurstIncr;
    m_axi_req.ar.cache = axi_pkg::CacheNormal;
    m_axi_req.ar.prot  = axi_pkg::ProtData;
    m_axi_req.r_ready  = 1'b1;
  end

  // ---- arriving data
  logic r, r_ends, writes, stream_write, error, sticky_q, freed_q;
  logic [511:0] stream_data;
  logic [LineBits:0] free_q;
  logic [5:0] turn_q;
  assign r = m_axi_resp.r_valid;
  assign answered = r && m_axi_resp.r.last;
  assign r_ends = answered && burst_ends;
  assign error = r && (sticky_q || m_axi_resp.r.resp[1]);
  // The longest burst.
  assign fits = free_q[LineBits:6] != '0;
  assign quiet = !split_valid && !valid && !burst_valid;
  assign writes = r || stream_write;
  assign write_o = '{
          enable: {64{writes}},
          line: {16{line_t'(arrived_o[LineBits-1:0])}},
          data: Stream && stream_busy ? stream_data : m_axi_resp.r.data
      };
  // Only one of bursts and stream takes lines; ~x is -x - 1. A freed line is the carry into the sum.
  logic [LineBits:0] taken, free_next;
  logic unused_free;
  assign taken = go ? (LineBits + 1)'(burst.lines) : '0;
  assign {free_next, unused_free} = {free_q, 1'b1} + {go || stream_write ? ~taken : '0, freed_q};
  always_ff @(posedge clk_i) begin
    if (writes) arrived_o <= arrived_o + 1'b1;
    freed_q <= free_i && !rst_i;
    free_q  <= free_next;
    if (r) sticky_q <= error && !r_ends;
    if (r_ends || stream_ends) turn_q <= turn_q + 1'b1;
    if (rst_i) begin
      arrived_o <= '0;
      free_q    <= (LineBits + 1)'(Lines);
      sticky_q  <= 1'b0;
      turn_q    <= '0;
    end
  end
  lutram #(
      .Width(1),
      .Depth(64)
  ) i_bad (
      .*,
      .write_i(writes),
      .write_address_i(turn_q),
      .write_data_i(error),
      .read_address_i(turn_i),
      .read_data_o(bad_o)
  );

  // ---- the stream
  if (Stream) begin : gen_stream
    logic busy_q, begun_q, inside_q, discard_q;  // a packet is open; its rest goes nowhere
    logic [12:0] got_q, room, takes, got;
    logic [5:0] skip_q, lane_q;
    logic [6:0] top, there;
    logic ours, beat, whole, stopped;
    // A registered beat. Its `keep` is stored as the number of lanes.
    typedef struct packed {
      logic [1:0]   channel;
      logic         last;
      logic [6:0]   top;
      logic [511:0] data;
    } stream_beat_t;
    stream_beat_t now;
    logic now_valid, now_ready;
    always_comb begin
      // Kept lanes begin at lane 0. So each bit of their number follows from the edges at multiples of its weight.
      top = {s_axis_payload.keep[63], 6'd0};
      for (int b = 0; b < 6; b++) begin
        for (int i = 0; i < 64; i += 2 << b) begin
          top[b] |= s_axis_payload.keep[i+(1<<b)-1] && !s_axis_payload.keep[i+(2<<b)-1];
        end
      end
    end
    stream_register #(
        .Width($bits(stream_beat_t))
    ) i_beat (
        .*,
        `STREAM_PORTS(s, s_axis_valid, s_axis_ready, {
                      s_axis_payload.user[1:0], s_axis_payload.last, top, s_axis_payload.data}),
        `STREAM_PORTS(m, now_valid, now_ready, now)
    );
    // The rest of a packet that a reset interrupted belongs to no channel.
    assign stream_valid_o   = now_valid && !discard_q;
    assign stream_channel_o = now.channel;
    assign stream_data      = now.data;
    assign ours             = now.channel == s_payload.channel;
    assign room             = s_payload.bytes - got_q;
    assign there            = now.top - 7'(skip_q);
    assign whole            = 13'(there) <= room;
    assign takes            = whole ? 13'(there) : room;
    assign got              = stopped ? (begun_q ? got_q : 13'd1) : got_q + takes;
    assign stopped          = busy_q && stop_i && told_ready && (begun_q || free_q != '0);
    assign beat             = busy_q && !stop_i && !discard_q && now_valid && ours && free_q != '0 && told_ready;
    assign stream_ends      = stopped || (beat && (13'(there) >= room || now.last));
    assign stream_write     = beat || (stopped && !begun_q);
    assign stream_busy      = busy_q;
    assign now_ready        = (beat && whole) || discard_q;
    assign told_valid       = memory && split_ready || stream_ends;
    always_comb begin
      told = s_payload;
      told.last = !stopped && whole && now.last;  // without stream it means nothing
      if (from_stream) begin
        told.bytes = got;
        told.card[5:0] = begun_q ? lane_q : skip_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (s_valid && from_stream && quiet && !busy_q) begin
        busy_q  <= 1'b1;
        begun_q <= 1'b0;
        got_q   <= '0;
      end
      if (beat) begin
        begun_q <= 1'b1;
        got_q   <= got;
        skip_q  <= whole ? '0 : skip_q + takes[5:0];
        if (!begun_q) lane_q <= skip_q;
        inside_q <= !(whole && now.last);
      end
      if (stream_ends) busy_q <= 1'b0;
      if (stop_i && inside_q) begin
        discard_q <= 1'b1;
        inside_q  <= 1'b0;
        skip_q    <= '0;
      end
      if (discard_q && now_valid && now.last) discard_q <= 1'b0;
      if (rst_i) begin
        busy_q    <= 1'b0;
        begun_q   <= 1'b0;
        inside_q  <= 1'b0;
        discard_q <= 1'b0;
        skip_q    <= '0;
        got_q     <= '0;
      end
    end
    logic unused_stream;
    assign unused_stream = s_axis_payload.user[2];

    `ASSERT(full_beats, !s_axis_valid || s_axis_payload.last || s_axis_payload.keep == '1,
            "a beat within a packet is not full")
  end else begin : gen_no_stream
    logic unused_stream;
    assign unused_stream    = ^{s_axis_valid, s_axis_payload, stop_i, quiet};
    assign stream_write     = 1'b0;
    assign stream_ends      = 1'b0;
    assign stream_busy      = 1'b0;
    assign stream_data      = '0;
    assign stream_valid_o   = 1'b0;
    assign stream_channel_o = '0;
    assign s_axis_ready     = 1'b0;
    assign told_valid       = memory && split_ready;
    assign told             = s_payload;
  end

  logic unused;
  assign unused = ^{last_byte[12], last_byte[5:0], told.card[63:6], m_axi_resp.aw_ready, m_axi_resp.w_ready,
                    m_axi_resp.b, m_axi_resp.b_valid, m_axi_resp.r.id};

  `ASSERT(data_awaited, !m_axi_resp.r_valid || burst_valid, "read data that nobody asked for")
  `ASSERT(one_takes, !(go && stream_write), "a burst begins within a packet")
  `ASSERT(room_is_right, free_q <= (LineBits + 1)'(Lines), "a line was freed twice")

endmodule
`default_nettype wire
