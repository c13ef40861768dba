// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A stream from s_clk_i to m_clk_i by a request and acknowledge handshake. One beat is in flight at a time.
///
/// Behaviour: the payload waits in a register of s_clk_i. One toggle signals it to the other side, another confirms
/// that it was taken. `m_payload` is that register, so it is stable until m_ready. For one beat per cycle use
/// cdc_fifo.
/// Latency: from s_valid to m_valid 1 cycle of s_clk_i and Stages of m_clk_i; from m_ready to s_ready the reverse.
/// Paths: none from input to output, except from the resets to s_ready and m_valid.
/// Reset: either reset empties both sides, see cdc_reset. A beat in flight is lost, and s_ready and m_valid are low
/// until the reset is over. After configuration of the FPGA the cell is empty, and does not need a reset.
/// Requirements: s_valid is low during reset.
/// Clock crossing: toggles by sync. `cdc_bus.xdc` allows the payload 1 cycle of m_clk_i; m_valid needs Stages cycles.
module cdc_bus #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width  = 8,
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire s_clk_i,
    input wire s_rst_i,
    `STREAM_RECEIVER(s, logic [Width-1:0])
    `STREAM_SENDER(m, logic [Width-1:0])
    input wire m_clk_i,
    input wire m_rst_i
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end

  logic s_rst, s_clear, m_rst, m_clear;
  cdc_reset #(
      .Stages(Stages)
  ) i_reset (
      .s_clk_i,
      .m_clk_i,
      .s_rst_i,
      .s_rst_o  (s_rst),
      .s_clear_o(s_clear),
      .m_rst_i,
      .m_rst_o  (m_rst),
      .m_clear_o(m_clear)
  );

  // A beat is in flight while asked_q and taken_q differ.
  logic asked_q = 1'b0;
  logic taken_q = 1'b0;
  logic asked, taken;
  logic [Width-1:0] payload_q;

  sync #(
      .Stages(Stages)
  ) i_asked (
      .clk_i  (m_clk_i),
      .value_i(asked_q),
      .value_o(asked)
  );
  sync #(
      .Stages(Stages)
  ) i_taken (
      .clk_i  (s_clk_i),
      .value_i(taken_q),
      .value_o(taken)
  );

  assign s_ready   = asked_q == taken && !s_rst;
  assign m_valid   = asked != taken_q && !m_rst;
  assign m_payload = payload_q;

  always_ff @(posedge s_clk_i) begin
    if (s_valid && s_ready) begin
      asked_q   <= !asked_q;
      payload_q <= s_payload;
    end
    if (s_clear) asked_q <= 1'b0;
  end
  always_ff @(posedge m_clk_i) begin
    if (m_valid && m_ready) taken_q <= asked;
    if (m_clear) taken_q <= 1'b0;
  end

`ifndef SYNTHESIS
  if (1) begin : gen_checks
    wire clk_i = m_clk_i;
    wire rst_i = m_rst;
    `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
    `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")
  end
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
