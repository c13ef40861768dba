// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Several streams to one: a beat out is a beat of every input.
///
/// Behaviour: valid when all inputs are; they are taken together. The payloads go past side by side, input 0 in the lowest
/// bits. Cuts nothing: valid and payload pass forward; an input's ready depends on m_ready and on all valids (an input may
/// wait for the others, so no sender may wait for ready).
/// Latency: 0 cycles.
/// Reset: it has no state.
/// Requirements: none.
module stream_join #(
    /// Inputs; at least 2.
    parameter int unsigned Inputs = 2,
    /// Bits of each input's payload; at least 1.
    parameter int unsigned Width  = 8
) (
    input  wire  [Inputs-1:0]            s_valid,
    output logic [Inputs-1:0]            s_ready,
    input  wire  [Inputs-1:0][Width-1:0] s_payload,

    output logic                         m_valid,
    input  wire                          m_ready,
    output logic [Inputs-1:0][Width-1:0] m_payload
);

  if (Inputs < 2) begin : gen_check_inputs
    $fatal(1, "Inputs must be at least 2 in %m");
  end
  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end

  assign m_valid   = &s_valid;
  assign m_payload = s_payload;
  assign s_ready   = {Inputs{m_valid && m_ready}};

endmodule
`default_nettype wire
