// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "cards.svh"

/// AMD's PCIe bridge on an Alveo card, with AXI bundles as ports: docs/guide/cards.md.
/// NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us.
///
/// Behaviour: accesses of the host and of other devices to the card leave at
/// m_pcie. Requests at s_pcie go to the bus with their address unchanged.
/// Latency: the IP's.
/// Reset: pcie_perst_ni, and every reset of the link; rst_no is then low.
/// Requirements: the reference clock is the slot's, 100 MHz. s_pcie has only whole beats, no narrow bursts.
module bypass_pcie
  import axi_pkg::axi_req_t;
  import axi_pkg::axi_resp_t;
(
    `PCIE_PINS(pcie, 16)

    output axi_req_t       m_pcie_req,
    input  wire axi_resp_t m_pcie_resp,
    // verilator lint_off UNUSEDSIGNAL  // AxCACHE and AxPROT
    input  wire axi_req_t  s_pcie_req,
    // verilator lint_on UNUSEDSIGNAL
    output axi_resp_t      s_pcie_resp,

    /// 250 MHz, of all bundles.
    output logic clk_o,
    output logic rst_no,
    output logic link_up_o
);

  // UG578: the transceivers use O, and the PCIe block uses ODIV2 through a buffer within the IP.
  logic ref_clk, ref_clk_gt;
  IBUFDS_GTE4 #(
      .REFCLK_HROW_CK_SEL(2'b00)
  ) i_ref_clk (
      .I    (pcie_refclk_p_i),
      .IB   (pcie_refclk_n_i),
      .CEB  (1'b0),
      .O    (ref_clk_gt),
      .ODIV2(ref_clk)
  );

  // The bridge's own registers are not used.
  axi_pkg::axi_lite_req_t  own_req;
  // verilator lint_off UNUSEDSIGNAL
  axi_pkg::axi_lite_resp_t own_resp;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    own_req         = '0;
    own_req.b_ready = 1'b1;
    own_req.r_ready = 1'b1;
  end

  // verilator lint_off PINCONNECTEMPTY
  // verilog_lint: waive-start module-port
  bypass_pcie_ip i_ip (
      .sys_clk(ref_clk),
      .sys_clk_gt(ref_clk_gt),
      .sys_rst_n(pcie_perst_ni),
      .cfg_ltssm_state(),
      .user_lnk_up(link_up_o),
      .pci_exp_txp(pcie_tx_p_o),
      .pci_exp_txn(pcie_tx_n_o),
      .pci_exp_rxp(pcie_rx_p_i),
      .pci_exp_rxn(pcie_rx_n_i),
      .axi_aclk(clk_o),
      .axi_aresetn(rst_no),
      .axi_ctl_aresetn(),
      .usr_irq_req(1'b0),
      .usr_irq_ack(),
      .msi_enable(),
      .msi_vector_width(),
      .interrupt_out(),
      `AXI_PORTS(m_axib, m_pcie_req, m_pcie_resp),
      .m_axib_awlock(),
      .m_axib_arlock(),
      `AXI_LITE_PORTS(s_axil, own_req, own_resp),
      .s_axil_awprot('0),
      .s_axil_arprot('0),
      `AXI_LITE_PORTS(s_axib, s_pcie_req, s_pcie_resp),
      .s_axib_awid(s_pcie_req.aw.id),
      .s_axib_awregion('0),
      .s_axib_awlen(s_pcie_req.aw.len),
      .s_axib_awsize(s_pcie_req.aw.size),
      .s_axib_awburst({s_pcie_req.aw.burst}),
      .s_axib_wlast(s_pcie_req.w.last),
      .s_axib_bid(s_pcie_resp.b.id),
      .s_axib_arid(s_pcie_req.ar.id),
      .s_axib_arregion('0),
      .s_axib_arlen(s_pcie_req.ar.len),
      .s_axib_arsize(s_pcie_req.ar.size),
      .s_axib_arburst({s_pcie_req.ar.burst}),
      .s_axib_rid(s_pcie_resp.r.id),
      .s_axib_rlast(s_pcie_resp.r.last)
  );
  // verilog_lint: waive-stop module-port
  // verilator lint_on PINCONNECTEMPTY

endmodule
`default_nettype wire
