// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The kv core as a user plugin in the 250 MHz box of the OpenNIC shell: docs/opennic.md.
///
/// Behaviour: one kv core for each CMAC port, between that port and the physical function of the same number. Frames that are not the core's
/// pass in both directions, with their tuser_size and tuser_src; tuser_dst is the port's or the function's bit, as the shell wants it: the
/// adapter drops frames without it. The core's own frames have tuser_size, no source, and the port as destination. Core n's registers are at 4096 n
/// of the box; kv_box_registers says what is beside them. mod_rstn resets all cores at once, between frames and with memory at rest: kv_box_reset.
/// Latency: none beyond the cores'.
/// Paths: as the cores', and tvalid and tready of each stream through one gate.
/// Reset: mod_rstn, low for a cycle of axil_aclk; also when the FPGA has been configured.
/// Requirements: axis_aclk has 250 MHz; axil_aclk any relation to it. Memory takes and gives in the domain of axis_aclk, one port for each
/// channel of each core, core 0's first; all ports see the same bytes. rlast and identifiers are not needed.
module kv_box_250mhz
  import kv_core_pkg::*;
#(
    /// CMAC ports, and physical functions: 1 or 2.
    parameter  int unsigned Ports         = 1,
    /// Of memory, for each core: 1, 2 or 4.
    parameter  int unsigned Channels      = 2,
    parameter  int unsigned LineCacheBits = 12,
    parameter  int unsigned LaneBits      = 12,
    parameter  int unsigned MaxFollowers  = 7,
    /// tuser_size can be trusted with a frame's first beat. In the shell as published it can not, after the first frame with a wrong
    /// FCS: docs/opennic.md. Reads are as fast without.
    parameter  bit          WholeFrames   = 1'b0,
    /// See kv_box_reset.
    parameter  int unsigned DrainCycles   = 65536,
    localparam int unsigned Memories      = Ports * Channels
) (
    input wire axis_aclk,
    input wire axil_aclk,

    input  wire  mod_rstn,
    output logic mod_rst_done,

    input  wire  [31:0] s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output logic        s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire         s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire  [31:0] s_axil_araddr,
    input  wire         s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  wire         s_axil_rready,

    // From the host.
    input  wire  [Ports-1:0]        s_axis_qdma_h2c_tvalid,
    output logic [Ports-1:0]        s_axis_qdma_h2c_tready,
    input  wire  [Ports-1:0][511:0] s_axis_qdma_h2c_tdata,
    input  wire  [Ports-1:0][ 63:0] s_axis_qdma_h2c_tkeep,
    input  wire  [Ports-1:0]        s_axis_qdma_h2c_tlast,
    input  wire  [Ports-1:0][ 15:0] s_axis_qdma_h2c_tuser_size,
    input  wire  [Ports-1:0][ 15:0] s_axis_qdma_h2c_tuser_src,
    input  wire  [Ports-1:0][ 15:0] s_axis_qdma_h2c_tuser_dst,

    // To the host.
    output logic [Ports-1:0]        m_axis_qdma_c2h_tvalid,
    input  wire  [Ports-1:0]        m_axis_qdma_c2h_tready,
    output logic [Ports-1:0][511:0] m_axis_qdma_c2h_tdata,
    output logic [Ports-1:0][ 63:0] m_axis_qdma_c2h_tkeep,
    output logic [Ports-1:0]        m_axis_qdma_c2h_tlast,
    output logic [Ports-1:0][ 15:0] m_axis_qdma_c2h_tuser_size,
    output logic [Ports-1:0][ 15:0] m_axis_qdma_c2h_tuser_src,
    output logic [Ports-1:0][ 15:0] m_axis_qdma_c2h_tuser_dst,

    // To the network.
    output logic [Ports-1:0]        m_axis_adap_tx_250mhz_tvalid,
    input  wire  [Ports-1:0]        m_axis_adap_tx_250mhz_tready,
    output logic [Ports-1:0][511:0] m_axis_adap_tx_250mhz_tdata,
    output logic [Ports-1:0][ 63:0] m_axis_adap_tx_250mhz_tkeep,
    output logic [Ports-1:0]        m_axis_adap_tx_250mhz_tlast,
    output logic [Ports-1:0][ 15:0] m_axis_adap_tx_250mhz_tuser_size,
    output logic [Ports-1:0][ 15:0] m_axis_adap_tx_250mhz_tuser_src,
    output logic [Ports-1:0][ 15:0] m_axis_adap_tx_250mhz_tuser_dst,

    // From the network.
    input  wire  [Ports-1:0]        s_axis_adap_rx_250mhz_tvalid,
    output logic [Ports-1:0]        s_axis_adap_rx_250mhz_tready,
    input  wire  [Ports-1:0][511:0] s_axis_adap_rx_250mhz_tdata,
    input  wire  [Ports-1:0][ 63:0] s_axis_adap_rx_250mhz_tkeep,
    input  wire  [Ports-1:0]        s_axis_adap_rx_250mhz_tlast,
    input  wire  [Ports-1:0][ 15:0] s_axis_adap_rx_250mhz_tuser_size,
    input  wire  [Ports-1:0][ 15:0] s_axis_adap_rx_250mhz_tuser_src,
    input  wire  [Ports-1:0][ 15:0] s_axis_adap_rx_250mhz_tuser_dst,

    /// Memory can be used; once it can, for ever.
    input  wire                            memory_ready_i,
    output logic     [Memories-1:0]        m_axi_arvalid,
    input  wire      [Memories-1:0]        m_axi_arready,
    output address_t [Memories-1:0]        m_axi_araddr,
    output logic     [Memories-1:0][  3:0] m_axi_arlen,
    input  wire      [Memories-1:0]        m_axi_rvalid,
    output logic     [Memories-1:0]        m_axi_rready,
    input  wire      [Memories-1:0][255:0] m_axi_rdata,
    input  wire      [Memories-1:0][  1:0] m_axi_rresp,
    output logic     [Memories-1:0]        m_axi_awvalid,
    input  wire      [Memories-1:0]        m_axi_awready,
    output address_t [Memories-1:0]        m_axi_awaddr,
    output logic     [Memories-1:0][  3:0] m_axi_awlen,
    output logic     [Memories-1:0]        m_axi_wvalid,
    input  wire      [Memories-1:0]        m_axi_wready,
    output logic     [Memories-1:0][255:0] m_axi_wdata,
    output logic     [Memories-1:0][ 31:0] m_axi_wstrb,
    output logic     [Memories-1:0]        m_axi_wlast,
    input  wire      [Memories-1:0]        m_axi_bvalid,
    output logic     [Memories-1:0]        m_axi_bready,
    input  wire      [Memories-1:0][  1:0] m_axi_bresp
);

  if (Ports < 1 || Ports > 2) begin : gen_check_ports
    $fatal(1, "Ports must be 1 or 2 in %m");
  end

  /// tuser as it passes through a core: the size where the core puts its own.
  typedef struct packed {
    logic [15:0] dst;
    logic [15:0] src;
    logic [15:0] size;
  } user_t;

  // ---- reset

  logic stop, closed, rst, rst_last_q;
  logic [Ports-1:0] streams_quiet;
  logic [Memories-1:0] settled, idle;

  kv_box_reset #(
      .DrainCycles(DrainCycles)
  ) i_reset (
      .clk_i(axis_aclk),
      .axil_clk_i(axil_aclk),
      .mod_rstn_i(mod_rstn),
      .mod_rst_done_o(mod_rst_done),
      .memory_ready_i,
      .quiet_i(&streams_quiet && &idle),
      .settled_i(&settled),
      .stop_o(stop),
      .closed_o(closed),
      .rst_o(rst)
  );

  always_ff @(posedge axis_aclk) rst_last_q <= rst;

  // ---- registers

  logic [11:0] axil_awaddr, axil_araddr;
  logic [31:0] axil_wdata;
  logic [Ports-1:0] axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready;
  logic [Ports-1:0] axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [Ports-1:0][1:0] axil_bresp, axil_rresp;
  logic [Ports-1:0][31:0] axil_rdata;

  kv_box_registers #(
      .Cores(Ports)
  ) i_registers (
      .axil_clk_i(axil_aclk),
      .clk_i(axis_aclk),
      .rst_i(closed),
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
      .m_axil_awaddr(axil_awaddr),
      .m_axil_awvalid(axil_awvalid),
      .m_axil_awready(axil_awready),
      .m_axil_wdata(axil_wdata),
      .m_axil_wvalid(axil_wvalid),
      .m_axil_wready(axil_wready),
      .m_axil_bresp(axil_bresp),
      .m_axil_bvalid(axil_bvalid),
      .m_axil_bready(axil_bready),
      .m_axil_araddr(axil_araddr),
      .m_axil_arvalid(axil_arvalid),
      .m_axil_arready(axil_arready),
      .m_axil_rdata(axil_rdata),
      .m_axil_rresp(axil_rresp),
      .m_axil_rvalid(axil_rvalid),
      .m_axil_rready(axil_rready)
  );

  // ---- a core for each port

  // The cores' side of what can be cut off.
  logic [Memories-1:0] arvalid, awvalid, wvalid;
  assign m_axi_arvalid = arvalid & {Memories{!closed}};
  assign m_axi_awvalid = awvalid & {Memories{!closed}};
  assign m_axi_wvalid  = wvalid & {Memories{!closed}};

  for (genvar i = 0; i < Ports; i++) begin : gen_port
    logic net_in_valid, net_in_ready, net_in_between;
    logic host_in_valid, host_in_ready, host_in_between;
    logic net_out_valid, host_out_valid;
    logic net_out_middle_q, host_out_middle_q;
    user_t net_in_user, host_in_user, net_out_user, host_out_user;

    kv_box_inlet i_net (
        .clk_i(axis_aclk),
        .stop_i(stop),
        .closed_i(closed),
        .s_valid(s_axis_adap_rx_250mhz_tvalid[i]),
        .s_ready(s_axis_adap_rx_250mhz_tready[i]),
        .s_last(s_axis_adap_rx_250mhz_tlast[i]),
        .m_valid(net_in_valid),
        .m_ready(net_in_ready),
        .between_o(net_in_between)
    );
    kv_box_inlet i_host (
        .clk_i(axis_aclk),
        .stop_i(stop),
        .closed_i(closed),
        .s_valid(s_axis_qdma_h2c_tvalid[i]),
        .s_ready(s_axis_qdma_h2c_tready[i]),
        .s_last(s_axis_qdma_h2c_tlast[i]),
        .m_valid(host_in_valid),
        .m_ready(host_in_ready),
        .between_o(host_in_between)
    );

    assign net_in_user = '{
            dst: s_axis_adap_rx_250mhz_tuser_dst[i],
            src: s_axis_adap_rx_250mhz_tuser_src[i],
            size: s_axis_adap_rx_250mhz_tuser_size[i]
        };
    assign host_in_user = '{
            dst: s_axis_qdma_h2c_tuser_dst[i],
            src: s_axis_qdma_h2c_tuser_src[i],
            size: s_axis_qdma_h2c_tuser_size[i]
        };

    kv_core #(
        .Channels(Channels),
        .LineCacheBits(LineCacheBits),
        .LaneBits(LaneBits),
        .MaxFollowers(MaxFollowers),
        .WholeFrames(WholeFrames),
        .UserWidth($bits(user_t))
    ) i_core (
        .clk_i(axis_aclk),
        .rst_i(rst),
        .s_axil_awaddr(axil_awaddr),
        .s_axil_awvalid(axil_awvalid[i]),
        .s_axil_awready(axil_awready[i]),
        .s_axil_wdata(axil_wdata),
        .s_axil_wstrb('1),
        .s_axil_wvalid(axil_wvalid[i]),
        .s_axil_wready(axil_wready[i]),
        .s_axil_bresp(axil_bresp[i]),
        .s_axil_bvalid(axil_bvalid[i]),
        .s_axil_bready(axil_bready[i]),
        .s_axil_araddr(axil_araddr),
        .s_axil_arvalid(axil_arvalid[i]),
        .s_axil_arready(axil_arready[i]),
        .s_axil_rdata(axil_rdata[i]),
        .s_axil_rresp(axil_rresp[i]),
        .s_axil_rvalid(axil_rvalid[i]),
        .s_axil_rready(axil_rready[i]),
        .s_net_tvalid(net_in_valid),
        .s_net_tready(net_in_ready),
        .s_net_tdata(s_axis_adap_rx_250mhz_tdata[i]),
        .s_net_tkeep(s_axis_adap_rx_250mhz_tkeep[i]),
        .s_net_tlast(s_axis_adap_rx_250mhz_tlast[i]),
        .s_net_tuser(net_in_user),
        .s_net_error(1'b0),  // the adapter has dropped them
        .s_net_size(s_axis_adap_rx_250mhz_tuser_size[i]),
        .m_net_tvalid(net_out_valid),
        .m_net_tready(m_axis_adap_tx_250mhz_tready[i]),
        .m_net_tdata(m_axis_adap_tx_250mhz_tdata[i]),
        .m_net_tkeep(m_axis_adap_tx_250mhz_tkeep[i]),
        .m_net_tlast(m_axis_adap_tx_250mhz_tlast[i]),
        .m_net_tuser(net_out_user),
        .s_host_tvalid(host_in_valid),
        .s_host_tready(host_in_ready),
        .s_host_tdata(s_axis_qdma_h2c_tdata[i]),
        .s_host_tkeep(s_axis_qdma_h2c_tkeep[i]),
        .s_host_tlast(s_axis_qdma_h2c_tlast[i]),
        .s_host_tuser(host_in_user),
        .m_host_tvalid(host_out_valid),
        .m_host_tready(m_axis_qdma_c2h_tready[i]),
        .m_host_tdata(m_axis_qdma_c2h_tdata[i]),
        .m_host_tkeep(m_axis_qdma_c2h_tkeep[i]),
        .m_host_tlast(m_axis_qdma_c2h_tlast[i]),
        .m_host_tuser(host_out_user),
        .m_axi_arvalid(arvalid[Channels*i+:Channels]),
        .m_axi_arready(m_axi_arready[Channels*i+:Channels]),
        .m_axi_araddr(m_axi_araddr[Channels*i+:Channels]),
        .m_axi_arlen(m_axi_arlen[Channels*i+:Channels]),
        .m_axi_rvalid(m_axi_rvalid[Channels*i+:Channels]),
        .m_axi_rready(m_axi_rready[Channels*i+:Channels]),
        .m_axi_rdata(m_axi_rdata[Channels*i+:Channels]),
        .m_axi_rresp(m_axi_rresp[Channels*i+:Channels]),
        .m_axi_awvalid(awvalid[Channels*i+:Channels]),
        .m_axi_awready(m_axi_awready[Channels*i+:Channels]),
        .m_axi_awaddr(m_axi_awaddr[Channels*i+:Channels]),
        .m_axi_awlen(m_axi_awlen[Channels*i+:Channels]),
        .m_axi_wvalid(wvalid[Channels*i+:Channels]),
        .m_axi_wready(m_axi_wready[Channels*i+:Channels]),
        .m_axi_wdata(m_axi_wdata[Channels*i+:Channels]),
        .m_axi_wstrb(m_axi_wstrb[Channels*i+:Channels]),
        .m_axi_wlast(m_axi_wlast[Channels*i+:Channels]),
        .m_axi_bvalid(m_axi_bvalid[Channels*i+:Channels]),
        .m_axi_bready(m_axi_bready[Channels*i+:Channels]),
        .m_axi_bresp(m_axi_bresp[Channels*i+:Channels])
    );

    assign m_axis_adap_tx_250mhz_tvalid[i]     = net_out_valid && !closed;
    assign m_axis_adap_tx_250mhz_tuser_size[i] = net_out_user.size;
    assign m_axis_adap_tx_250mhz_tuser_src[i]  = net_out_user.src;
    assign m_axis_adap_tx_250mhz_tuser_dst[i]  = 16'd1 << (6 + i);
    assign m_axis_qdma_c2h_tvalid[i]           = host_out_valid && !closed;
    assign m_axis_qdma_c2h_tuser_size[i]       = host_out_user.size;
    assign m_axis_qdma_c2h_tuser_src[i]        = host_out_user.src;
    assign m_axis_qdma_c2h_tuser_dst[i]        = 16'd1 << i;

    logic unused_dst;
    assign unused_dst = ^{net_out_user.dst, host_out_user.dst};

    always_ff @(posedge axis_aclk) begin
      if (m_axis_adap_tx_250mhz_tvalid[i] && m_axis_adap_tx_250mhz_tready[i])
        net_out_middle_q <= !m_axis_adap_tx_250mhz_tlast[i];
      if (m_axis_qdma_c2h_tvalid[i] && m_axis_qdma_c2h_tready[i]) host_out_middle_q <= !m_axis_qdma_c2h_tlast[i];
      if (closed) begin
        net_out_middle_q  <= 1'b0;
        host_out_middle_q <= 1'b0;
      end
    end

    assign streams_quiet[i] = net_in_between && host_in_between && !net_out_middle_q && !host_out_middle_q
        && !net_out_valid && !host_out_valid;
  end

  for (genvar i = 0; i < Memories; i++) begin : gen_memory
    kv_box_watch i_watch (
        .clk_i(axis_aclk),
        .clear_i(rst_last_q && !rst),
        .arvalid_i(m_axi_arvalid[i]),
        .arready_i(m_axi_arready[i]),
        .arlen_i(m_axi_arlen[i]),
        .rvalid_i(m_axi_rvalid[i]),
        .rready_i(m_axi_rready[i]),
        .awvalid_i(m_axi_awvalid[i]),
        .awready_i(m_axi_awready[i]),
        .wvalid_i(m_axi_wvalid[i]),
        .bvalid_i(m_axi_bvalid[i]),
        .bready_i(m_axi_bready[i]),
        .settled_o(settled[i]),
        .idle_o(idle[i])
    );
  end

endmodule
`default_nettype wire
