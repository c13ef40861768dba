// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Ports of the UltraScale+ primitive with this name (UG974), for linters only. Vivado has its own cell.
///
/// Behaviour: O follows I, ODIV2 too.
/// Latency: none.
/// Reset: none.
module IBUFDS_GTE4 #(
    parameter logic [1:0] REFCLK_HROW_CK_SEL = 2'b00
) (
    input  wire  I,
    input  wire  IB,
    input  wire  CEB,
    output logic O,
    output logic ODIV2
);

  assign O     = I && !IB && !CEB;
  assign ODIV2 = O && REFCLK_HROW_CK_SEL == 2'b00;

endmodule
`default_nettype wire
