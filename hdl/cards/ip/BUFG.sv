// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The ports of the UltraScale+ primitive of that name (UG974), for linters; Vivado has its own.
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
