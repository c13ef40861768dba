// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Ports of the UltraScale+ primitive with this name (UG974), for linters only. Vivado has its own cell.
///
/// Behaviour: O follows I.
/// Latency: none.
/// Reset: none.
module BUFG (
    input  wire  I,
    output logic O
);

  assign O = I;

endmodule
`default_nettype wire
