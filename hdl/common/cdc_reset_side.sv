// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// One side of cdc_reset: a four-phase handshake with the other side.
/// Behaviour: after a reset hold_o stays high until told_i reports that the other side has stopped and cleared. While
/// hold_i is high, this side stops and clears, and reports this by told_o. A reset that comes while the previous
/// handshake is ending waits for its end.
/// Latency, Paths, Requirements: see cdc_reset.
/// Reset: rst_i is an input. After configuration of the FPGA no reset is in progress.
/// Clock crossing: by sync.
module cdc_reset_side #(
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire clk_i,
    input wire rst_i,

    // Outputs of flip-flops, for the other side.
    output logic hold_o,
    output logic told_o,
    // Inputs from the other side's clock.
    input  wire  hold_i,
    input  wire  told_i,

    output logic rst_o,
    output logic clear_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  logic hold_q = 1'b0;
  logic pending_q = 1'b0;  // a reset that waits for the end of the previous handshake
  logic told_q = 1'b0;
  logic known_q = 1'b0;
  logic hears, known, asks;

  sync #(
      .Width (2),
      .Stages(Stages)
  ) i_sync (
      .*,
      .value_i({hold_i, told_i}),
      .value_o({hears, known})
  );

  assign asks    = rst_i || pending_q;
  assign hold_o  = hold_q;
  assign told_o  = told_q;
  assign rst_o   = asks || hold_q || hears;
  assign clear_o = hears || (hold_q && known);

  always_ff @(posedge clk_i) begin
    known_q <= known;
    told_q  <= hears;
    if (hold_q) begin
      // Values cleared in the first cycle of `known` leave one cycle before hold_q changes, so they arrive before
      // it.
      hold_q <= rst_i || !known_q;
    end else begin
      hold_q    <= asks && !known && !known_q;
      pending_q <= asks && (known || known_q);
    end
  end

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
