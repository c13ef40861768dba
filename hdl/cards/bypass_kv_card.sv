// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "cards.svh"

/// A top for an Alveo U55C: a node of the key-value store behind a commodity NIC, with its table in HBM.
/// See docs/guide/cards.md. NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us.
///
/// Behaviour: bypass_node with Kv, AMD's PCIe bridge and AMD's HBM, all in the bridge's clock.
/// Latency: see bypass_node and the IPs.
/// Reset: pcie_perst_ni, and every reset of the link. HBM keeps its contents, so software must clear the table.
/// Requirements: the pins of hdl/cards/shell/au55c.xdc and au55c_kv.xdc; the bridge's clock has 250 MHz (kv_box_hbm).
module bypass_kv_card #(
    /// Parameters of bypass_core and kv_core.
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 8,
    parameter int unsigned TxRingBits = 9,
    parameter int unsigned PackBits   = 9,
    parameter int unsigned Channels   = 2
) (
    `PCIE_PINS(pcie, 16)

    /// 100 MHz, beside the HBM.
    input  wire  hbm_refclk_p_i,
    input  wire  hbm_refclk_n_i,
    /// 0: the card stays on.
    output logic hbm_cattrip_o
);

  assign hbm_cattrip_o = 1'b0;

  logic clk, rst_n, unused_link;
  axi_pkg::axi_req_t in_req, out_req;
  axi_pkg::axi_resp_t in_resp, out_resp;
  bypass_pcie i_pcie (
      .*,
      .m_pcie_req (in_req),
      .m_pcie_resp(in_resp),
      .s_pcie_req (out_req),
      .s_pcie_resp(out_resp),
      .clk_o      (clk),
      .rst_no     (rst_n),
      .link_up_o  (unused_link)
  );

  logic hbm_ref_pin, hbm_ref_clk, memory_ready;
  kv_core_pkg::memory_req_t  [Channels-1:0] memory_req;
  kv_core_pkg::memory_resp_t [Channels-1:0] memory_resp;
  IBUFDS i_hbm_pin (
      .I (hbm_refclk_p_i),
      .IB(hbm_refclk_n_i),
      .O (hbm_ref_pin)
  );
  BUFG i_hbm_clk (
      .I(hbm_ref_pin),
      .O(hbm_ref_clk)
  );
  kv_box_hbm #(
      .Channels(Channels)
  ) i_hbm (
      .clk_i     (clk),
      .ref_clk_i (hbm_ref_clk),
      .ready_o   (memory_ready),
      .s_axi_req (memory_req),
      .s_axi_resp(memory_resp)
  );

  // No function is present except the node's own.
  // verilator lint_off UNUSEDSIGNAL
  bypass_pkg::bypass_axis_t [1:0] unused, none;
  // verilator lint_on UNUSEDSIGNAL
  logic [1:0] unused_valid, unused_ready;
  logic unused_rst;
  assign none = '0;
  // verilog_lint: waive-start module-port
  bypass_node #(
      .Kv        (1'b1),
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits),
      .Channels  (Channels)
  ) i_node (
      .axi_clk_i(clk),
      .axi_rst_ni(rst_n),
      .s_pcie_req(in_req),
      .s_pcie_resp(in_resp),
      .m_pcie_req(out_req),
      .m_pcie_resp(out_resp),
      `AXIS_PORTS(m_rx, unused_valid[0], 1'b0, unused[0]),
      `AXIS_PORTS(s_tx, 1'b0, unused_ready[0], none[0]),
      `AXIS_PORTS(m_head, unused_valid[1], 1'b0, unused[1]),
      `AXIS_PORTS(s_verdict, 1'b0, unused_ready[1], none[1]),
      .m_memory_req(memory_req),
      .m_memory_resp(memory_resp),
      .memory_ready_i(memory_ready),
      .rst_o(unused_rst),
      .clk_i(clk)
  );
  // verilog_lint: waive-stop module-port

endmodule
`default_nettype wire
