// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Merges several streams into one, by beats or by packets.
///
/// Behaviour: offers the beat of one waiting input: the next after the last winner (round robin), or the lowest
/// (Fixed). An offered beat stays until it is taken. With Packets, an input keeps the output until its last beat is
/// taken, even if it pauses. Cuts no path: valid and payload pass forward through the choice, and m_ready passes to the
/// winner's ready. A stream_register behind the arbiter is nearly always right.
/// Latency: 0 cycles. The output is never idle while an eligible input has a beat.
/// Reset: no input holds the output, and input 0 is first in turn.
/// Requirements: s_valid is low during reset. Without Packets s_last is passed on and has no effect.
module stream_arbiter #(
    /// Inputs; at least 2.
    parameter int unsigned Inputs = 2,
    /// Bits of the payload, without last; at least 1. Its multiplexer costs one LUT per bit for up to 4 inputs.
    parameter int unsigned Width = 8,
    /// The lowest input wins, instead of the next in turn. It may starve the others.
    parameter bit Fixed = 1'b0,
    /// Change inputs only after a beat with last.
    parameter bit Packets = 1'b0,
    localparam int unsigned IndexWidth = $clog2(Inputs)
) (
    input wire clk_i,
    input wire rst_i,

    input  wire  [Inputs-1:0]            s_valid,
    output logic [Inputs-1:0]            s_ready,
    input  wire  [Inputs-1:0][Width-1:0] s_payload,
    input  wire  [Inputs-1:0]            s_last,

    `STREAM_SENDER(m, logic [Width-1:0])
    output logic                  m_last,
    /// The input that the beat comes from.
    output logic [IndexWidth-1:0] m_index
);

  if (Inputs < 2) begin : gen_check_inputs
    $fatal(1, "Inputs must be at least 2 in %m");
  end
  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end

  logic hold_q;  // holder_q keeps the output
  logic [IndexWidth-1:0] holder_q, choice;
  logic [Inputs-1:0] later_q;  // inputs after the last winner; they have priority

  always_comb begin
    choice = '0;
    for (int i = int'(Inputs) - 1; i >= 0; i--) if (s_valid[i]) choice = IndexWidth'(i);
    if (!Fixed) begin
      for (int i = int'(Inputs) - 1; i >= 0; i--) begin
        if (s_valid[i] && later_q[i]) choice = IndexWidth'(i);
      end
    end
  end

  assign m_index   = hold_q ? holder_q : choice;
  assign m_valid   = hold_q ? s_valid[holder_q] : |s_valid;
  assign m_payload = s_payload[m_index];
  assign m_last    = s_last[m_index];

  always_comb begin
    s_ready = '0;
    s_ready[m_index] = m_valid && m_ready;
  end

  always_ff @(posedge clk_i) begin
    if (m_valid) begin
      hold_q   <= !m_ready || (Packets && !m_last);
      holder_q <= m_index;
      for (int i = 0; i < int'(Inputs); i++) later_q[i] <= i > int'(m_index);
    end
    if (rst_i) begin
      hold_q  <= 1'b0;
      later_q <= '0;
    end
  end

  `ASSERT(one_ready, (s_ready & (s_ready - 1'b1)) == '0, "two inputs are taken in one cycle")
  `ASSERT(ready_of_valid, (s_ready & ~s_valid) == '0, "an input without a beat is taken")
  `ASSERT(holder_exists, !hold_q || 32'(holder_q) < Inputs, "an input that does not exist has the output")
  `ASSERT(holder_waits, Packets || !hold_q || s_valid[holder_q], "an input withdrew the beat that it offered")
  `ASSERT(works, Packets || m_valid == |s_valid, "idle while an input has a beat")
  `ASSERT_NEXT(index_kept, m_valid && (!m_ready || (Packets && !m_last)), m_index == $past(m_index),
               "the output changed hands before the beat, or the packet, was through")

endmodule
`default_nettype wire
