// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Decides when a ring's tail is written: at once if the NIC keeps up, otherwise in batches at the NIC's pace.
///
/// Behaviour: the tail is written if it is a batch or more ahead of the last one, and fewer than `credits` writes
/// are unanswered. A fetched beat answers one write, or all if it has the last descriptor offered. A tail that has
/// differed for `timer` cycles is written anyway. While a tail waits for the bus, it advances to the newest value.
/// Latency: from want_i to m_valid 1 cycle; 0 if the tail was announced (grows_i).
/// Reset: the NIC has no descriptors.
/// Requirements: want_i never decreases. Set grows_i only if batches are of one and tails are not aligned.
module bypass_doorbell
  import bypass_pkg::*;
#(
    /// 2^n descriptors in the ring; at least 3.
    parameter int unsigned Bits = 9
) (
    input wire clk_i,
    input wire rst_i,

    input wire run_i,
    /// The ring restarts: the NIC has no descriptors.
    input wire begin_i,
    input wire bell_settings_t settings_i,

    input wire index_t want_i,
    /// want_i may increase by one in the next cycle.
    input wire grows_i,
    /// The NIC fetched a beat of this ring's descriptors: this group.
    input wire fetched_i,
    input wire [Bits-3:0] group_i,

    output logic   m_valid,
    input  wire    m_ready,
    output index_t m_payload,

    /// The tail that was written last.
    output index_t told_o,
    output gave_t  gave_o
);

  localparam index_t Mask = index_t'((1 << Bits) - 1);

  index_t told_q, below, aligned, ahead;
  logic [3:0] unanswered_q, credits;
  logic [15:0] wait_q;  // what is left of the timer
  logic expired_q, ring_q, rings, reaches, differs, waits;
  assign below = ~('1 << settings_i.align);
  assign aligned = want_i & ~below;
  assign ahead = (aligned - told_q) & Mask;
  assign differs = ahead != '0;
  assign credits = settings_i.credits == '0 ? 4'd1 : settings_i.credits;
  assign rings = run_i && (((grows_i || (differs && ahead >= {4'd0, settings_i.batch})) && unanswered_q < credits)
      || (differs && expired_q));
  assign reaches = group_i == (Bits - 2)'((told_q - 1'b1) >> 2);

  assign told_o = told_q;
  assign gave_o = '{valid: m_valid && m_ready, count: ahead};
  assign waits = differs && !gave_o.valid;
  assign m_valid = ring_q && differs;
  assign m_payload = aligned;

  always_ff @(posedge clk_i) begin
    // An announced tail that did not come is not written.
    ring_q <= (m_valid || rings) && !gave_o.valid;
    if (gave_o.valid) told_q <= aligned;
    if (gave_o.valid) begin
      if (unanswered_q != '1 && !fetched_i) unanswered_q <= unanswered_q + 1'b1;
    end else if (fetched_i && unanswered_q != '0) begin
      unanswered_q <= reaches ? '0 : unanswered_q - 1'b1;
    end
    if (rst_i || begin_i || !waits) wait_q <= settings_i.timer;
    else if (wait_q != '0) wait_q <= wait_q - 1'b1;
    expired_q <= waits && (expired_q || (settings_i.timer != '0 && wait_q == '0));
    if (rst_i || begin_i) begin
      ring_q       <= 1'b0;
      told_q       <= '0;
      unanswered_q <= '0;
      expired_q    <= 1'b0;
    end
  end

  `ASSERT(tells_something, !gave_o.valid || differs, "a tail is written that has not moved")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready && !begin_i, m_valid, "a tail was withdrawn before it was taken")

endmodule
`default_nettype wire
