// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of packet_fifo with DropWhenFull: it accepts a beat in every cycle. The outgoing frames are complete incoming
/// frames, in order, each once. Every other frame is reported as dropped.
/// The proof follows one arbitrary beat, which watch_i selects. The beat must be at its position in the
/// queue.
module packet_fifo_proof #(
    parameter int unsigned Width = 2,
    parameter int unsigned Depth = 4,
    parameter bit Block = 1'b0
) (
    input wire             clk_i,
    input wire             rst_i,
    input wire             s_valid,
    input wire [Width-1:0] s_payload,
    input wire             s_last,
    input wire             s_bad,
    input wire             m_ready,
    input wire             watch_i
);

  logic s_ready, m_valid, m_last, dropped_bad_o, dropped_full_o;
  logic [Width-1:0] m_payload;
  packet_fifo #(
      .Width(Width),
      .Depth(Depth),
      .Block(Block),
      .DropWhenFull(1'b1)
  ) dut (
      .*
  );

  logic take, stored, dropped, ends;
  assign take    = m_valid && m_ready;
  assign stored  = s_valid && !dut.lost;
  assign dropped = dropped_bad_o || dropped_full_o;
  assign ends    = s_valid && s_last;

  // Stored beats of complete frames, and of the incoming frame.
  logic [3:0] whole_q, coming_q, ahead_q, whole_next, coming_next;
  logic watching_q, sure_q;  // sure: the frame of the watched beat is complete
  logic middle_q, lost_beat_q;  // middle: within an outgoing frame; lost_beat: an incoming beat was not stored
  logic [Width:0] beat_q;
  assign coming_next = coming_q + 4'(stored);
  assign whole_next  = whole_q - 4'(take);
  always_ff @(posedge clk_i) begin
    whole_q     <= whole_next + (ends && !dropped ? coming_next : '0);
    coming_q    <= ends ? '0 : coming_next;
    lost_beat_q <= s_valid && !s_last ? lost_beat_q || !stored : lost_beat_q && !ends;
    if (take) middle_q <= !m_last;
    if (watching_q) begin
      if (take) ahead_q <= ahead_q - 1'b1;
      if ((take && ahead_q == '0) || (!sure_q && ends && dropped)) watching_q <= 1'b0;
      if (ends) sure_q <= 1'b1;
    end else if (stored && watch_i && !(ends && dropped)) begin
      watching_q <= 1'b1;
      sure_q     <= ends;
      ahead_q    <= whole_next + coming_q;
      beat_q     <= {s_last, s_payload};
    end
    if (rst_i) begin
      whole_q     <= '0;
      coming_q    <= '0;
      watching_q  <= 1'b0;
      middle_q    <= 1'b0;
      lost_beat_q <= 1'b0;
    end
  end

  `RESET_FIRST

  `ASSERT(takes_always, s_ready, "refuses a beat")
  `ASSERT(only_whole, !m_valid || whole_q != '0, "a beat comes out that belongs to no whole frame")
  `ASSERT_NEXT(whole_comes, whole_q != '0 && !m_valid, m_valid, "a whole frame is kept back")
  `ASSERT(ends_whole, whole_q != '0 || !middle_q, "a frame without its end came out")
  `ASSERT(one_reason, !(dropped_bad_o && dropped_full_o), "two reasons for one frame")
  `ASSERT(drops_at_ends, !dropped || ends, "a frame was dropped before its end")
  `ASSERT(bad_is_dropped, !(ends && s_bad) || dropped_bad_o, "a bad frame was kept")
  `ASSERT(part_is_dropped, !(ends && (lost_beat_q || !stored)) || dropped, "a frame with a hole was kept")
  `ASSERT(good_is_kept, !(ends && !s_bad && !lost_beat_q && stored) || !dropped, "a good frame was dropped")
  `ASSERT(watched_is_right, !(watching_q && ahead_q == '0 && m_valid) || (sure_q && {m_last, m_payload} == beat_q),
          "a beat was changed, or overtook another")
  `COVER(dropped_full, dropped_full_o && lost_beat_q)
  `COVER(kept_after_drop, watching_q && take && ahead_q == '0 && m_last && middle_q)

endmodule
`default_nettype wire
