// SPDX-License-Identifier: Apache-2.0
`default_nettype none

// verilator lint_off UNUSEDSIGNAL
/// The ports of AMD's HBM IP as hdl/opennic/shell/build_hbm.tcl configures it, for linters and simulators; Vivado uses the IP
/// itself and does not read this file.
///
/// Behaviour: a memory that never becomes ready.
/// Latency: none.
/// Reset: none.
module kv_hbm_ip (
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
    output logic [6:0] DRAM_1_STAT_TEMP,
    input wire AXI_00_ACLK,
    input wire AXI_00_ARESET_N,
    input wire AXI_00_ARVALID,
    input wire [33:0] AXI_00_ARADDR,
    input wire [3:0] AXI_00_ARLEN,
    input wire [2:0] AXI_00_ARSIZE,
    input wire [1:0] AXI_00_ARBURST,
    input wire [5:0] AXI_00_ARID,
    input wire AXI_00_RREADY,
    input wire AXI_00_AWVALID,
    input wire [33:0] AXI_00_AWADDR,
    input wire [3:0] AXI_00_AWLEN,
    input wire [2:0] AXI_00_AWSIZE,
    input wire [1:0] AXI_00_AWBURST,
    input wire [5:0] AXI_00_AWID,
    input wire AXI_00_WVALID,
    input wire [255:0] AXI_00_WDATA,
    input wire [31:0] AXI_00_WDATA_PARITY,
    input wire [31:0] AXI_00_WSTRB,
    input wire AXI_00_WLAST,
    input wire AXI_00_BREADY,
    output logic AXI_00_ARREADY,
    output logic AXI_00_RVALID,
    output logic [255:0] AXI_00_RDATA,
    output logic [31:0] AXI_00_RDATA_PARITY,
    output logic [1:0] AXI_00_RRESP,
    output logic AXI_00_RLAST,
    output logic [5:0] AXI_00_RID,
    output logic AXI_00_AWREADY,
    output logic AXI_00_WREADY,
    output logic AXI_00_BVALID,
    output logic [1:0] AXI_00_BRESP,
    output logic [5:0] AXI_00_BID,
    input wire AXI_04_ACLK,
    input wire AXI_04_ARESET_N,
    input wire AXI_04_ARVALID,
    input wire [33:0] AXI_04_ARADDR,
    input wire [3:0] AXI_04_ARLEN,
    input wire [2:0] AXI_04_ARSIZE,
    input wire [1:0] AXI_04_ARBURST,
    input wire [5:0] AXI_04_ARID,
    input wire AXI_04_RREADY,
    input wire AXI_04_AWVALID,
    input wire [33:0] AXI_04_AWADDR,
    input wire [3:0] AXI_04_AWLEN,
    input wire [2:0] AXI_04_AWSIZE,
    input wire [1:0] AXI_04_AWBURST,
    input wire [5:0] AXI_04_AWID,
    input wire AXI_04_WVALID,
    input wire [255:0] AXI_04_WDATA,
    input wire [31:0] AXI_04_WDATA_PARITY,
    input wire [31:0] AXI_04_WSTRB,
    input wire AXI_04_WLAST,
    input wire AXI_04_BREADY,
    output logic AXI_04_ARREADY,
    output logic AXI_04_RVALID,
    output logic [255:0] AXI_04_RDATA,
    output logic [31:0] AXI_04_RDATA_PARITY,
    output logic [1:0] AXI_04_RRESP,
    output logic AXI_04_RLAST,
    output logic [5:0] AXI_04_RID,
    output logic AXI_04_AWREADY,
    output logic AXI_04_WREADY,
    output logic AXI_04_BVALID,
    output logic [1:0] AXI_04_BRESP,
    output logic [5:0] AXI_04_BID,
    input wire AXI_08_ACLK,
    input wire AXI_08_ARESET_N,
    input wire AXI_08_ARVALID,
    input wire [33:0] AXI_08_ARADDR,
    input wire [3:0] AXI_08_ARLEN,
    input wire [2:0] AXI_08_ARSIZE,
    input wire [1:0] AXI_08_ARBURST,
    input wire [5:0] AXI_08_ARID,
    input wire AXI_08_RREADY,
    input wire AXI_08_AWVALID,
    input wire [33:0] AXI_08_AWADDR,
    input wire [3:0] AXI_08_AWLEN,
    input wire [2:0] AXI_08_AWSIZE,
    input wire [1:0] AXI_08_AWBURST,
    input wire [5:0] AXI_08_AWID,
    input wire AXI_08_WVALID,
    input wire [255:0] AXI_08_WDATA,
    input wire [31:0] AXI_08_WDATA_PARITY,
    input wire [31:0] AXI_08_WSTRB,
    input wire AXI_08_WLAST,
    input wire AXI_08_BREADY,
    output logic AXI_08_ARREADY,
    output logic AXI_08_RVALID,
    output logic [255:0] AXI_08_RDATA,
    output logic [31:0] AXI_08_RDATA_PARITY,
    output logic [1:0] AXI_08_RRESP,
    output logic AXI_08_RLAST,
    output logic [5:0] AXI_08_RID,
    output logic AXI_08_AWREADY,
    output logic AXI_08_WREADY,
    output logic AXI_08_BVALID,
    output logic [1:0] AXI_08_BRESP,
    output logic [5:0] AXI_08_BID,
    input wire AXI_12_ACLK,
    input wire AXI_12_ARESET_N,
    input wire AXI_12_ARVALID,
    input wire [33:0] AXI_12_ARADDR,
    input wire [3:0] AXI_12_ARLEN,
    input wire [2:0] AXI_12_ARSIZE,
    input wire [1:0] AXI_12_ARBURST,
    input wire [5:0] AXI_12_ARID,
    input wire AXI_12_RREADY,
    input wire AXI_12_AWVALID,
    input wire [33:0] AXI_12_AWADDR,
    input wire [3:0] AXI_12_AWLEN,
    input wire [2:0] AXI_12_AWSIZE,
    input wire [1:0] AXI_12_AWBURST,
    input wire [5:0] AXI_12_AWID,
    input wire AXI_12_WVALID,
    input wire [255:0] AXI_12_WDATA,
    input wire [31:0] AXI_12_WDATA_PARITY,
    input wire [31:0] AXI_12_WSTRB,
    input wire AXI_12_WLAST,
    input wire AXI_12_BREADY,
    output logic AXI_12_ARREADY,
    output logic AXI_12_RVALID,
    output logic [255:0] AXI_12_RDATA,
    output logic [31:0] AXI_12_RDATA_PARITY,
    output logic [1:0] AXI_12_RRESP,
    output logic AXI_12_RLAST,
    output logic [5:0] AXI_12_RID,
    output logic AXI_12_AWREADY,
    output logic AXI_12_WREADY,
    output logic AXI_12_BVALID,
    output logic [1:0] AXI_12_BRESP,
    output logic [5:0] AXI_12_BID,
    input wire AXI_16_ACLK,
    input wire AXI_16_ARESET_N,
    input wire AXI_16_ARVALID,
    input wire [33:0] AXI_16_ARADDR,
    input wire [3:0] AXI_16_ARLEN,
    input wire [2:0] AXI_16_ARSIZE,
    input wire [1:0] AXI_16_ARBURST,
    input wire [5:0] AXI_16_ARID,
    input wire AXI_16_RREADY,
    input wire AXI_16_AWVALID,
    input wire [33:0] AXI_16_AWADDR,
    input wire [3:0] AXI_16_AWLEN,
    input wire [2:0] AXI_16_AWSIZE,
    input wire [1:0] AXI_16_AWBURST,
    input wire [5:0] AXI_16_AWID,
    input wire AXI_16_WVALID,
    input wire [255:0] AXI_16_WDATA,
    input wire [31:0] AXI_16_WDATA_PARITY,
    input wire [31:0] AXI_16_WSTRB,
    input wire AXI_16_WLAST,
    input wire AXI_16_BREADY,
    output logic AXI_16_ARREADY,
    output logic AXI_16_RVALID,
    output logic [255:0] AXI_16_RDATA,
    output logic [31:0] AXI_16_RDATA_PARITY,
    output logic [1:0] AXI_16_RRESP,
    output logic AXI_16_RLAST,
    output logic [5:0] AXI_16_RID,
    output logic AXI_16_AWREADY,
    output logic AXI_16_WREADY,
    output logic AXI_16_BVALID,
    output logic [1:0] AXI_16_BRESP,
    output logic [5:0] AXI_16_BID,
    input wire AXI_20_ACLK,
    input wire AXI_20_ARESET_N,
    input wire AXI_20_ARVALID,
    input wire [33:0] AXI_20_ARADDR,
    input wire [3:0] AXI_20_ARLEN,
    input wire [2:0] AXI_20_ARSIZE,
    input wire [1:0] AXI_20_ARBURST,
    input wire [5:0] AXI_20_ARID,
    input wire AXI_20_RREADY,
    input wire AXI_20_AWVALID,
    input wire [33:0] AXI_20_AWADDR,
    input wire [3:0] AXI_20_AWLEN,
    input wire [2:0] AXI_20_AWSIZE,
    input wire [1:0] AXI_20_AWBURST,
    input wire [5:0] AXI_20_AWID,
    input wire AXI_20_WVALID,
    input wire [255:0] AXI_20_WDATA,
    input wire [31:0] AXI_20_WDATA_PARITY,
    input wire [31:0] AXI_20_WSTRB,
    input wire AXI_20_WLAST,
    input wire AXI_20_BREADY,
    output logic AXI_20_ARREADY,
    output logic AXI_20_RVALID,
    output logic [255:0] AXI_20_RDATA,
    output logic [31:0] AXI_20_RDATA_PARITY,
    output logic [1:0] AXI_20_RRESP,
    output logic AXI_20_RLAST,
    output logic [5:0] AXI_20_RID,
    output logic AXI_20_AWREADY,
    output logic AXI_20_WREADY,
    output logic AXI_20_BVALID,
    output logic [1:0] AXI_20_BRESP,
    output logic [5:0] AXI_20_BID,
    input wire AXI_24_ACLK,
    input wire AXI_24_ARESET_N,
    input wire AXI_24_ARVALID,
    input wire [33:0] AXI_24_ARADDR,
    input wire [3:0] AXI_24_ARLEN,
    input wire [2:0] AXI_24_ARSIZE,
    input wire [1:0] AXI_24_ARBURST,
    input wire [5:0] AXI_24_ARID,
    input wire AXI_24_RREADY,
    input wire AXI_24_AWVALID,
    input wire [33:0] AXI_24_AWADDR,
    input wire [3:0] AXI_24_AWLEN,
    input wire [2:0] AXI_24_AWSIZE,
    input wire [1:0] AXI_24_AWBURST,
    input wire [5:0] AXI_24_AWID,
    input wire AXI_24_WVALID,
    input wire [255:0] AXI_24_WDATA,
    input wire [31:0] AXI_24_WDATA_PARITY,
    input wire [31:0] AXI_24_WSTRB,
    input wire AXI_24_WLAST,
    input wire AXI_24_BREADY,
    output logic AXI_24_ARREADY,
    output logic AXI_24_RVALID,
    output logic [255:0] AXI_24_RDATA,
    output logic [31:0] AXI_24_RDATA_PARITY,
    output logic [1:0] AXI_24_RRESP,
    output logic AXI_24_RLAST,
    output logic [5:0] AXI_24_RID,
    output logic AXI_24_AWREADY,
    output logic AXI_24_WREADY,
    output logic AXI_24_BVALID,
    output logic [1:0] AXI_24_BRESP,
    output logic [5:0] AXI_24_BID,
    input wire AXI_28_ACLK,
    input wire AXI_28_ARESET_N,
    input wire AXI_28_ARVALID,
    input wire [33:0] AXI_28_ARADDR,
    input wire [3:0] AXI_28_ARLEN,
    input wire [2:0] AXI_28_ARSIZE,
    input wire [1:0] AXI_28_ARBURST,
    input wire [5:0] AXI_28_ARID,
    input wire AXI_28_RREADY,
    input wire AXI_28_AWVALID,
    input wire [33:0] AXI_28_AWADDR,
    input wire [3:0] AXI_28_AWLEN,
    input wire [2:0] AXI_28_AWSIZE,
    input wire [1:0] AXI_28_AWBURST,
    input wire [5:0] AXI_28_AWID,
    input wire AXI_28_WVALID,
    input wire [255:0] AXI_28_WDATA,
    input wire [31:0] AXI_28_WDATA_PARITY,
    input wire [31:0] AXI_28_WSTRB,
    input wire AXI_28_WLAST,
    input wire AXI_28_BREADY,
    output logic AXI_28_ARREADY,
    output logic AXI_28_RVALID,
    output logic [255:0] AXI_28_RDATA,
    output logic [31:0] AXI_28_RDATA_PARITY,
    output logic [1:0] AXI_28_RRESP,
    output logic AXI_28_RLAST,
    output logic [5:0] AXI_28_RID,
    output logic AXI_28_AWREADY,
    output logic AXI_28_WREADY,
    output logic AXI_28_BVALID,
    output logic [1:0] AXI_28_BRESP,
    output logic [5:0] AXI_28_BID
);

  assign apb_complete_0 = '0;
  assign apb_complete_1 = '0;
  assign DRAM_0_STAT_CATTRIP = '0;
  assign DRAM_1_STAT_CATTRIP = '0;
  assign DRAM_0_STAT_TEMP = '0;
  assign DRAM_1_STAT_TEMP = '0;
  assign AXI_00_ARREADY = '0;
  assign AXI_00_RVALID = '0;
  assign AXI_00_RDATA = '0;
  assign AXI_00_RDATA_PARITY = '0;
  assign AXI_00_RRESP = '0;
  assign AXI_00_RLAST = '0;
  assign AXI_00_RID = '0;
  assign AXI_00_AWREADY = '0;
  assign AXI_00_WREADY = '0;
  assign AXI_00_BVALID = '0;
  assign AXI_00_BRESP = '0;
  assign AXI_00_BID = '0;
  assign AXI_04_ARREADY = '0;
  assign AXI_04_RVALID = '0;
  assign AXI_04_RDATA = '0;
  assign AXI_04_RDATA_PARITY = '0;
  assign AXI_04_RRESP = '0;
  assign AXI_04_RLAST = '0;
  assign AXI_04_RID = '0;
  assign AXI_04_AWREADY = '0;
  assign AXI_04_WREADY = '0;
  assign AXI_04_BVALID = '0;
  assign AXI_04_BRESP = '0;
  assign AXI_04_BID = '0;
  assign AXI_08_ARREADY = '0;
  assign AXI_08_RVALID = '0;
  assign AXI_08_RDATA = '0;
  assign AXI_08_RDATA_PARITY = '0;
  assign AXI_08_RRESP = '0;
  assign AXI_08_RLAST = '0;
  assign AXI_08_RID = '0;
  assign AXI_08_AWREADY = '0;
  assign AXI_08_WREADY = '0;
  assign AXI_08_BVALID = '0;
  assign AXI_08_BRESP = '0;
  assign AXI_08_BID = '0;
  assign AXI_12_ARREADY = '0;
  assign AXI_12_RVALID = '0;
  assign AXI_12_RDATA = '0;
  assign AXI_12_RDATA_PARITY = '0;
  assign AXI_12_RRESP = '0;
  assign AXI_12_RLAST = '0;
  assign AXI_12_RID = '0;
  assign AXI_12_AWREADY = '0;
  assign AXI_12_WREADY = '0;
  assign AXI_12_BVALID = '0;
  assign AXI_12_BRESP = '0;
  assign AXI_12_BID = '0;
  assign AXI_16_ARREADY = '0;
  assign AXI_16_RVALID = '0;
  assign AXI_16_RDATA = '0;
  assign AXI_16_RDATA_PARITY = '0;
  assign AXI_16_RRESP = '0;
  assign AXI_16_RLAST = '0;
  assign AXI_16_RID = '0;
  assign AXI_16_AWREADY = '0;
  assign AXI_16_WREADY = '0;
  assign AXI_16_BVALID = '0;
  assign AXI_16_BRESP = '0;
  assign AXI_16_BID = '0;
  assign AXI_20_ARREADY = '0;
  assign AXI_20_RVALID = '0;
  assign AXI_20_RDATA = '0;
  assign AXI_20_RDATA_PARITY = '0;
  assign AXI_20_RRESP = '0;
  assign AXI_20_RLAST = '0;
  assign AXI_20_RID = '0;
  assign AXI_20_AWREADY = '0;
  assign AXI_20_WREADY = '0;
  assign AXI_20_BVALID = '0;
  assign AXI_20_BRESP = '0;
  assign AXI_20_BID = '0;
  assign AXI_24_ARREADY = '0;
  assign AXI_24_RVALID = '0;
  assign AXI_24_RDATA = '0;
  assign AXI_24_RDATA_PARITY = '0;
  assign AXI_24_RRESP = '0;
  assign AXI_24_RLAST = '0;
  assign AXI_24_RID = '0;
  assign AXI_24_AWREADY = '0;
  assign AXI_24_WREADY = '0;
  assign AXI_24_BVALID = '0;
  assign AXI_24_BRESP = '0;
  assign AXI_24_BID = '0;
  assign AXI_28_ARREADY = '0;
  assign AXI_28_RVALID = '0;
  assign AXI_28_RDATA = '0;
  assign AXI_28_RDATA_PARITY = '0;
  assign AXI_28_RRESP = '0;
  assign AXI_28_RLAST = '0;
  assign AXI_28_RID = '0;
  assign AXI_28_AWREADY = '0;
  assign AXI_28_WREADY = '0;
  assign AXI_28_BVALID = '0;
  assign AXI_28_BRESP = '0;
  assign AXI_28_BID = '0;

endmodule
// verilator lint_on UNUSEDSIGNAL
`default_nettype wire
