// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

// The shell's streams of all ports, for a port list; these come before other ports.
`define SHELL_RECEIVER(prefix) \
  input  wire  [Ports-1:0]        prefix``_tvalid, \
  output logic [Ports-1:0]        prefix``_tready, \
  input  wire  [Ports-1:0][511:0] prefix``_tdata, \
  input  wire  [Ports-1:0][ 63:0] prefix``_tkeep, \
  input  wire  [Ports-1:0]        prefix``_tlast, \
  input  wire  [Ports-1:0][ 15:0] prefix``_tuser_size, \
  input  wire  [Ports-1:0][ 15:0] prefix``_tuser_src, \
  input  wire  [Ports-1:0][ 15:0] prefix``_tuser_dst,
`define SHELL_TRANSMITTER(prefix) \
  output logic [Ports-1:0]        prefix``_tvalid, \
  input  wire  [Ports-1:0]        prefix``_tready, \
  output logic [Ports-1:0][511:0] prefix``_tdata, \
  output logic [Ports-1:0][ 63:0] prefix``_tkeep, \
  output logic [Ports-1:0]        prefix``_tlast, \
  output logic [Ports-1:0][ 15:0] prefix``_tuser_size, \
  output logic [Ports-1:0][ 15:0] prefix``_tuser_src, \
  output logic [Ports-1:0][ 15:0] prefix``_tuser_dst,

/// The kv core as a user plugin in the 250 MHz box of the OpenNIC shell: docs/guide/opennic.md.
///
/// Behaviour: one kv core for each CMAC port, between that port and the physical function of the same number.
/// Other frames pass in both directions with their tuser_size and tuser_src. tuser_dst is the bit of the port
/// or function, because the shell's adapter drops frames without it. The core's own frames have tuser_size,
/// no source, and the port as destination. Core n has its registers at 4096 n; see kv_box_registers for the
/// rest. mod_rstn resets all cores together, between frames and with idle memory: kv_box_reset.
/// Latency: only the cores'.
/// Combinational paths: as the cores; tvalid and tready of each stream also pass one gate.
/// Reset: mod_rstn, low for a cycle of axil_aclk; also after configuration of the FPGA.
/// Requirements: axis_aclk has 250 MHz. axil_aclk may have any relation to it.
/// Memory uses axis_aclk, with one port for each channel of each core, core 0's
/// first. All ports access the same bytes. rlast and identifiers are not needed.
module kv_box_250mhz
  import kv_core_pkg::*;
#(
    /// CMAC ports, and physical functions: 1 or 2.
    parameter  int unsigned Ports         = 1,
    /// Memory channels of each core: 1, 2 or 4.
    parameter  int unsigned Channels      = 2,
    parameter  int unsigned LineCacheBits = 12,
    parameter  int unsigned LaneBits      = 12,
    parameter  int unsigned MaxFollowers  = 7,
    /// Whether tuser_size is valid in a frame's first beat. In the published shell it is not, after
    /// the first frame with a wrong FCS: docs/guide/opennic.md. Reads are equally fast without it.
    parameter  bit          WholeFrames   = 1'b0,
    /// See kv_box_reset.
    parameter  int unsigned DrainCycles   = 65536,
    localparam int unsigned Memories      = Ports * Channels
) (
    input wire axis_aclk,
    input wire axil_aclk,

    input  wire  mod_rstn,
    output logic mod_rst_done,

    `AXI_LITE_SUBORDINATE_OF_WORDS(s_axil, 32, 32)

    // From and to the host; to and from the network.
    `SHELL_RECEIVER(s_axis_qdma_h2c)
    `SHELL_TRANSMITTER(m_axis_qdma_c2h)
    `SHELL_TRANSMITTER(m_axis_adap_tx_250mhz)
    `SHELL_RECEIVER(s_axis_adap_rx_250mhz)

    /// Memory is ready. Once high, it stays high.
    input  wire                              memory_ready_i,
    output memory_req_t       [Memories-1:0] m_axi_req,
    input  wire memory_resp_t [Memories-1:0] m_axi_resp
);

  if (Ports < 1 || Ports > 2) begin : gen_check_ports
    $fatal(1, "Ports must be 1 or 2 in %m");
  end

  /// tuser inside a core: the size is where the core puts its own.
  typedef struct packed {
    logic [15:0] dst;
    logic [15:0] src;
    logic [15:0] size;
  } user_t;
  `AXIS_TYPE(axis, 512, $bits(user_t))

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

  // The shell has no strobes, so it always writes whole words.
  logic [3:0] s_axil_wstrb;
  axi_pkg::axi_lite_req_t shell_req;
  axi_pkg::axi_lite_resp_t shell_resp;
  kv_axil_req_t [Ports-1:0] axil_req;
  kv_axil_resp_t [Ports-1:0] axil_resp;
  assign s_axil_wstrb = '1;
  `AXI_LITE_FROM_FLAT(s_axil, shell_req, shell_resp)
  kv_box_registers #(
      .Cores(Ports)
  ) i_registers (
      .axil_clk_i (axil_aclk),
      .clk_i      (axis_aclk),
      .rst_i      (closed),
      .s_axil_req (shell_req),
      .s_axil_resp(shell_resp),
      .m_axil_req (axil_req),
      .m_axil_resp(axil_resp)
  );

  // ---- a core for each port

  memory_req_t [Memories-1:0] memory_req;  // before it is cut off

  for (genvar i = 0; i < Ports; i++) begin : gen_port
    logic net_in_valid, net_in_ready, net_in_between;
    logic host_in_valid, host_in_ready, host_in_between;
    logic net_out_valid, host_out_valid;
    logic net_out_middle_q, host_out_middle_q;
    axis_t net_in, host_in, net_out, host_out;
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

    assign net_in = '{
            user: net_in_user,
            last: s_axis_adap_rx_250mhz_tlast[i],
            keep: s_axis_adap_rx_250mhz_tkeep[i],
            data: s_axis_adap_rx_250mhz_tdata[i]
        };
    assign host_in = '{
            user: host_in_user,
            last: s_axis_qdma_h2c_tlast[i],
            keep: s_axis_qdma_h2c_tkeep[i],
            data: s_axis_qdma_h2c_tdata[i]
        };

    `AXI3_NETS(axi, Channels, AddressBits, 256)
    for (genvar c = 0; c < Channels; c++) begin : gen_channel
      `AXI3_FROM_FLAT(axi, c, memory_req[Channels*i+c], m_axi_resp[Channels*i+c])
    end
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
        `AXI_LITE_PORTS(s_axil, axil_req[i], axil_resp[i]),
        `AXIS_PORTS(s_net, net_in_valid, net_in_ready, net_in),
        .s_net_error(1'b0),  // the adapter has dropped them
        .s_net_size(net_in_user.size),
        `AXIS_PORTS(m_net, net_out_valid, m_axis_adap_tx_250mhz_tready[i], net_out),
        `AXIS_PORTS(s_host, host_in_valid, host_in_ready, host_in),
        `AXIS_PORTS(m_host, host_out_valid, m_axis_qdma_c2h_tready[i], host_out),
        `AXI3_PORTS(m_axi, axi)
    );

    assign net_out_user                        = user_t'(net_out.user);
    assign host_out_user                       = user_t'(host_out.user);
    assign m_axis_adap_tx_250mhz_tdata[i]      = net_out.data;
    assign m_axis_adap_tx_250mhz_tkeep[i]      = net_out.keep;
    assign m_axis_adap_tx_250mhz_tlast[i]      = net_out.last;
    assign m_axis_qdma_c2h_tdata[i]            = host_out.data;
    assign m_axis_qdma_c2h_tkeep[i]            = host_out.keep;
    assign m_axis_qdma_c2h_tlast[i]            = host_out.last;
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
    always_comb begin
      m_axi_req[i] = memory_req[i];
      if (closed) begin
        m_axi_req[i].ar_valid = 1'b0;
        m_axi_req[i].aw_valid = 1'b0;
        m_axi_req[i].w_valid  = 1'b0;
      end
    end
    kv_box_watch i_watch (
        .clk_i(axis_aclk),
        .clear_i(rst_last_q && !rst),
        .axi_req(m_axi_req[i]),
        .axi_resp(m_axi_resp[i]),
        .settled_o(settled[i]),
        .idle_o(idle[i])
    );
  end

endmodule
`undef SHELL_RECEIVER
`undef SHELL_TRANSMITTER
`default_nettype wire
