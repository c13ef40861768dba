// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// A queue in a stream: stream_fifo_level without the signal for the fill level.
///
/// Behaviour, latency, reset and requirements are the same as in stream_fifo_level.
module stream_fifo #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8,
    /// Beats that it holds; a power of two, at least 2.
    parameter int unsigned Depth = 32,
    /// Use block RAM instead of LUTs.
    parameter bit Block = Depth > 64,
    /// With Block: use UltraRAM.
    parameter bit Ultra = 1'b0
) (
    input wire clk_i,
    `STREAM_RECEIVER(s, logic [Width-1:0])
    `STREAM_SENDER(m, logic [Width-1:0])
    input wire rst_i
);

  logic unused_almost_full;
  stream_fifo_level #(
      .Width(Width),
      .Depth(Depth),
      .Block(Block),
      .Ultra(Ultra)
  ) i_fifo (
      .*,
      .almost_full_o(unused_almost_full)
  );

endmodule
`default_nettype wire
