// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// One stream to several: each output gets every beat, each at its own pace.
///
/// Behaviour: a beat is offered to all outputs at once and leaves the input when the last of them has taken it; an output
/// that has it already sees no valid. The payload goes past, to all outputs: m_payload = s_payload. Cuts nothing: valid and
/// payload pass forward, ready passes back.
/// Latency: 0 cycles.
/// Reset: forgets who has taken the beat at the input.
/// Requirements: in reset s_valid is low.
module stream_fork #(
    /// Outputs; at least 2.
    parameter int unsigned Outputs = 2,
    /// Bits of the payload; at least 1.
    parameter int unsigned Width   = 8
) (
    input wire clk_i,
    input wire rst_i,

    input  wire              s_valid,
    output logic             s_ready,
    input  wire  [Width-1:0] s_payload,

    output logic [Outputs-1:0] m_valid,
    input  wire  [Outputs-1:0] m_ready,
    output logic [  Width-1:0] m_payload
);

  if (Outputs < 2) begin : gen_check_outputs
    $fatal(1, "Outputs must be at least 2 in %m");
  end
  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end

  logic [Outputs-1:0] done_q;

  assign m_payload = s_payload;
  assign m_valid   = s_valid ? ~done_q : '0;
  assign s_ready   = &(done_q | m_ready);

  always_ff @(posedge clk_i) begin
    if (s_valid) done_q <= s_ready ? '0 : done_q | m_ready;
    if (rst_i) done_q <= '0;
  end

  `ASSERT(never_all_done, done_q != '1, "all outputs have the beat, and it is still at the input")
  `ASSERT_NEXT(valid_kept, (m_valid & ~m_ready) != '0, ($past(m_valid & ~m_ready) & ~m_valid) == '0,
               "a beat was withdrawn before it was taken")

endmodule
`default_nettype wire
