// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Ports of the UltraScale+ primitive with this name (UG974), for linters only. Vivado has its own cell.
///
/// Behaviour: O follows I.
/// Latency: none.
/// Reset: none.
module IBUFDS (
    input  wire  I,
    input  wire  IB,
    output logic O
);

  assign O = I && !IB;

endmodule
`default_nettype wire
