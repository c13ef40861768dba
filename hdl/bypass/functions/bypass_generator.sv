// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Generates frames of one size at one rate. Each carries its number and the cycle in which it began.
/// docs/design/bypass-functions.md describes their format.
///
/// Behaviour: a run starts with number 0 when settings_i.enable rises, and ends when it falls or after
/// settings_i.count frames. A frame starts when due, or right after the previous one: up to 2^20 cycles are caught up.
/// Latency: a frame is offered 1 cycle after it is due. Beats and frames follow each other without gaps.
/// Combinational paths: none from m_ready.
/// Reset: no run.
/// Requirements: during a run, of the settings only `enable` may change.
module bypass_generator
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // what is the checker's
    input wire generator_settings_t        settings_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire                      [31:0] now_i,
    input wire                             clear_i,

    output logic         m_valid,
    input  wire          m_ready,
    output bypass_axis_t m_payload,

    output logic [31:0] generated_o,
    output logic [31:0] behind_o
);

  localparam int unsigned FractionBits = 16;  // of a cycle
  typedef logic [31+FractionBits:0] time_t;

  // ---- when

  logic run_q, sending_q, due, starts, ends, last, late;
  time_t due_q, lag;
  logic [31:0] sequence_q, next_q, stamp_q;
  logic [7:0] beat_q, beats_q;
  bytes_t bytes_q, bytes;
  assign lag = {now_i, FractionBits'(0)} - due_q;
  assign due = !lag[31+FractionBits];
  assign late = due && lag >= time_t'(settings_i.interval);
  assign last = beat_q == beats_q;
  assign ends = sending_q && m_ready && last;
  assign starts = run_q && settings_i.enable && due && (settings_i.count == '0 || next_q != settings_i.count)
      && (!sending_q || ends);
  // Within what a NIC takes.
  assign bytes  = settings_i.bytes < 14'(LeastGenerated) ? 14'(LeastGenerated)
                : settings_i.bytes > 14'(MaxFrame) ? 14'(MaxFrame) : settings_i.bytes;

  always_ff @(posedge clk_i) begin
    run_q <= settings_i.enable;
    if (!run_q) begin
      due_q  <= {now_i + 1'b1, FractionBits'(0)};
      next_q <= '0;
    end else if (starts) begin
      due_q  <= due_q + time_t'(settings_i.interval);
      next_q <= next_q + 1'b1;
    end else if (due && lag[30+FractionBits:20+FractionBits] != '0) begin
      due_q <= due_q + (time_t'(1) << FractionBits);
    end

    if (ends) sending_q <= 1'b0;
    if (sending_q && m_ready) beat_q <= beat_q + 1'b1;
    if (starts) begin
      sending_q  <= 1'b1;
      beat_q     <= '0;
      beats_q    <= lines_of(bytes) - 1'b1;
      bytes_q    <= bytes;
      sequence_q <= next_q;
      stamp_q    <= now_i + 1'b1;  // when it is offered
    end

    if (starts) generated_o <= generated_o + 1'b1;
    if (starts && late) behind_o <= behind_o + 1'b1;
    if (rst_i || clear_i) begin
      generated_o <= '0;
      behind_o    <= '0;
    end
    if (rst_i) begin
      run_q     <= 1'b0;
      sending_q <= 1'b0;
      beat_q    <= '0;
      next_q    <= '0;
    end
  end

  // ---- what

  localparam int unsigned HeaderBits = 8 * AtRun;
  assign m_valid = sending_q;
  always_comb begin
    m_payload.user = {24'd0, settings_i.pair, 2'd0, bytes_q};
    m_payload.last = last;
    for (int i = 0; i < 64; i++) m_payload.keep[i] = !last || bytes_q[5:0] == '0 || 6'(i) < bytes_q[5:0];
    for (int unsigned i = 0; i < 16; i++) m_payload.data[32*i+:32] = pattern(sequence_q, {beat_q, 4'(i)});
    if (beat_q == '0) begin
      m_payload.data[HeaderBits-1:0] = HeaderBits'(settings_i.header);
      m_payload.data[8*AtRun+:16]    = word_of(settings_i.run);
      m_payload.data[8*AtNumber+:32] = ip_of(sequence_q);
      m_payload.data[8*AtStamp+:32]  = ip_of(stamp_q);
    end
  end

  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(place_kept, m_valid && !m_ready, {beat_q, beats_q, sequence_q, stamp_q, bytes_q} == $past
               ({beat_q, beats_q, sequence_q, stamp_q, bytes_q}), "a beat changed before it was taken")
  `ASSERT(ends_in_time, !sending_q || beat_q <= beats_q, "a frame goes on behind its end")

endmodule
`default_nettype wire
