// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Joins complete pieces, in order, into runs. One AXI burst writes a run, or the run is discarded.
///
/// Behaviour: a run begins with a piece, and grows while it waits and the next piece is complete. It ends with
/// its turn, at a page of the card, and at an error, after which data are void. So a burst has all its data
/// (completions behind a posted write may wait for the card's write channel), and bursts are long under load.
/// With stream, a run is a whole turn, good or bad.
/// Throughput: a piece a cycle.
/// Combinational paths: none from valid and payload, and from fate_i.
/// Latency: 1 cycle.
/// Reset: discards the present run.
/// Requirements: no valid is high during reset. A turn precedes its pieces, which are contiguous.
module dma_h2c_collect
  import dma_pkg::*, dma_data_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,

    // The oldest turn, and its pieces.
    input  wire         turn_valid,
    output logic        turn_ready,
    input  wire turn_t  turn,
    input  wire         ended_valid,
    output logic        ended_ready,
    input  wire ended_t ended,

    input wire fate_t fate_i,

    output logic run_valid,
    input  wire  run_ready,
    output run_t run
);

  // State of the turn: the next byte's address, the used part of the piece, and the error.
  logic begun_q, beyond_q;
  logic [12:0] eaten_q, moved_q;
  logic [11:0] low_q;
  error_e error_q;

  logic [11:0] low;
  logic [12:0] rest, page, step, moved;
  logic beyond, whole, page_ends, ends, void_, grows, empty, put;
  logic   failed;
  error_e error;
  assign low       = begun_q ? low_q : turn.card[11:0];
  // The turn's state is 0 when the next turn begins.
  assign beyond    = beyond_q;
  assign rest      = ended.bytes - eaten_q;
  assign page      = 13'd4096 - 13'(low);
  assign whole     = turn.stream || rest <= page;
  assign page_ends = !turn.stream && rest >= page;
  assign step      = whole ? rest : page;
  assign ends      = whole && ended.ends;
  always_comb begin
    error = error_q;
    if (error == ErrorNone && failed) error = ErrorMemory;
    if (error == ErrorNone) error = error_e'(ended.error);
    if (error == ErrorNone && stop_i) error = ErrorReset;
  end
  // The same as error != ErrorNone.
  assign void_ = error_q != ErrorNone || failed || ended.error != '0 || stop_i;

  // One cycle late. The turn is answered later, so it is still the same turn.
  logic failed_q, answered_q;
  always_ff @(posedge clk_i) begin
    failed_q   <= fate_i.failed && !rst_i;
    answered_q <= fate_i.answered && !rst_i;
  end

  // Turns after the oldest unanswered one; 0 if this turn is the oldest.
  logic [8:0] behind_q;
  logic oldest_q;
  assign failed = failed_q && begun_q && oldest_q;
  assign moved  = moved_q + (void_ ? '0 : step);

  // The run; it is closed when no more pieces may join.
  logic valid_q, closed_q, void_q;
  logic [12:0] bytes_q;
  logic [51:0] page_q;
  logic [11:0] run_low_q;
  logic stream_q, ends_q, last_q;
  logic [1:0] channel_q;
  error_e run_error_q;
  logic [12:0] run_moved_q;
  assign empty = !valid_q || (run_valid && run_ready);
  assign grows = valid_q && !closed_q && !(run_valid && run_ready) && (turn.stream || void_q == void_);
  assign put = ended_valid && turn_valid && (empty || grows);
  assign ended_ready = put && whole;
  assign turn_ready = put && ends;
  assign run_valid = valid_q && (closed_q || !stream_q);
  assign run = '{
          void_: void_q,
          stream: stream_q,
          ends: ends_q,
          last: last_q,
          channel: channel_q,
          error: run_error_q,
          moved: run_moved_q,
          bytes: bytes_q,
          addr: {page_q, run_low_q}
      };

  always_ff @(posedge clk_i) begin
    if (run_valid && run_ready) valid_q <= 1'b0;
    if (put) begin
      valid_q  <= 1'b1;
      closed_q <= ends || page_ends;
      bytes_q  <= step + (empty ? '0 : bytes_q);
      void_q   <= void_;
      if (empty) begin
        page_q    <= turn.card[63:12] + 52'(beyond);
        run_low_q <= turn.stream ? '0 : low;
      end
      stream_q    <= turn.stream;
      ends_q      <= ends;
      last_q      <= turn.last;
      channel_q   <= turn.channel;
      run_error_q <= error;
      run_moved_q <= moved;
      begun_q     <= !ends;
      beyond_q    <= !ends && (beyond || page_ends);
      low_q       <= low + step[11:0];
      error_q     <= ends ? ErrorNone : error;
      moved_q     <= ends ? '0 : moved;
      eaten_q     <= whole ? '0 : eaten_q + step;
    end
    if (!put && failed && error_q == ErrorNone) error_q <= ErrorMemory;  // the turn has begun
    if ((put && ends) != answered_q) begin
      behind_q <= answered_q ? behind_q - 1'b1 : behind_q + 1'b1;
      oldest_q <= answered_q && behind_q == 9'd1;
    end
    if (rst_i) begin
      behind_q <= '0;
      oldest_q <= 1'b1;
      error_q  <= ErrorNone;
      valid_q  <= 1'b0;
      begun_q  <= 1'b0;
      beyond_q <= 1'b0;
      moved_q  <= '0;
      eaten_q  <= '0;
    end
  end
  logic unused;
  assign unused = ^{turn.bytes, turn.host};

  `ASSERT(oldest_right, oldest_q == (behind_q == '0), "whether all before are answered is not what the count says")
  `ASSERT(run_in_a_page, !run_valid || stream_q || 14'(run.addr[11:0]) + 14'(run.bytes) <= 14'd4096,
          "a run crosses a page")

endmodule
`default_nettype wire
