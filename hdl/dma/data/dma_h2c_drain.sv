// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"
`include "stream.svh"

/// Moves runs from the ring of lines to AXI as bursts, to the stream, or discards them; and reports turns.
///
/// Behaviour: a run leaves a line a cycle, together with its address, directly followed by the next run. A line is free
/// when no later run uses it. All writes have id 0, so answers come in order. A turn is done with its last burst's
/// answer, else with its last line. With stream, a packet with a failed turn leaves whole; user[2] marks the rest.
/// Combinational paths: none from valid and payload of runs.
/// Latency: run to its address 1 cycle, to its first beat 2.
/// Reset: discards work in progress, so both sides of the bus must be reset.
/// Requirements: no valid is high during reset. The stream has room for every run (stream_room_o of dma_h2c).
module dma_h2c_drain
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    parameter type axis_t = dma_axis_t,
    parameter int unsigned Lines = 512,
    /// Bursts that may wait for their answer; a power of two, at least 2.
    parameter int unsigned Outstanding = 64,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,
    input wire rst_i,

    input  wire       run_valid,
    output logic      run_ready,
    input  wire run_t run,

    output bank_read_t      read_o,
    input  wire bank_data_t read_i,
    output logic            free_o,

    // The AXI write channels; the read channels are idle.
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,

    `STREAM_SENDER(m_axis, axis_t)

    `STREAM_SENDER(m_done, done_t)
    output fate_t fate_o
);

  // A part of a turn whose end is awaited.
  typedef struct packed {
    logic        answered;  // by AXI
    logic        ends;      // the turn
    logic [1:0]  channel;
    error_e      error;
    logic [12:0] moved;
  } awaited_t;

  // ---- the run that leaves
  logic active_q, void_q, stream_q, end_q, last_q, bad_q;
  logic [3:0] spoilt_q;  // channels whose packet went wrong
  logic [6:0] left_q, beats;  // beats to come, less 1
  logic [5:0] from_q, to_q;  // the first lane, and the last of the last beat
  awaited_t awaited_q;
  logic [LineBits-1:0] line_q;
  logic final_q, fetch, out_free, awaited_ready, aw_free, load, spoilt;
  logic awaited_valid, b_take, passes, done_free;
  logic [12:0] reach;
  // The lane after the last byte; `beats` counts the beats before that lane.
  assign reach = run.bytes + 13'(run.addr[5:0]);
  assign beats = reach[12:6] - 7'(reach[5:0] == '0);
  assign fetch = active_q && (void_q || out_free) && (!final_q || awaited_ready);
  assign load = run_valid && run_ready;
  assign run_ready = (!active_q || (fetch && final_q)) && aw_free;
  assign spoilt = run.error != ErrorNone || spoilt_q[run.channel];

  always_ff @(posedge clk_i) begin
    if (fetch) begin
      left_q  <= left_q - 1'b1;
      final_q <= left_q == 7'd1;
      from_q  <= '0;
      if (final_q) active_q <= 1'b0;
    end
    if (free_o) line_q <= line_q + 1'b1;
    if (load) begin
      active_q <= 1'b1;
      void_q <= run.void_ && !run.stream;
      stream_q <= run.stream;
      end_q <= run.ends;
      last_q <= run.last;
      bad_q <= spoilt;
      left_q <= beats;
      final_q <= beats == 7'd0;
      from_q <= run.addr[5:0];
      to_q <= reach[5:0] - 1'b1;
      awaited_q <= '{
          answered: !run.void_ && !run.stream,
          ends: run.ends,
          channel: run.channel,
          error: error_e'(run.error),
          moved: run.moved
      };
      if (run.stream) spoilt_q[run.channel] <= spoilt && !run.last;
    end
    if (rst_i) begin
      active_q <= 1'b0;
      left_q   <= '0;
      final_q  <= 1'b0;
      from_q   <= '0;
      line_q   <= '0;
      spoilt_q <= '0;
    end
  end
  assign read_o = '{enable: fetch && !void_q, line: {16{line_t'(line_q)}}};
  // The last line is not freed if the turn continues in it.
  assign free_o = fetch && (!final_q || end_q || to_q == '1);

  // ---- its address
  logic aw_valid_q;
  logic [63:0] aw_addr_q;
  logic [7:0] aw_len_q;
  assign aw_free = !aw_valid_q || m_axi_resp.aw_ready;
  always_ff @(posedge clk_i) begin
    if (aw_free) begin
      aw_valid_q <= load && !run.void_ && !run.stream;
      aw_addr_q  <= run.addr;
      aw_len_q   <= 8'(beats);
    end
    if (rst_i) aw_valid_q <= 1'b0;
  end

  // ---- lane enables: first by groups of eight, then within each; each lane is one LUT
  `YOSYS_KEEP
  logic [7:0] above, first, after, below, ending, upto;
  logic [63:0] lanes;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      above[i]  = 3'(i) > from_q[5:3];
      first[i]  = 3'(i) == from_q[5:3];
      after[i]  = 3'(i) >= from_q[2:0];
      below[i]  = 3'(i) < to_q[5:3] || !final_q;
      ending[i] = 3'(i) == to_q[5:3];
      upto[i]   = 3'(i) <= to_q[2:0];
    end
    for (int i = 0; i < 64; i++) begin
      lanes[i] = (above[i/8] || (first[i/8] && after[i%8])) && (below[i/8] || (ending[i/8] && upto[i%8]));
    end
  end

  // ---- the beat that the ring returned
  logic out_valid_q, out_stream_q, out_last_q, out_end_q, out_bad_q;
  logic [ 1:0] out_channel_q;
  logic [63:0] lanes_q;
  assign out_free = !out_valid_q || (out_stream_q ? m_axis_ready : m_axi_resp.w_ready);
  always_ff @(posedge clk_i) begin
    if (out_free) out_valid_q <= fetch && !void_q;
    if (fetch && !void_q) begin
      out_stream_q  <= stream_q;
      out_last_q    <= final_q;
      out_end_q     <= final_q && last_q && end_q;
      out_bad_q     <= bad_q;
      out_channel_q <= awaited_q.channel;
      lanes_q       <= lanes;
    end
    if (rst_i) out_valid_q <= 1'b0;
  end

  always_comb begin
    m_axi_req          = '0;
    m_axi_req.aw.addr  = aw_addr_q;
    m_axi_req.aw.len   = aw_len_q;
    m_axi_req.aw.size  = 3'd6;
    m_axi_req.aw.burst = axi_pkg::BurstIncr;
    m_axi_req.aw.cache = axi_pkg::CacheNormal;
    m_axi_req.aw.prot  = axi_pkg::ProtData;
    m_axi_req.aw_valid = aw_valid_q;
    m_axi_req.w.data   = read_i;
    m_axi_req.w.strb   = lanes_q;
    m_axi_req.w.last   = out_last_q;
    m_axi_req.w_valid  = out_valid_q && !out_stream_q;
    m_axi_req.b_ready  = b_take;
  end
  assign m_axis_valid   = out_valid_q && out_stream_q;
  assign m_axis_payload = '{user: {out_bad_q, out_channel_q}, last: out_end_q, keep: lanes_q, data: read_i};

  // ---- what is awaited
  awaited_t awaited;
  error_e error, error_q;
  stream_fifo #(
      .Width($bits(awaited_t)),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_awaited (
      .*,
      `STREAM_PORTS(s, fetch && final_q, awaited_ready, awaited_q),
      `STREAM_PORTS(m, awaited_valid, passes, awaited)
  );
  assign fate_o = '{
          failed: b_take && m_axi_resp.b_valid && m_axi_resp.b.resp[1] && !awaited.ends,
          answered: passes && awaited.ends
      };
  assign done_free = !m_done_valid || m_done_ready;
  assign b_take = awaited_valid && awaited.answered && done_free;
  assign passes = awaited_valid && done_free && (!awaited.answered || m_axi_resp.b_valid);
  always_comb begin
    error = error_q;
    if (error == ErrorNone) error = awaited.error;
    // Only bit 1 of a response is an error: an exclusive okay also counts as good.
    if (error == ErrorNone && awaited.answered && m_axi_resp.b.resp[1]) error = ErrorMemory;
  end
  always_ff @(posedge clk_i) begin
    if (m_done_ready) m_done_valid <= 1'b0;
    if (passes) begin
      m_done_valid   <= awaited.ends;
      m_done_payload <= '{channel: awaited.channel, error: error, end_of_packet: 1'b0, bytes: awaited.moved};
      error_q        <= awaited.ends ? ErrorNone : error;
    end
    if (rst_i) begin
      m_done_valid <= 1'b0;
      error_q      <= ErrorNone;
    end
  end

  `ASSERT(awaited_answers, !m_axi_resp.b_valid || awaited_valid, "a response that nobody awaits")
  logic unused;
  assign unused = ^{m_axi_resp.ar_ready, m_axi_resp.r, m_axi_resp.r_valid, m_axi_resp.b.id};

endmodule
`default_nettype wire
