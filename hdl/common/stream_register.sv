// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A register in a stream, at full throughput.
///
/// Behaviour: takes a beat whenever it is empty or being emptied. Cuts valid and payload; ready passes through
/// (m_ready to s_ready).
/// Latency: 1 cycle.
/// Reset: empties it; the payload keeps its value.
/// Requirements: in reset s_valid is low.
module stream_register #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8
) (
    input wire clk_i,
    input wire rst_i,

    input  wire              s_valid,
    output logic             s_ready,
    input  wire  [Width-1:0] s_payload,

    output logic             m_valid,
    input  wire              m_ready,
    output logic [Width-1:0] m_payload
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end

  logic valid_q;
  logic [Width-1:0] payload_q;

  assign s_ready   = !valid_q || m_ready;
  assign m_valid   = valid_q;
  assign m_payload = payload_q;

  always_ff @(posedge clk_i) begin
    if (s_ready) valid_q <= s_valid;
    if (s_valid && s_ready) payload_q <= s_payload;
    if (rst_i) valid_q <= 1'b0;
  end

  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")

endmodule
`default_nettype wire
