// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The shell's reset handshake. It resets a core without cutting frames or bursts.
///
/// Behaviour: mod_rstn low for a cycle of axil_clk_i requests a reset. mod_rst_done_o is low from the next
/// cycle until the reset is done. First stop_o holds new frames. After QuietCycles of quiet_i, or after
/// DrainCycles, closed_o isolates the core. One cycle later rst_o resets it, for at least HoldCycles,
/// until settled_i or DrainCycles more. The core stays in reset until memory_ready_i; mod_rst_done_o does
/// not wait for it, because the host would wait, too. A request during a reset is part of it.
/// Latency: mod_rstn low to stop_o: 3 cycles of clk_i and one of axil_clk_i.
/// Reset: none. After configuration of the FPGA, the initial values start a reset.
/// Requirements: the two clocks may have any relation; requests cross as toggles, by sync.
module kv_box_reset #(
    /// Time limit for the core to become idle; at least QuietCycles and HoldCycles.
    parameter int unsigned DrainCycles = 65536,
    /// Longer than any work stays within the core without activity outside.
    parameter int unsigned QuietCycles = 64,
    /// Cycles of reset; at least 2.
    parameter int unsigned HoldCycles  = 16
) (
    input wire clk_i,
    input wire axil_clk_i,

    // In the domain of axil_clk_i.
    input  wire  mod_rstn_i,
    output logic mod_rst_done_o,

    /// Memory is ready. Once high, it stays high.
    input wire memory_ready_i,
    /// No frame and no memory access is in flight, and all outputs are idle.
    input wire quiet_i,
    /// Memory has answered everything.
    input wire settled_i,

    output logic stop_o,
    output logic closed_o,
    output logic rst_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (DrainCycles < HoldCycles || DrainCycles < QuietCycles) begin : gen_check_drain
    $fatal(1, "DrainCycles must be at least HoldCycles and QuietCycles in %m");
  end
  if (QuietCycles < 1) begin : gen_check_quiet
    $fatal(1, "QuietCycles must be at least 1 in %m");
  end
  if (HoldCycles < 2) begin : gen_check_hold
    $fatal(1, "HoldCycles must be at least 2 in %m");
  end

  typedef enum logic [1:0] {
    Run,
    Drain,
    Hold,
    Wait
  } state_e;

  // The request has been served when the two are equal.
  logic asked_q = 1'b0;
  logic served_q = 1'b1;
  logic asked, served;  // as the other clock sees them
  sync i_asked (
      .clk_i,
      .value_i(asked_q),
      .value_o(asked)
  );
  sync #(
      .Initial(1'b1)
  ) i_served (
      .clk_i  (axil_clk_i),
      .value_i(served_q),
      .value_o(served)
  );

  assign mod_rst_done_o = asked_q == served;

  always_ff @(posedge axil_clk_i) if (!mod_rstn_i && mod_rst_done_o) asked_q <= !asked_q;

  localparam int unsigned CountWidth = $clog2(DrainCycles + 1);
  state_e state_q = Hold;
  logic [CountWidth-1:0] count_q = '0;
  logic [$clog2(QuietCycles + 1)-1:0] quiet_q = '0;  // cycles of quiet, up to this one
  logic rst_q = 1'b1;
  logic seen_q = 1'b0;  // of asked, what the reset under way is for
  logic quiet_enough, held_enough;

  assign quiet_enough = quiet_i && quiet_q == ($clog2(QuietCycles + 1))'(QuietCycles - 1);
  assign held_enough  = count_q >= CountWidth'(HoldCycles) && (settled_i || count_q == CountWidth'(DrainCycles));

  always_ff @(posedge clk_i) begin
    rst_q <= state_q == Hold || state_q == Wait;
    if (count_q != CountWidth'(DrainCycles)) count_q <= count_q + 1'b1;
    if (state_q != Drain || !quiet_i) quiet_q <= '0;
    else if (!quiet_enough) quiet_q <= quiet_q + 1'b1;
    case (state_q)
      Run:
      if (asked != served_q) begin
        state_q <= Drain;
        count_q <= '0;
      end
      Drain:
      if (quiet_enough || count_q == CountWidth'(DrainCycles)) begin
        state_q <= Hold;
        count_q <= '0;
        seen_q  <= asked;
      end
      Hold:
      if (held_enough) begin
        state_q  <= Wait;
        served_q <= seen_q;
      end
      default:
      if (asked != served_q) begin
        state_q <= Hold;
        count_q <= '0;
        seen_q  <= asked;
      end else if (memory_ready_i) begin
        state_q <= Run;
      end
    endcase
  end

  assign stop_o   = state_q != Run;
  assign rst_o    = rst_q;
  assign closed_o = state_q == Hold || state_q == Wait || rst_q;

`ifndef SYNTHESIS
  logic rst_i;
  assign rst_i = 1'b0;
  `ASSERT(closed_in_reset, !rst_o || closed_o, "the core is in reset and not cut off")
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
