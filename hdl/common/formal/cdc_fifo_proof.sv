// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of cdc_fifo for any two clocks: beats come out in order, at most once, and only if they were sent. Without
/// resets every beat arrives.
/// The payload is the beat's number, so the proof can tell which beat came
/// out.
module cdc_fifo_proof #(
    parameter int unsigned Depth  = 2,
    /// Resets of either side may come at any time.
    parameter bit          Resets = 1'b0
) (
    input wire s_clk_i,
    input wire m_clk_i,
    input wire s_rst_i,
    input wire m_rst_i,
    input wire s_valid,
    input wire m_ready
);

  localparam int unsigned Width = 4;
  logic s_ready, m_valid;
  logic [Width-1:0] m_payload;
  logic [Width-1:0] sent_q = '0;  // beats sent; fewer than 2^Width in a trace this short
  logic [Width-1:0] next_q = '0;  // the lowest number that may come out next
  cdc_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) dut (
      .*,
      .s_rst_i  (s_rst_i && Resets),
      .m_rst_i  (m_rst_i && Resets),
      .s_payload(sent_q)
  );

  always_ff @(posedge s_clk_i) if (s_valid && s_ready && !(s_rst_i && Resets)) sent_q <= sent_q + 1'b1;

  logic take;
  assign take = m_valid && m_ready && !(m_rst_i && Resets);
  always_ff @(posedge m_clk_i) if (take) next_q <= m_payload + 1'b1;

  if (1) begin : gen_m
    wire clk_i = m_clk_i;
    wire rst_i = 1'b0;
    `ASSERT(was_sent, !take || m_payload < sent_q, "a beat was made up")
    `ASSERT(in_order, !take || m_payload >= next_q, "a beat came out twice, or after a later one")
    if (!Resets) begin : gen_all
      `ASSERT(none_lost, !take || m_payload == next_q, "a beat was lost")
      `COVER(second, take && next_q == 1)
    end else begin : gen_reset
      `COVER(cleared, dut.m_clear && !m_rst_i && next_q != 0)
    end
  end
  if (1) begin : gen_s
    wire clk_i = s_clk_i;
    wire rst_i = 1'b0;
    `COVER(full, !s_ready && sent_q == Depth)
  end

endmodule
`default_nettype wire
