// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Interrupt moderation: thresholds and timers.
///
/// Behaviour: a ring's time runs while events wait (waiting_i). It expires at the timer's value, until none waits.
/// Latency: time counts in steps of 8 cycles, so a timer may expire up to 8 cycles late.
/// Reset: all times are 0. The registers' reset values set thresholds and timers.
/// Requirements: none.
module dma_moderation
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // the other registers
    input wire setting_t setting_i,
    // verilator lint_on UNUSEDSIGNAL

    input wire ring_t    threshold_ring_i,
    output logic   [7:0] threshold_o,

    input  wire each_t waiting_i,
    output each_t      expired_o
);

  logic [15:0] limit, now, later;
  ring_t ring_q;
  each_t expired_q;
  assign later = waiting_i[ring_q] ? now + 1'b1 : '0;
  dma_ring_word #(
      .Word (ModerationWord[3:0]),
      .Width(8)
  ) i_thresholds (
      .*,
      .read_i (1'b0),
      .ring_i (threshold_ring_i),
      .value_o(threshold_o)
  );
  dma_ring_word #(
      .Word (ModerationWord[3:0]),
      .Low  (16),
      .Width(16)
  ) i_limits (
      .*,
      .read_i (1'b0),
      .ring_i (ring_q),
      .value_o(limit)
  );
  lutram #(
      .Width(16),
      .Depth(Rings)
  ) i_times (
      .*,
      .write_i        (now != '1 || !waiting_i[ring_q]),
      .write_address_i(ring_q),
      .write_data_i   (later),
      .read_address_i (ring_q),
      .read_data_o    (now)
  );
  always_ff @(posedge clk_i) begin
    ring_q            <= ring_q + 1'b1;
    expired_q[ring_q] <= waiting_i[ring_q] && limit != '0 && now >= limit;
    if (rst_i) begin
      ring_q    <= '0;
      expired_q <= '0;
    end
  end
  assign expired_o = expired_q & waiting_i;

endmodule
`default_nettype wire
