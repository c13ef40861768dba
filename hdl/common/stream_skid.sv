// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A register in a stream that cuts every path, at full throughput.
///
/// Behaviour: two beats of room: the output register, and one aside for the beat that arrives while ready, which is a
/// register too, still says yes. Cuts valid, payload and ready. It costs a multiplexer as wide as the payload: where that is
/// wide, a stream_fifo of depth 32 cuts the same paths for less.
/// Latency: 1 cycle.
/// Reset: empties it; the payloads keep their values.
/// Requirements: in reset s_valid is low.
module stream_skid #(
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

  logic valid_q, aside_valid_q;
  logic [Width-1:0] payload_q, aside_q;

  logic move;
  assign move      = !valid_q || m_ready;
  assign s_ready   = !aside_valid_q;
  assign m_valid   = valid_q;
  assign m_payload = payload_q;

  always_ff @(posedge clk_i) begin
    // aside_q follows the input as long as it is free: its enable depends on a register only.
    if (!aside_valid_q) aside_q <= s_payload;
    if (move) begin
      valid_q <= aside_valid_q || s_valid;
      payload_q <= aside_valid_q ? aside_q : s_payload;
      aside_valid_q <= 1'b0;
    end else if (s_valid) begin
      aside_valid_q <= 1'b1;
    end
    if (rst_i) begin
      valid_q <= 1'b0;
      aside_valid_q <= 1'b0;
    end
  end

  `ASSERT(aside_after_output, !aside_valid_q || valid_q, "a beat is aside while the output is free")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")

endmodule
`default_nettype wire
