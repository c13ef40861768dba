// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Passes a stream, and stops it only between frames.
///
/// Behaviour: with stop_i, the present frame continues and the next one waits. A first beat
/// that is already offered stays until it is taken, and its frame continues. With closed_i
/// all beats stop, because the receiver is about to be reset. The rest of a stopped frame
/// is dropped, also after closed_i falls, so the output always starts with a first beat.
/// Latency: none.
/// Combinational paths: valid and ready pass through; between_o depends on the inputs.
/// Reset: none. After configuration of the FPGA it starts between frames.
/// Other blocks' resets do not affect it, because it must see the frame's end.
module kv_box_inlet (
    input wire clk_i,

    input wire stop_i,
    input wire closed_i,

    input  wire  s_valid,
    output logic s_ready,
    input  wire  s_last,

    output logic m_valid,
    input  wire  m_ready,

    /// No frame is in progress, and no beat is offered.
    output logic between_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  logic middle_q = 1'b0;
  logic lost_q = 1'b0;
  logic offered_q = 1'b0;  // a beat that was not taken
  logic open, taken;

  assign open      = !closed_i && !lost_q && (middle_q || offered_q || !stop_i);
  assign m_valid   = s_valid && open;
  assign s_ready   = lost_q || (m_ready && open);
  assign taken     = s_valid && s_ready;
  assign between_o = !middle_q && !offered_q;

  always_ff @(posedge clk_i) begin
    offered_q <= m_valid && !m_ready;
    if (taken) middle_q <= !s_last;
    if (taken && s_last) lost_q <= 1'b0;
    else if (closed_i && middle_q) lost_q <= 1'b1;
  end

`ifndef SYNTHESIS
  logic rst_i;
  assign rst_i = 1'b0;
  `ASSERT(kept, !offered_q || m_valid || closed_i, "an offered beat was withdrawn")
  `ASSERT(lost_in_frame, !lost_q || middle_q, "throws away what belongs to no frame")
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
