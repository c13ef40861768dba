// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

// verilator lint_off UNUSEDSIGNAL
/// Ports of AMD's DMA/Bridge Subsystem for PCI Express (xdma 4.1) in AXI Bridge mode, as
/// hdl/cards/shell/build_bridge.tcl configures it: an endpoint with 16 lanes, 512 bits and a slave
/// bridge. For linters and simulators; Vivado uses the IP itself. The names follow PG194 ("AXI
/// Slave Interface", "AXI Master Interface"), with the suffix b of this IP, and public designs.
/// Behaviour: the link never comes up.
/// Latency: none.
/// Reset: none.
module bypass_pcie_ip (
    // The master bridge: accesses from PCIe to the card.
    `AXI_MANAGER(m_axib, 64, 512, 4)
    output logic m_axib_awlock,
    output logic m_axib_arlock,

    // The bridge's own registers.
    `AXI_LITE_SUBORDINATE(s_axil, 32, 32)
    input wire [2:0] s_axil_awprot,
    input wire [2:0] s_axil_arprot,

    // The slave bridge: accesses from the card to PCIe. It has neither AxCACHE nor AxPROT.
    `AXI_LITE_SUBORDINATE(s_axib, 64, 512)
    input  wire  [3:0] s_axib_awid,
    input  wire  [3:0] s_axib_awregion,
    input  wire  [7:0] s_axib_awlen,
    input  wire  [2:0] s_axib_awsize,
    input  wire  [1:0] s_axib_awburst,
    input  wire        s_axib_wlast,
    output logic [3:0] s_axib_bid,
    input  wire  [3:0] s_axib_arid,
    input  wire  [3:0] s_axib_arregion,
    input  wire  [7:0] s_axib_arlen,
    input  wire  [2:0] s_axib_arsize,
    input  wire  [1:0] s_axib_arburst,
    output logic [3:0] s_axib_rid,
    output logic       s_axib_rlast,

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
    output logic       interrupt_out
);

  assign {cfg_ltssm_state, user_lnk_up, pci_exp_txp, pci_exp_txn} = '0;
  assign {axi_aclk, axi_aresetn, axi_ctl_aresetn} = '0;
  assign {usr_irq_ack, msi_enable, msi_vector_width, interrupt_out} = '0;

  `AXI_TYPES(out, 64, 512, 4)
  `AXI_LITE_TYPES(own, 32, 32)
  out_req_t master, slave;
  out_resp_t answered, none;
  own_req_t  own;
  own_resp_t nothing;
  assign {master, none, nothing} = '0;
  assign {m_axib_awlock, m_axib_arlock, s_axib_bid, s_axib_rid, s_axib_rlast} = '0;
  `AXI_TO_FLAT(m_axib, master, answered)
  `AXI_LITE_FROM_FLAT(s_axil, own, nothing)
  `AXI_LITE_FROM_FLAT(s_axib, slave, none)
  assign slave.aw.id = s_axib_awid;

endmodule
// verilator lint_on UNUSEDSIGNAL
`default_nettype wire
