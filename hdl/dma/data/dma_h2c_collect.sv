// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Joins pieces that are complete, in order, to runs: what one AXI burst writes, or what is thrown away.
///
/// Behaviour: a run begins with a piece, and grows while it waits to be taken and the next piece is complete. It ends with its turn, at a page of the card,
/// and where a turn goes wrong: what comes of a turn after its error is void. So a burst is asked for when all of its data are here (completions
/// behind a posted write to the card may wait for the card's write channel), and under load bursts are long.
/// With stream a run is the whole turn, good or bad.
/// Throughput: a piece a cycle.
/// Cuts: valid and payload.
/// Latency: 1 cycle.
/// Reset: forgets the run within.
/// Requirements: in reset no valid is high. Pieces of a turn follow each other; their turn is there before them.
module dma_h2c_collect
  import dma_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,

    // The oldest turn, and its pieces.
    input  wire                turn_valid_i,
    output logic               turn_ready_o,
    input  wire turn_t         turn_i,
    input  wire                piece_valid_i,
    output logic               piece_ready_o,
    input  wire         [12:0] piece_bytes_i,
    input  wire                piece_end_i,
    input  wire error_e        piece_error_i,

    /// AXI failed for the oldest turn that is not answered.
    input wire failed_i,
    /// A turn was answered.
    input wire answered_i,

    // A run: so many bytes from addr on; what is void is not written.
    output logic          m_valid,
    input  wire           m_ready,
    output logic          m_void,
    output logic   [63:0] m_addr,
    output logic   [12:0] m_bytes,
    output logic          m_stream,
    output logic          m_end,      // of its turn, of which follow
    output logic          m_last,
    output logic   [ 1:0] m_channel,
    output error_e        m_error,
    output logic   [12:0] m_moved     // of the turn, if AXI has no error to tell
);

  // Of the turn: where the next byte goes, how much of the piece is done, and what went wrong.
  logic begun_q, beyond_q;
  logic [12:0] eaten_q, moved_q;
  logic [11:0] low_q;
  error_e error_q;

  logic [11:0] low;
  logic [12:0] rest, page, step, moved;
  logic beyond, whole, page_ends, ends, void_, grows, empty, put;
  logic   failed;
  error_e error;
  assign low       = begun_q ? low_q : turn_i.card[11:0];
  assign beyond    = begun_q && beyond_q;
  assign rest      = piece_bytes_i - eaten_q;
  assign page      = 13'd4096 - 13'(low);
  assign whole     = turn_i.stream || rest <= page;
  assign page_ends = !turn_i.stream && rest >= page;
  assign step      = whole ? rest : page;
  assign ends      = whole && piece_end_i;
  always_comb begin
    error = begun_q ? error_q : ErrorNone;
    if (error == ErrorNone && failed) error = ErrorMemory;
    if (error == ErrorNone) error = piece_error_i;
    if (error == ErrorNone && stop_i) error = ErrorReset;
  end
  assign void_ = error != ErrorNone;

  // Turns behind the oldest one that is not answered: none, if this is it.
  logic [8:0] behind_q;
  assign failed = failed_i && begun_q && behind_q == '0;
  assign moved  = (begun_q ? moved_q : '0) + (void_ ? '0 : step);

  // The run: closed once nothing may join it.
  logic valid_q, closed_q, void_q;
  logic [12:0] bytes_q;
  logic [51:0] page_q;
  assign empty         = !valid_q || (m_valid && m_ready);
  assign grows         = valid_q && !closed_q && !(m_valid && m_ready) && (turn_i.stream || void_q == void_);
  assign put           = piece_valid_i && turn_valid_i && (empty || grows);
  assign piece_ready_o = put && whole;
  assign turn_ready_o  = put && ends;
  assign m_valid       = valid_q && (closed_q || !m_stream);
  assign m_void        = void_q;
  assign m_bytes       = bytes_q;

  always_ff @(posedge clk_i) begin
    if (m_valid && m_ready) valid_q <= 1'b0;
    if (put) begin
      valid_q  <= 1'b1;
      closed_q <= ends || page_ends;
      bytes_q  <= (empty ? '0 : bytes_q) + step;
      void_q   <= void_;
      if (empty) begin
        page_q       <= turn_i.card[63:12] + 52'(beyond);
        m_addr[11:0] <= turn_i.stream ? '0 : low;
      end
      m_stream  <= turn_i.stream;
      m_end     <= ends;
      m_last    <= turn_i.last;
      m_channel <= turn_i.channel;
      m_error   <= error;
      m_moved   <= moved;
      begun_q   <= !ends;
      beyond_q  <= beyond || page_ends;
      low_q     <= low + step[11:0];
      error_q   <= error;
      moved_q   <= moved;
      eaten_q   <= whole ? '0 : eaten_q + step;
    end
    if (!put && failed && error_q == ErrorNone) error_q <= ErrorMemory;
    behind_q <= behind_q + 9'(put && ends) - 9'(answered_i);
    if (rst_i) begin
      behind_q <= '0;
      error_q  <= ErrorNone;
      valid_q  <= 1'b0;
      begun_q  <= 1'b0;
      eaten_q  <= '0;
    end
  end
  assign m_addr[63:12] = page_q;

  logic unused;
  assign unused = ^{turn_i.bytes, turn_i.host};

  `ASSERT(run_in_a_page, !m_valid || m_stream || 14'(m_addr[11:0]) + 14'(m_bytes) <= 14'd4096, "a run crosses a page")

endmodule
`default_nettype wire
