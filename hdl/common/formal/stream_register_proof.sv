// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Of stream_register: what comes out is what went in, each beat once and in order; it is never stuck.
module stream_register_proof #(
    parameter int unsigned Width = 8
) (
    input wire             clk_i,
    input wire             rst_i,
    input wire             s_valid,
    input wire [Width-1:0] s_payload,
    input wire             m_ready
);

  logic s_ready, m_valid;
  logic [Width-1:0] m_payload;
  stream_register #(.Width(Width)) dut (.*);

  // The beat within, as a listener at the input knows it.
  logic full_q;
  logic [Width-1:0] beat_q;
  always_ff @(posedge clk_i) begin
    if (s_valid && s_ready) beat_q <= s_payload;
    full_q <= (s_valid && s_ready) || (full_q && !m_ready);
    if (rst_i) full_q <= 1'b0;
  end

  `RESET_FIRST

  `ASSERT(valid_is_full, m_valid == full_q, "a beat was lost or made up")
  `ASSERT(beat_is_right, !full_q || m_payload == beat_q, "a beat was changed")
  `ASSERT(never_stuck, s_ready || !m_ready, "refuses a beat though there is room")
  `COVER(streaming, s_valid && m_valid && m_ready && $past(s_valid && m_valid && m_ready))
  `COVER(stalled, m_valid && !m_ready && s_valid)

endmodule
`default_nettype wire
