// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A small network function as an example: it returns every frame to its sender.
/// docs/guide/bypass-own-function.md explains it line by line.
///
/// Behaviour: swaps a frame's Ethernet addresses. Frames to a group are dropped: a group cannot be a source.
/// Latency: 1 cycle; a beat a cycle.
/// Paths: s_ready from m_ready.
/// Reset: discards frames in progress.
/// Requirements: only those of the contract.
module bypass_example
  import bypass_pkg::bypass_axis_t;
(
    input wire clk_i,
    input wire rst_i,

    input  wire               s_valid,
    output logic              s_ready,
    input  wire bypass_axis_t s_payload,

    output logic         m_valid,
    input  wire          m_ready,
    output bypass_axis_t m_payload
);

  logic first_q, drop, drop_q, free;
  bypass_axis_t answer;
  assign drop    = first_q ? s_payload.data[0] : drop_q;  // the bit that marks a group: IEEE 802.3, 3.2.3
  assign s_ready = drop || free;
  always_comb begin
    answer = s_payload;
    if (first_q) answer.data[95:0] = {s_payload.data[47:0], s_payload.data[95:48]};
  end

  always_ff @(posedge clk_i) begin
    if (s_valid && s_ready) begin
      first_q <= s_payload.last;
      drop_q  <= drop;
    end
    if (rst_i) first_q <= 1'b1;
  end

  stream_register #(
      .Width($bits(bypass_axis_t))
  ) i_out (
      .*,
      .s_valid  (s_valid && !drop),
      .s_ready  (free),
      .s_payload(answer)
  );

endmodule
`default_nettype wire
