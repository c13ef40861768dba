// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Counts the remaining send credits.
///
/// Behaviour: starts with Credits. `take_i` uses one, give_i returns one, and both may happen at once. `available_o`
/// and count_o come from registers: a credit given in this cycle can be taken in the next.
/// Latency: 1 cycle.
/// Reset: all credits are available.
/// Requirements: take_i only while available_o is high. At most as many credits are given as were taken.
module credit_counter #(
    /// Credits at the start; at least 1.
    parameter int unsigned Credits = 16,
    localparam int unsigned CountWidth = $clog2(Credits + 1)
) (
    input wire clk_i,
    input wire rst_i,

    input wire take_i,
    input wire give_i,

    output logic                  available_o,
    output logic [CountWidth-1:0] count_o
);

  if (Credits < 1) begin : gen_check_credits
    $fatal(1, "Credits must be at least 1 in %m");
  end

  logic available_q;
  logic [CountWidth-1:0] count_q, count_d;

  assign available_o = available_q;
  assign count_o     = count_q;

  always_comb begin
    count_d = count_q;
    if (take_i && !give_i) count_d = count_q - 1'b1;
    if (!take_i && give_i) count_d = count_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    count_q <= count_d;
    available_q <= count_d != '0;
    if (rst_i) begin
      count_q <= CountWidth'(Credits);
      available_q <= 1'b1;
    end
  end

  `ASSERT(take_available, !take_i || available_q, "took a credit that is not there")
  `ASSERT(give_taken, !give_i || take_i || count_q != CountWidth'(Credits), "gave a credit that was never taken")

endmodule
`default_nettype wire
