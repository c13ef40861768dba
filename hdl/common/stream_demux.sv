// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Routes one stream to one of several outputs.
///
/// Behaviour: the beat is offered only to output select_i. The payload goes to all outputs unchanged: m_payload =
/// s_payload. Cuts no path: valid and payload pass forward, and the selected output's ready passes back.
/// Latency: 0 cycles.
/// Reset: the cell has no state.
/// Requirements: select_i is below Outputs, and is stable while the beat waits.
module stream_demux #(
    /// Outputs; at least 2.
    parameter int unsigned Outputs = 2,
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8,
    localparam int unsigned IndexWidth = $clog2(Outputs)
) (
    // Used only by the assertions.
    input wire clk_i,
    input wire rst_i,

    input wire [IndexWidth-1:0] select_i,

    `STREAM_RECEIVER(s, logic [Width-1:0])

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

  assign m_payload = s_payload;
  assign s_ready   = m_ready[select_i];

  always_comb begin
    m_valid = '0;
    m_valid[select_i] = s_valid;
  end

  `ASSERT(output_exists, !s_valid || 32'(select_i) < Outputs, "select_i names no output")
  `ASSERT_NEXT(select_kept, s_valid && !s_ready, select_i == $past(select_i), "select_i changed while a beat waited")

endmodule
`default_nettype wire
