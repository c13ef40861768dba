// SPDX-License-Identifier: Apache-2.0
`default_nettype none

// verilator lint_off UNUSEDSIGNAL
/// The ports of AMD's DMA/Bridge Subsystem for PCI Express (xdma 4.1) in AXI Bridge mode as hdl/cards/shell/build_bridge.tcl configures it: an endpoint, 16 lanes, 512
/// bits, with a slave bridge. For linters and simulators; Vivado uses the IP itself and does not read this file. Names are those of PG194 ("AXI Slave
/// Interface", "AXI Master Interface", there with the suffix b for this IP) and of public designs that instantiate it so.
///
/// Behaviour: a link that never comes up.
/// Latency: none.
/// Reset: none.
module bypass_pcie_ip (
    input  wire         sys_clk,
    input  wire         sys_clk_gt,
    input  wire         sys_rst_n,
    output logic [ 5:0] cfg_ltssm_state,
    output logic        user_lnk_up,
    output logic [15:0] pci_exp_txp,
    output logic [15:0] pci_exp_txn,
    input  wire  [15:0] pci_exp_rxp,
    input  wire  [15:0] pci_exp_rxn,

    output logic       axi_aclk,
    output logic       axi_aresetn,
    output logic       axi_ctl_aresetn,
    input  wire  [0:0] usr_irq_req,
    output logic [0:0] usr_irq_ack,
    output logic       msi_enable,
    output logic [2:0] msi_vector_width,
    output logic       interrupt_out,

    // The master bridge: what comes in by PCIe.
    output logic [  3:0] m_axib_awid,
    output logic [ 63:0] m_axib_awaddr,
    output logic [  7:0] m_axib_awlen,
    output logic [  2:0] m_axib_awsize,
    output logic [  1:0] m_axib_awburst,
    output logic [  2:0] m_axib_awprot,
    output logic         m_axib_awvalid,
    input  wire          m_axib_awready,
    output logic         m_axib_awlock,
    output logic [  3:0] m_axib_awcache,
    output logic [511:0] m_axib_wdata,
    output logic [ 63:0] m_axib_wstrb,
    output logic         m_axib_wlast,
    output logic         m_axib_wvalid,
    input  wire          m_axib_wready,
    input  wire  [  3:0] m_axib_bid,
    input  wire  [  1:0] m_axib_bresp,
    input  wire          m_axib_bvalid,
    output logic         m_axib_bready,
    output logic [  3:0] m_axib_arid,
    output logic [ 63:0] m_axib_araddr,
    output logic [  7:0] m_axib_arlen,
    output logic [  2:0] m_axib_arsize,
    output logic [  1:0] m_axib_arburst,
    output logic [  2:0] m_axib_arprot,
    output logic         m_axib_arvalid,
    input  wire          m_axib_arready,
    output logic         m_axib_arlock,
    output logic [  3:0] m_axib_arcache,
    input  wire  [  3:0] m_axib_rid,
    input  wire  [511:0] m_axib_rdata,
    input  wire  [  1:0] m_axib_rresp,
    input  wire          m_axib_rlast,
    input  wire          m_axib_rvalid,
    output logic         m_axib_rready,

    // The bridge's own registers.
    input  wire  [31:0] s_axil_awaddr,
    input  wire  [ 2:0] s_axil_awprot,
    input  wire         s_axil_awvalid,
    output logic        s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire  [ 3:0] s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output logic        s_axil_wready,
    output logic        s_axil_bvalid,
    output logic [ 1:0] s_axil_bresp,
    input  wire         s_axil_bready,
    input  wire  [31:0] s_axil_araddr,
    input  wire  [ 2:0] s_axil_arprot,
    input  wire         s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  wire         s_axil_rready,

    // The slave bridge: what goes out by PCIe.
    input  wire  [  3:0] s_axib_awid,
    input  wire  [ 63:0] s_axib_awaddr,
    input  wire  [  3:0] s_axib_awregion,
    input  wire  [  7:0] s_axib_awlen,
    input  wire  [  2:0] s_axib_awsize,
    input  wire  [  1:0] s_axib_awburst,
    input  wire          s_axib_awvalid,
    output logic         s_axib_awready,
    input  wire  [511:0] s_axib_wdata,
    input  wire  [ 63:0] s_axib_wstrb,
    input  wire          s_axib_wlast,
    input  wire          s_axib_wvalid,
    output logic         s_axib_wready,
    output logic [  3:0] s_axib_bid,
    output logic [  1:0] s_axib_bresp,
    output logic         s_axib_bvalid,
    input  wire          s_axib_bready,
    input  wire  [  3:0] s_axib_arid,
    input  wire  [ 63:0] s_axib_araddr,
    input  wire  [  3:0] s_axib_arregion,
    input  wire  [  7:0] s_axib_arlen,
    input  wire  [  2:0] s_axib_arsize,
    input  wire  [  1:0] s_axib_arburst,
    input  wire          s_axib_arvalid,
    output logic         s_axib_arready,
    output logic [  3:0] s_axib_rid,
    output logic [511:0] s_axib_rdata,
    output logic [  1:0] s_axib_rresp,
    output logic         s_axib_rlast,
    output logic         s_axib_rvalid,
    input  wire          s_axib_rready
);

  assign {cfg_ltssm_state, user_lnk_up, pci_exp_txp, pci_exp_txn} = '0;
  assign {axi_aclk, axi_aresetn, axi_ctl_aresetn} = '0;
  assign {usr_irq_ack, msi_enable, msi_vector_width, interrupt_out} = '0;
  assign {m_axib_awid, m_axib_awaddr, m_axib_awlen, m_axib_awsize, m_axib_awburst, m_axib_awprot} = '0;
  assign {m_axib_awvalid, m_axib_awlock, m_axib_awcache} = '0;
  assign {m_axib_wdata, m_axib_wstrb, m_axib_wlast, m_axib_wvalid, m_axib_bready} = '0;
  assign {m_axib_arid, m_axib_araddr, m_axib_arlen, m_axib_arsize, m_axib_arburst, m_axib_arprot} = '0;
  assign {m_axib_arvalid, m_axib_arlock, m_axib_arcache, m_axib_rready} = '0;
  assign {s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_bresp, s_axil_arready} = '0;
  assign {s_axil_rdata, s_axil_rresp, s_axil_rvalid} = '0;
  assign {s_axib_awready, s_axib_wready, s_axib_bid, s_axib_bresp, s_axib_bvalid, s_axib_arready} = '0;
  assign {s_axib_rid, s_axib_rdata, s_axib_rresp, s_axib_rlast, s_axib_rvalid} = '0;

endmodule
// verilator lint_on UNUSEDSIGNAL
`default_nettype wire
