// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// The bypass core on an Alveo card, but for the function behind it: PCIe pins on one side, streams on the other. docs/cards.md.
/// NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us.
///
/// Behaviour: bypass_bridge at AMD's PCIe bridge. The function is instantiated beside this module, in the same clock. Without Crossing that is
/// clk_o, the bridge's own, which the user feeds back to clk_i; with it any clock.
/// Latency: see bypass_bridge, and the IP.
/// Reset: pcie_perst_ni, and whatever resets the link; rst_o is the function's.
/// Requirements: those of bypass_bridge. The reference clock is the slot's, 100 MHz.
module bypass_card
  import bypass_pkg::*;
#(
    /// clk_i is not clk_o.
    parameter bit          Crossing   = 1'b0,
    /// Of bypass_core.
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 8,
    parameter int unsigned TxRingBits = 9,
    parameter int unsigned PackBits   = 9
) (
    input  wire         pcie_refclk_p_i,
    input  wire         pcie_refclk_n_i,
    input  wire         pcie_perst_ni,
    input  wire  [15:0] pcie_rx_p_i,
    input  wire  [15:0] pcie_rx_n_i,
    output logic [15:0] pcie_tx_p_o,
    output logic [15:0] pcie_tx_n_o,

    // To and from the function: see bypass_core.
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)
    `AXIS_TRANSMITTER(m_head, 512, 48)
    `AXIS_RECEIVER(s_verdict, 512, 48)

    output logic clk_o,
    output logic link_up_o,
    output logic rst_o,
    input  wire  clk_i
);

  // UG578: the transceivers take O, the PCIe block ODIV2 by a buffer within the IP.
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

  logic axi_rst_n;
  axi_pkg::axi_req_t in_req, out_req;
  axi_pkg::axi_resp_t in_resp, out_resp;
  logic [1:0] in_aw_burst, in_ar_burst, out_b_resp, out_r_resp;
  logic unused_aw_lock, unused_ar_lock;
  assign in_req.aw.burst = axi_pkg::burst_e'(in_aw_burst);
  assign in_req.ar.burst = axi_pkg::burst_e'(in_ar_burst);
  assign out_resp.b.resp = axi_pkg::resp_e'(out_b_resp);
  assign out_resp.r.resp = axi_pkg::resp_e'(out_r_resp);

  logic unused_outputs;
  logic [5:0] ltssm_state;
  logic ctl_rst_n, irq_ack, msi_enable, interrupt;
  logic [2:0] msi_width;
  logic axil_awready, axil_wready, axil_bvalid, axil_arready, axil_rvalid;
  logic [1:0] axil_bresp, axil_rresp;
  logic [31:0] axil_rdata;
  assign unused_outputs = ^{ltssm_state, ctl_rst_n, irq_ack, msi_enable, interrupt, msi_width, axil_awready,
                            axil_wready,
                            axil_bvalid, axil_arready, axil_rvalid, axil_bresp, axil_rresp, axil_rdata};

  bypass_pcie_ip i_pcie (
      .sys_clk         (ref_clk),
      .sys_clk_gt      (ref_clk_gt),
      .sys_rst_n       (pcie_perst_ni),
      .cfg_ltssm_state (ltssm_state),
      .user_lnk_up     (link_up_o),
      .pci_exp_txp     (pcie_tx_p_o),
      .pci_exp_txn     (pcie_tx_n_o),
      .pci_exp_rxp     (pcie_rx_p_i),
      .pci_exp_rxn     (pcie_rx_n_i),
      .axi_aclk        (clk_o),
      .axi_aresetn     (axi_rst_n),
      .axi_ctl_aresetn (ctl_rst_n),
      .usr_irq_req     (1'b0),
      .usr_irq_ack     (irq_ack),
      .msi_enable      (msi_enable),
      .msi_vector_width(msi_width),
      .interrupt_out   (interrupt),

      .m_axib_awid   (in_req.aw.id),
      .m_axib_awaddr (in_req.aw.addr),
      .m_axib_awlen  (in_req.aw.len),
      .m_axib_awsize (in_req.aw.size),
      .m_axib_awburst(in_aw_burst),
      .m_axib_awprot (in_req.aw.prot),
      .m_axib_awvalid(in_req.aw_valid),
      .m_axib_awready(in_resp.aw_ready),
      .m_axib_awlock (unused_aw_lock),
      .m_axib_awcache(in_req.aw.cache),
      .m_axib_wdata  (in_req.w.data),
      .m_axib_wstrb  (in_req.w.strb),
      .m_axib_wlast  (in_req.w.last),
      .m_axib_wvalid (in_req.w_valid),
      .m_axib_wready (in_resp.w_ready),
      .m_axib_bid    (in_resp.b.id),
      .m_axib_bresp  ({in_resp.b.resp}),
      .m_axib_bvalid (in_resp.b_valid),
      .m_axib_bready (in_req.b_ready),
      .m_axib_arid   (in_req.ar.id),
      .m_axib_araddr (in_req.ar.addr),
      .m_axib_arlen  (in_req.ar.len),
      .m_axib_arsize (in_req.ar.size),
      .m_axib_arburst(in_ar_burst),
      .m_axib_arprot (in_req.ar.prot),
      .m_axib_arvalid(in_req.ar_valid),
      .m_axib_arready(in_resp.ar_ready),
      .m_axib_arlock (unused_ar_lock),
      .m_axib_arcache(in_req.ar.cache),
      .m_axib_rid    (in_resp.r.id),
      .m_axib_rdata  (in_resp.r.data),
      .m_axib_rresp  ({in_resp.r.resp}),
      .m_axib_rlast  (in_resp.r.last),
      .m_axib_rvalid (in_resp.r_valid),
      .m_axib_rready (in_req.r_ready),

      // Nobody looks at the bridge's own registers.
      .s_axil_awaddr ('0),
      .s_axil_awprot ('0),
      .s_axil_awvalid(1'b0),
      .s_axil_awready(axil_awready),
      .s_axil_wdata  ('0),
      .s_axil_wstrb  ('0),
      .s_axil_wvalid (1'b0),
      .s_axil_wready (axil_wready),
      .s_axil_bvalid (axil_bvalid),
      .s_axil_bresp  (axil_bresp),
      .s_axil_bready (1'b1),
      .s_axil_araddr ('0),
      .s_axil_arprot ('0),
      .s_axil_arvalid(1'b0),
      .s_axil_arready(axil_arready),
      .s_axil_rdata  (axil_rdata),
      .s_axil_rresp  (axil_rresp),
      .s_axil_rvalid (axil_rvalid),
      .s_axil_rready (1'b1),

      .s_axib_awid    (out_req.aw.id),
      .s_axib_awaddr  (out_req.aw.addr),
      .s_axib_awregion('0),
      .s_axib_awlen   (out_req.aw.len),
      .s_axib_awsize  (out_req.aw.size),
      .s_axib_awburst ({out_req.aw.burst}),
      .s_axib_awvalid (out_req.aw_valid),
      .s_axib_awready (out_resp.aw_ready),
      .s_axib_wdata   (out_req.w.data),
      .s_axib_wstrb   (out_req.w.strb),
      .s_axib_wlast   (out_req.w.last),
      .s_axib_wvalid  (out_req.w_valid),
      .s_axib_wready  (out_resp.w_ready),
      .s_axib_bid     (out_resp.b.id),
      .s_axib_bresp   (out_b_resp),
      .s_axib_bvalid  (out_resp.b_valid),
      .s_axib_bready  (out_req.b_ready),
      .s_axib_arid    (out_req.ar.id),
      .s_axib_araddr  (out_req.ar.addr),
      .s_axib_arregion('0),
      .s_axib_arlen   (out_req.ar.len),
      .s_axib_arsize  (out_req.ar.size),
      .s_axib_arburst ({out_req.ar.burst}),
      .s_axib_arvalid (out_req.ar_valid),
      .s_axib_arready (out_resp.ar_ready),
      .s_axib_rid     (out_resp.r.id),
      .s_axib_rdata   (out_resp.r.data),
      .s_axib_rresp   (out_r_resp),
      .s_axib_rlast   (out_resp.r.last),
      .s_axib_rvalid  (out_resp.r_valid),
      .s_axib_rready  (out_req.r_ready)
  );

  bypass_bridge #(
      .Crossing  (Crossing),
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits)
  ) i_bridge (
      .*,
      .axi_clk_i (clk_o),
      .axi_rst_ni(axi_rst_n),
      .s_axi_req (in_req),
      .s_axi_resp(in_resp),
      .m_axi_req (out_req),
      .m_axi_resp(out_resp)
  );

endmodule
`default_nettype wire
