// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Synchronises signals from another clock with clk_i, each bit separately.
///
/// Behaviour: value_o follows value_i through Stages flip-flops. Bits that change together may arrive in different cycles.
/// Latency: Stages cycles, or one less or more if value_i changes close to an edge.
/// Reset: none. The flip-flops start with Initial after configuration of the FPGA.
/// Requirements: each bit of value_i comes directly from a flip-flop, and is stable for at least 1.5 cycles of clk_i.
/// Clock crossing: sync.xdc takes the path to the first flip-flop out of timing analysis.
module sync #(
    /// Bits; at least 1.
    parameter int unsigned Width = 1,
    /// Flip-flops in the chain; at least 2.
    parameter int unsigned Stages = 2,
    /// The initial value of every bit.
    parameter bit Initial = 1'b0
) (
    input wire clk_i,

    input  wire  [Width-1:0] value_i,
    output logic [Width-1:0] value_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Stages < 2) begin : gen_check_stages
    $fatal(1, "Stages must be at least 2 in %m");
  end

  (* ASYNC_REG = "TRUE" *)
  logic [Stages-1:0][Width-1:0] value_sync_q = {(Stages * Width) {Initial}};
  always_ff @(posedge clk_i) value_sync_q <= {value_sync_q[Stages-2:0], value_i};

  assign value_o = value_sync_q[Stages-1];

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
