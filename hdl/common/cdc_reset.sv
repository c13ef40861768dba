// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Resets both sides of a clock crossing when either side is reset.
///
/// Behaviour: a side stops (s_rst_o, m_rst_o) with its own reset, or when it learns that the other side has stopped. It
/// clears the values that the other side sees (s_clear_o, m_clear_o) while the other side has certainly stopped. It
/// continues when its own reset is over and the other side's cleared values have arrived. So no side ever acts on a
/// value that jumps because of a reset.
/// Latency: own reset to output none, to the other side's output Stages + 1 of its cycles. A reset ends after at least 2 Stages + 4 cycles of the
/// slower clock.
/// Paths: each side's reset to its s_rst_o or m_rst_o.
/// Reset: the resets are inputs. After configuration of the FPGA no reset is in progress.
/// Requirements: both clocks run, else a reset does not end.
/// Clock crossing: by sync.
module cdc_reset #(
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire s_clk_i,
    input wire m_clk_i,

    input  wire  s_rst_i,
    /// The side takes and gives nothing.
    output logic s_rst_o,
    /// The side clears the registers that the other side reads. Only with s_rst_o.
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
