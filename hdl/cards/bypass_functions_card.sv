// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "cards.svh"

/// A top for an Alveo U50 or U55C: the bypass core with network functions, which software selects by registers.
/// See docs/guide/cards.md. NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us.
///
/// Behaviour: bypass_card with Functions, in the bridge's clock. bypass_example
/// stands for a user's function; receive.stream = 3 sends frames to it.
/// Latency: see bypass_node and the IP.
/// Reset: pcie_perst_ni, and every reset of the link. Frames are dropped until software has chosen a function.
/// Requirements: the pins of hdl/cards/shell/au50.xdc or au55c.xdc.
module bypass_functions_card
  import bypass_pkg::bypass_axis_t;
#(
    /// Of bypass_node.
    parameter bit          Dma        = 1'b0,
    /// Of bypass_core.
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 8,
    parameter int unsigned TxRingBits = 9,
    parameter int unsigned PackBits   = 9
) (
    `PCIE_PINS(pcie, 16)

    /// 0: the card stays on.
    output logic hbm_cattrip_o
);

  assign hbm_cattrip_o = 1'b0;

  logic clk, rst;
  logic rx_valid, rx_ready, tx_valid, tx_ready, unused_valid, unused_ready, unused_link;
  // verilator lint_off UNUSEDSIGNAL
  bypass_axis_t rx, tx, unused_head, no_verdict;
  // verilator lint_on UNUSEDSIGNAL
  assign no_verdict = '0;
  // verilog_lint: waive-start module-port
  bypass_card #(
      .Functions (1'b1),
      .Dma       (Dma),
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits)
  ) i_card (
      .*,
      `AXIS_PORTS(m_rx, rx_valid, rx_ready, rx),
      `AXIS_PORTS(s_tx, tx_valid, tx_ready, tx),
      `AXIS_PORTS(m_head, unused_valid, 1'b1, unused_head),
      `AXIS_PORTS(s_verdict, 1'b0, unused_ready, no_verdict),
      .clk_o(clk),
      .clk_i(clk),
      .link_up_o(unused_link),
      .rst_o(rst)
  );
  // verilog_lint: waive-stop module-port

  bypass_example i_function (
      .clk_i    (clk),
      .rst_i    (rst),
      .s_valid  (rx_valid),
      .s_ready  (rx_ready),
      .s_payload(rx),
      .m_valid  (tx_valid),
      .m_ready  (tx_ready),
      .m_payload(tx)
  );

endmodule
`default_nettype wire
