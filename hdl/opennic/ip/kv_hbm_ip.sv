// SPDX-License-Identifier: Apache-2.0
`default_nettype none

// Ports of one of the eight equal AXI3 ports that are in use, to be listed before other ports; and their idle outputs.
`define KV_HBM_IP_PORT(NUMBER) \
    input wire AXI_``NUMBER``_ACLK, \
    input wire AXI_``NUMBER``_ARESET_N, \
    input wire AXI_``NUMBER``_ARVALID, \
    input wire [33:0] AXI_``NUMBER``_ARADDR, \
    input wire [3:0] AXI_``NUMBER``_ARLEN, \
    input wire [2:0] AXI_``NUMBER``_ARSIZE, \
    input wire [1:0] AXI_``NUMBER``_ARBURST, \
    input wire [5:0] AXI_``NUMBER``_ARID, \
    input wire AXI_``NUMBER``_RREADY, \
    input wire AXI_``NUMBER``_AWVALID, \
    input wire [33:0] AXI_``NUMBER``_AWADDR, \
    input wire [3:0] AXI_``NUMBER``_AWLEN, \
    input wire [2:0] AXI_``NUMBER``_AWSIZE, \
    input wire [1:0] AXI_``NUMBER``_AWBURST, \
    input wire [5:0] AXI_``NUMBER``_AWID, \
    input wire AXI_``NUMBER``_WVALID, \
    input wire [255:0] AXI_``NUMBER``_WDATA, \
    input wire [31:0] AXI_``NUMBER``_WDATA_PARITY, \
    input wire [31:0] AXI_``NUMBER``_WSTRB, \
    input wire AXI_``NUMBER``_WLAST, \
    input wire AXI_``NUMBER``_BREADY, \
    output logic AXI_``NUMBER``_ARREADY, \
    output logic AXI_``NUMBER``_RVALID, \
    output logic [255:0] AXI_``NUMBER``_RDATA, \
    output logic [31:0] AXI_``NUMBER``_RDATA_PARITY, \
    output logic [1:0] AXI_``NUMBER``_RRESP, \
    output logic AXI_``NUMBER``_RLAST, \
    output logic [5:0] AXI_``NUMBER``_RID, \
    output logic AXI_``NUMBER``_AWREADY, \
    output logic AXI_``NUMBER``_WREADY, \
    output logic AXI_``NUMBER``_BVALID, \
    output logic [1:0] AXI_``NUMBER``_BRESP, \
    output logic [5:0] AXI_``NUMBER``_BID,

`define KV_HBM_IP_SILENT(NUMBER) \
  assign AXI_``NUMBER``_ARREADY = '0; \
  assign AXI_``NUMBER``_RVALID = '0; \
  assign AXI_``NUMBER``_RDATA = '0; \
  assign AXI_``NUMBER``_RDATA_PARITY = '0; \
  assign AXI_``NUMBER``_RRESP = '0; \
  assign AXI_``NUMBER``_RLAST = '0; \
  assign AXI_``NUMBER``_RID = '0; \
  assign AXI_``NUMBER``_AWREADY = '0; \
  assign AXI_``NUMBER``_WREADY = '0; \
  assign AXI_``NUMBER``_BVALID = '0; \
  assign AXI_``NUMBER``_BRESP = '0; \
  assign AXI_``NUMBER``_BID = '0;

// verilator lint_off UNUSEDSIGNAL
/// Ports of AMD's HBM IP as hdl/opennic/shell/build_hbm.tcl configures it, for
/// linters and simulators. Vivado uses the IP itself and does not read this file.
///
/// Behaviour: the memory never becomes ready.
/// Latency: none.
/// Reset: none.
module kv_hbm_ip (
    `KV_HBM_IP_PORT(00)
    `KV_HBM_IP_PORT(04)
    `KV_HBM_IP_PORT(08)
    `KV_HBM_IP_PORT(12)
    `KV_HBM_IP_PORT(16)
    `KV_HBM_IP_PORT(20)
    `KV_HBM_IP_PORT(24)
    `KV_HBM_IP_PORT(28)
    input wire HBM_REF_CLK_0,
    input wire HBM_REF_CLK_1,
    input wire APB_0_PCLK,
    input wire APB_1_PCLK,
    input wire APB_0_PRESET_N,
    input wire APB_1_PRESET_N,
    output logic apb_complete_0,
    output logic apb_complete_1,
    output logic DRAM_0_STAT_CATTRIP,
    output logic DRAM_1_STAT_CATTRIP,
    output logic [6:0] DRAM_0_STAT_TEMP,
    output logic [6:0] DRAM_1_STAT_TEMP
);

  assign apb_complete_0 = '0;
  assign apb_complete_1 = '0;
  assign DRAM_0_STAT_CATTRIP = '0;
  assign DRAM_1_STAT_CATTRIP = '0;
  assign DRAM_0_STAT_TEMP = '0;
  assign DRAM_1_STAT_TEMP = '0;

  `KV_HBM_IP_SILENT(00)
  `KV_HBM_IP_SILENT(04)
  `KV_HBM_IP_SILENT(08)
  `KV_HBM_IP_SILENT(12)
  `KV_HBM_IP_SILENT(16)
  `KV_HBM_IP_SILENT(20)
  `KV_HBM_IP_SILENT(24)
  `KV_HBM_IP_SILENT(28)

endmodule
// verilator lint_on UNUSEDSIGNAL
`undef KV_HBM_IP_PORT
`undef KV_HBM_IP_SILENT
`default_nettype wire
