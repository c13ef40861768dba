// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Resets both sides of a clock crossing when either side is reset.
///
/// Behaviour: a side stops (s_rst_o, m_rst_o) during its own reset, and when it sees that the other side has stopped.
/// It clears the values that the other side reads (s_clear_o, m_clear_o) only while the other side is certain to be
/// stopped. It continues when its own reset is over and the other side's cleared values have arrived. So no side ever
/// acts on a value that a reset has changed.
/// Latency: 0 from a reset to its side's output, Stages + 1 of the other side's cycles to the other output. A reset
/// lasts at least 2 * Stages + 4 cycles of the slower clock.
/// Paths: each side's reset to its s_rst_o or m_rst_o.
/// Reset: the resets are inputs. After configuration of the FPGA no reset is in progress.
/// Requirements: both clocks run. Otherwise a reset does not end.
/// Clock crossing: by sync.
module cdc_reset #(
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire s_clk_i,
    input wire m_clk_i,

    input  wire  s_rst_i,
    /// The side is stopped: it neither accepts nor sends beats.
    output logic s_rst_o,
    /// The side clears the registers that the other side reads. High only while s_rst_o is high.
    output logic s_clear_o,

    input  wire  m_rst_i,
    output logic m_rst_o,
    output logic m_clear_o
);

  logic s_hold, m_hold, s_told, m_told;

  cdc_reset_side #(
      .Stages(Stages)
  ) i_s (
      .clk_i  (s_clk_i),
      .rst_i  (s_rst_i),
      .hold_o (s_hold),
      .told_o (s_told),
      .hold_i (m_hold),
      .told_i (m_told),
      .rst_o  (s_rst_o),
      .clear_o(s_clear_o)
  );
  cdc_reset_side #(
      .Stages(Stages)
  ) i_m (
      .clk_i  (m_clk_i),
      .rst_i  (m_rst_i),
      .hold_o (m_hold),
      .told_o (m_told),
      .hold_i (s_hold),
      .told_i (s_told),
      .rst_o  (m_rst_o),
      .clear_o(m_clear_o)
  );

endmodule
`default_nettype wire
