// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "cards.svh"

/// The bypass core on an Alveo card, with PCIe pins on one side and streams for a user's function on the other.
/// See docs/guide/cards.md. NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us.
///
/// Behaviour: bypass_node with AMD's PCIe bridge. The user instantiates a function
/// beside this module, in the same clock. Without Crossing, the user connects
/// clk_o, the bridge's clock, to clk_i. With Crossing, clk_i may be any clock.
/// Latency: see bypass_node and the IP.
/// Reset: pcie_perst_ni, and every reset of the link. rst_o resets the function.
/// Requirements: as bypass_node. The reference clock is the slot's, 100 MHz.
module bypass_card #(
    /// Of bypass_node.
    parameter bit          Functions  = 1'b0,
    parameter bit          Crossing   = 1'b0,
    parameter bit          Dma        = 1'b0,
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 8,
    parameter int unsigned TxRingBits = 9,
    parameter int unsigned PackBits   = 9
) (
    `PCIE_PINS(pcie, 16)

    // Streams between the core and the function: see bypass_core.
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)
    `AXIS_TRANSMITTER(m_head, 512, 48)
    `AXIS_RECEIVER(s_verdict, 512, 48)

    output logic clk_o,
    output logic link_up_o,
    output logic rst_o,
    input  wire  clk_i
);

  logic rst_n;
  axi_pkg::axi_req_t in_req, out_req;
  axi_pkg::axi_resp_t in_resp, out_resp;
  bypass_pcie i_pcie (
      .*,
      .m_pcie_req (in_req),
      .m_pcie_resp(in_resp),
      .s_pcie_req (out_req),
      .s_pcie_resp(out_resp),
      .rst_no     (rst_n)
  );
  // verilator lint_off PINCONNECTEMPTY
  bypass_node #(
      .Functions (Functions),
      .Crossing  (Crossing),
      .Dma       (Dma),
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits)
  ) i_node (
      .*,
      .axi_clk_i     (clk_o),
      .axi_rst_ni    (rst_n),
      .s_pcie_req    (in_req),
      .s_pcie_resp   (in_resp),
      .m_pcie_req    (out_req),
      .m_pcie_resp   (out_resp),
      .m_memory_req  (),
      .m_memory_resp ('0),
      .memory_ready_i(1'b1)
  );
  // verilator lint_on PINCONNECTEMPTY

endmodule
`default_nettype wire
