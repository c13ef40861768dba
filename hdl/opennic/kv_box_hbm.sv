// SPDX-License-Identifier: Apache-2.0
`default_nettype none

// The HBM of an Alveo U55C for the kv cores, by AMD's IP. NEITHER SYNTHESISED BY VIVADO NOR RUN ON A CARD by us: names
// and widths of the IP's ports are those of public designs that use it. hdl/opennic/shell/build_hbm.tcl configures the
// IP.

/// Ports of the U55C's two stacks, 16 GB, for one or two kv cores.
///
/// Behaviour: port j of core c is AXI port 16 c + 4 j of the IP. So core 0 is at stack 0, core 1 at stack
/// 1, and each channel has a switch of four ports. Each port reaches all 16 GB, through the stacks' global
/// addressing. Transactions have identifier 0, 32 bytes in each beat, and INCR, so they complete in order.
/// Latency: the IP's.
/// Reset: none. The HBM is reset once, after configuration of the FPGA, and keeps its
/// contents when a plugin is reset. ready_o is high when both stacks have been calibrated.
/// Requirements: all AXI ports use clk_i, 250 MHz, as PG276 allows (each has a clock,
/// and the switch uses one of them). So there are no clock converters, and a port has
/// 8 GB/s. ref_clk_i has 100 MHz, with PG276's requirements: docs/guide/opennic.md.
module kv_box_hbm
  import kv_core_pkg::*;
#(
    /// 1 or 2.
    parameter  int unsigned Cores    = 1,
    /// Of each core: 1 to 4.
    parameter  int unsigned Channels = 2,
    localparam int unsigned Memories = Cores * Channels
) (
    input wire clk_i,
    input wire ref_clk_i,

    output logic ready_o,

    input  wire memory_req_t [Memories-1:0] s_axi_req,
    output memory_resp_t     [Memories-1:0] s_axi_resp
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Cores < 1 || Cores > 2) begin : gen_check_cores
    $fatal(1, "Cores must be 1 or 2 in %m");
  end
  if (Channels < 1 || Channels > 4) begin : gen_check_channels
    $fatal(1, "Channels must be 1 to 4 in %m");
  end

  // ---- one reset of 256 cycles of the reference clock, after configuration of the FPGA

  logic [8:0] reset_q = '0;
  logic up;
  assign up = reset_q[8];
  always_ff @(posedge ref_clk_i) if (!up) reset_q <= reset_q + 1'b1;

  logic axi_rst;
  reset_sync i_axi_reset (
      .clk_i,
      .rst_i(!up),
      .rst_o(axi_rst)
  );

  logic [1:0] complete, complete_seen;
  sync #(
      .Width(2)
  ) i_complete (
      .clk_i,
      .value_i(complete),
      .value_o(complete_seen)
  );
  assign ready_o = &complete_seen;

  // ---- eight ports of the IP; some of them are used

  memory_req_t  [7:0] req;
  memory_resp_t [7:0] resp;
  for (genvar i = 0; i < 8; i++) begin : gen_port
    if (i / 4 < Cores && i % 4 < Channels) begin : gen_used
      localparam int unsigned Memory = i / 4 * Channels + i % 4;
      assign req[i] = s_axi_req[Memory];
      assign s_axi_resp[Memory] = resp[i];
    end else begin : gen_unused
      always_comb begin
        req[i] = '0;
        req[i].r_ready = 1'b1;
        req[i].b_ready = 1'b1;
      end
      logic unused;
      assign unused = ^resp[i];
    end
  end

  // Connections of one port of the IP: AXI_`NUMBER` to element `INDEX` of the bundles above.
  `define KV_BOX_HBM_PORT(NUMBER, INDEX) \
      .AXI_``NUMBER``_ACLK(clk_i), \
      .AXI_``NUMBER``_ARESET_N(!axi_rst), \
      .AXI_``NUMBER``_ARVALID(req[INDEX].ar_valid), \
      .AXI_``NUMBER``_ARREADY(resp[INDEX].ar_ready), \
      .AXI_``NUMBER``_ARADDR(req[INDEX].ar.addr), \
      .AXI_``NUMBER``_ARLEN(req[INDEX].ar.len), \
      .AXI_``NUMBER``_ARSIZE(3'd5), \
      .AXI_``NUMBER``_ARBURST(2'b01), \
      .AXI_``NUMBER``_ARID(6'd0), \
      .AXI_``NUMBER``_RVALID(resp[INDEX].r_valid), \
      .AXI_``NUMBER``_RREADY(req[INDEX].r_ready), \
      .AXI_``NUMBER``_RDATA(resp[INDEX].r.data), \
      .AXI_``NUMBER``_RDATA_PARITY(), \
      .AXI_``NUMBER``_RRESP({resp[INDEX].r.resp}), \
      .AXI_``NUMBER``_RLAST(), \
      .AXI_``NUMBER``_RID(), \
      .AXI_``NUMBER``_AWVALID(req[INDEX].aw_valid), \
      .AXI_``NUMBER``_AWREADY(resp[INDEX].aw_ready), \
      .AXI_``NUMBER``_AWADDR(req[INDEX].aw.addr), \
      .AXI_``NUMBER``_AWLEN(req[INDEX].aw.len), \
      .AXI_``NUMBER``_AWSIZE(3'd5), \
      .AXI_``NUMBER``_AWBURST(2'b01), \
      .AXI_``NUMBER``_AWID(6'd0), \
      .AXI_``NUMBER``_WVALID(req[INDEX].w_valid), \
      .AXI_``NUMBER``_WREADY(resp[INDEX].w_ready), \
      .AXI_``NUMBER``_WDATA(req[INDEX].w.data), \
      .AXI_``NUMBER``_WDATA_PARITY(32'd0), \
      .AXI_``NUMBER``_WSTRB(req[INDEX].w.strb), \
      .AXI_``NUMBER``_WLAST(req[INDEX].w.last), \
      .AXI_``NUMBER``_BVALID(resp[INDEX].b_valid), \
      .AXI_``NUMBER``_BREADY(req[INDEX].b_ready), \
      .AXI_``NUMBER``_BRESP({resp[INDEX].b.resp}), \
      .AXI_``NUMBER``_BID()

  // verilator lint_off PINCONNECTEMPTY
  kv_hbm_ip i_hbm (
      .HBM_REF_CLK_0(ref_clk_i),
      .HBM_REF_CLK_1(ref_clk_i),
      .APB_0_PCLK(ref_clk_i),
      .APB_1_PCLK(ref_clk_i),
      .APB_0_PRESET_N(up),
      .APB_1_PRESET_N(up),
      .apb_complete_0(complete[0]),
      .apb_complete_1(complete[1]),
      .DRAM_0_STAT_CATTRIP(),
      .DRAM_1_STAT_CATTRIP(),
      .DRAM_0_STAT_TEMP(),
      .DRAM_1_STAT_TEMP(),
      `KV_BOX_HBM_PORT(00, 0),
      `KV_BOX_HBM_PORT(04, 1),
      `KV_BOX_HBM_PORT(08, 2),
      `KV_BOX_HBM_PORT(12, 3),
      `KV_BOX_HBM_PORT(16, 4),
      `KV_BOX_HBM_PORT(20, 5),
      `KV_BOX_HBM_PORT(24, 6),
      `KV_BOX_HBM_PORT(28, 7)
  );
  // verilator lint_on PINCONNECTEMPTY
  `undef KV_BOX_HBM_PORT

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
