// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Starts, stops and resets single rings, and all rings when the function is reset.
///
/// Behaviour:
/// - Software runs a ring. A reset stops it until none of its work is in flight (drained_i). All blocks then hold
///   until older writes have left (posted_i), and the ring is cleared. So no older post leaves after life_o.ignore.
/// - A reset of the function resets all rings, drops posts (stop_o), and does not wait for reads: the stopped data part
///   discards them (life_o.forget). Registers are restored (life_o.restart); flr_done_o then stays until flr_i falls.
/// Latency: a ring's reset takes 12 cycles after its last answer; a function's reset takes 540.
/// Reset: clears all rings, one a cycle.
/// Requirements: a ring that may not start work drains. flr_i stays high until flr_done_o is high.
module dma_life
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // the other registers
    input  wire setting_t setting_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire           flr_i,
    output logic          flr_done_o,

    /// For each ring: no work is in flight; all its turns were completed. For all rings: no read is being offered.
    input wire each_t drained_i,
    input wire each_t at_rest_i,
    input wire        asking_i,
    /// All posts have left.
    input wire        posted_i,

    output each_t run_o,
    output life_t life_o,
    output logic  stop_o,
    input  wire   filling_i
);

  typedef enum logic [2:0] {
    Live,
    Hold,
    Clear,
    FunctionDrain,
    FunctionHold,
    ClearAll,
    Fill,
    Done
  } step_e;
  step_e step_q, step_d;
  // The outputs of the current step, in registers because their paths are long.
  logic hold_q, clear_q, forget_q, restart_q, stop_q;
  each_t run_q, resetting_q, may;
  ring_t ring_q, next;
  logic [2:0] held_q;  // cycles
  logic function_q;  // it is a reset of the function
  logic written, runs;
  assign runs = setting_i.data[RingControlRunLow] && !setting_i.data[RingControlResetLow]
                && !resetting_q[setting_i.ring];
  assign written = setting_i.ring_valid && setting_i.place == RingControlWord[3:0];
  assign may = resetting_q & drained_i;
  always_comb begin
    next = '0;
    for (int i = int'(Rings) - 1; i >= 0; i--) if (may[i]) next = ring_t'(i);
  end

  assign run_o = run_q;
  assign life_o = '{
          ignore: resetting_q,
          hold: hold_q,
          clear: clear_q,
          clear_ring: ring_q,
          forget: forget_q,
          restart: restart_q
      };
  assign stop_o = stop_q;
  assign flr_done_o = step_q == Done;

  always_comb begin
    step_d = step_q;
    unique case (step_q)
      Live: begin
        if (flr_i) step_d = FunctionDrain;
        else if (may != '0) step_d = Hold;
      end
      Hold: begin
        if (!drained_i[ring_q]) step_d = Live;  // it had begun something, just before
        else if (held_q == '1 && posted_i) step_d = Clear;
      end
      Clear:         step_d = Live;
      FunctionDrain: if (at_rest_i == '1 && !asking_i) step_d = FunctionHold;
      FunctionHold: begin
        if (at_rest_i != '1 || asking_i) step_d = FunctionDrain;
        else if (held_q == '1 && posted_i) step_d = ClearAll;
      end
      ClearAll:      if (ring_q == '1) step_d = function_q ? Fill : Live;
      Fill:          if (!filling_i) step_d = Done;
      Done:          if (!flr_i) step_d = Live;
    endcase
    if (rst_i) step_d = ClearAll;
  end

  always_ff @(posedge clk_i) begin
    step_q    <= step_d;
    hold_q    <= step_d inside {Hold, Clear, FunctionHold, ClearAll};
    clear_q   <= step_d inside {Clear, ClearAll};
    forget_q  <= step_d == FunctionHold;
    restart_q <= step_d == ClearAll && function_q && !rst_i;
    stop_q    <= step_d inside {FunctionDrain, FunctionHold};
    if (written) begin
      if (setting_i.data[RingControlResetLow]) resetting_q[setting_i.ring] <= 1'b1;
      run_q[setting_i.ring] <= runs;
    end
    held_q <= step_q == Hold || step_q == FunctionHold ? held_q + 3'(held_q != '1) : '0;
    unique case (step_q)
      Live: begin
        ring_q <= next;
        if (flr_i) begin
          run_q       <= '0;
          resetting_q <= '1;
          function_q  <= 1'b1;
        end
      end
      Clear:        resetting_q[ring_q] <= 1'b0;
      FunctionHold: ring_q <= '0;
      ClearAll: begin
        ring_q              <= ring_q + 1'b1;
        resetting_q[ring_q] <= 1'b0;
      end
      Done: begin
        function_q <= 1'b0;
        run_q      <= '0;
      end
      default:      ;
    endcase
    if (rst_i) begin
      ring_q      <= '0;
      run_q       <= '0;
      resetting_q <= '1;
      held_q      <= '0;
      function_q  <= 1'b0;
    end
  end

  `ASSERT(drained_when_cleared, step_q != Clear || drained_i[ring_q], "a ring is cleared that is at work")
  `ASSERT(stopped_in_reset, (run_q & resetting_q) == '0, "a ring runs under reset")

endmodule
`default_nettype wire
