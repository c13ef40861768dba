// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Synchronises a reset from another clock, or an asynchronous reset, with clk_i.
///
/// Behaviour: rst_o rises with rst_i, asynchronously, and falls with an edge of clk_i.
/// Latency: rst_o falls Stages cycles after rst_i, or one more if rst_i falls close to an edge.
/// Reset: none. `rst_o` is high after configuration of the FPGA.
/// Requirements: rst_i has no glitches, so it must come from a flip-flop, with at most an inverter between. Registers
/// that clear synchronously with rst_o may see its rising edge in different cycles. So they must not rely on the first
/// cycle of the reset.
/// Clock crossing: reset_sync.xdc takes the paths to the presets out of timing analysis.
module reset_sync #(
    /// Flip-flops in the chain; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire clk_i,

    input  wire  rst_i,
    output logic rst_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Stages < 2) begin : gen_check_stages
    $fatal(1, "Stages must be at least 2 in %m");
  end

  (* ASYNC_REG = "TRUE" *)
  logic [Stages-1:0] reset_sync_q = '1;
  always_ff @(posedge clk_i or posedge rst_i) begin
    if (rst_i) reset_sync_q <= '1;
    else reset_sync_q <= {reset_sync_q[Stages-2:0], 1'b0};
  end

  assign rst_o = reset_sync_q[Stages-1];

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
