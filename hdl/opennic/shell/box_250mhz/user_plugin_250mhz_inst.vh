// SPDX-License-Identifier: Apache-2.0
// NOT BUILT WITH VIVADO by us; linted inside a module with the box's ports (hdl/opennic/tb/test_shell_files.py).
//
// The shell includes this in its box_250mhz: the plugin, and HBM behind it. The port names on the right, and NUM_*, are the box's.
// Defined by build_box_250mhz.tcl: KV_BOX_CHANNELS, and KV_BOX_WHOLE_FRAMES where the shell's sizes can be trusted.

`ifndef __au55c__
initial $fatal(1, "This plugin takes its memory from the HBM of an Alveo U55C: build with -board au55c");
`else
initial begin
  if (USE_PHYS_FUNC != 1) $fatal(1, "The kv plugin needs -use_phys_func 1");
  if (NUM_QDMA != 1) $fatal(1, "The kv plugin needs -num_qdma 1");
  if (NUM_PHYS_FUNC != NUM_CMAC_PORT) $fatal(1, "The kv plugin needs as many physical functions as CMAC ports");
end

localparam C_KV_CHANNELS = `KV_BOX_CHANNELS;
localparam C_KV_MEMORIES = NUM_CMAC_PORT * C_KV_CHANNELS;

assign mod_rst_done[15:1] = {15{1'b1}};

wire                         kv_memory_ready;
wire     [C_KV_MEMORIES-1:0] kv_arvalid, kv_arready, kv_rvalid, kv_rready;
wire     [C_KV_MEMORIES-1:0] kv_awvalid, kv_awready, kv_wvalid, kv_wready, kv_wlast, kv_bvalid, kv_bready;
wire  [34*C_KV_MEMORIES-1:0] kv_araddr, kv_awaddr;
wire   [4*C_KV_MEMORIES-1:0] kv_arlen, kv_awlen;
wire [256*C_KV_MEMORIES-1:0] kv_rdata, kv_wdata;
wire  [32*C_KV_MEMORIES-1:0] kv_wstrb;
wire   [2*C_KV_MEMORIES-1:0] kv_rresp, kv_bresp;

kv_box_250mhz #(
  .Ports       (NUM_CMAC_PORT),
  .Channels    (C_KV_CHANNELS),
`ifdef KV_BOX_WHOLE_FRAMES
  .WholeFrames (1'b1)
`else
  .WholeFrames (1'b0)
`endif
) kv_box_inst (
  .axis_aclk                        (axis_aclk),
  .axil_aclk                        (axil_aclk),
  .mod_rstn                         (mod_rstn[0]),
  .mod_rst_done                     (mod_rst_done[0]),

  .s_axil_awaddr                    (s_axil_awaddr),
  .s_axil_awvalid                   (s_axil_awvalid),
  .s_axil_awready                   (s_axil_awready),
  .s_axil_wdata                     (s_axil_wdata),
  .s_axil_wvalid                    (s_axil_wvalid),
  .s_axil_wready                    (s_axil_wready),
  .s_axil_bresp                     (s_axil_bresp),
  .s_axil_bvalid                    (s_axil_bvalid),
  .s_axil_bready                    (s_axil_bready),
  .s_axil_araddr                    (s_axil_araddr),
  .s_axil_arvalid                   (s_axil_arvalid),
  .s_axil_arready                   (s_axil_arready),
  .s_axil_rdata                     (s_axil_rdata),
  .s_axil_rresp                     (s_axil_rresp),
  .s_axil_rvalid                    (s_axil_rvalid),
  .s_axil_rready                    (s_axil_rready),

  .s_axis_qdma_h2c_tvalid           (s_axis_qdma_h2c_tvalid),
  .s_axis_qdma_h2c_tready           (s_axis_qdma_h2c_tready),
  .s_axis_qdma_h2c_tdata            (s_axis_qdma_h2c_tdata),
  .s_axis_qdma_h2c_tkeep            (s_axis_qdma_h2c_tkeep),
  .s_axis_qdma_h2c_tlast            (s_axis_qdma_h2c_tlast),
  .s_axis_qdma_h2c_tuser_size       (s_axis_qdma_h2c_tuser_size),
  .s_axis_qdma_h2c_tuser_src        (s_axis_qdma_h2c_tuser_src),
  .s_axis_qdma_h2c_tuser_dst        (s_axis_qdma_h2c_tuser_dst),

  .m_axis_qdma_c2h_tvalid           (m_axis_qdma_c2h_tvalid),
  .m_axis_qdma_c2h_tready           (m_axis_qdma_c2h_tready),
  .m_axis_qdma_c2h_tdata            (m_axis_qdma_c2h_tdata),
  .m_axis_qdma_c2h_tkeep            (m_axis_qdma_c2h_tkeep),
  .m_axis_qdma_c2h_tlast            (m_axis_qdma_c2h_tlast),
  .m_axis_qdma_c2h_tuser_size       (m_axis_qdma_c2h_tuser_size),
  .m_axis_qdma_c2h_tuser_src        (m_axis_qdma_c2h_tuser_src),
  .m_axis_qdma_c2h_tuser_dst        (m_axis_qdma_c2h_tuser_dst),

  .m_axis_adap_tx_250mhz_tvalid     (m_axis_adap_tx_250mhz_tvalid),
  .m_axis_adap_tx_250mhz_tready     (m_axis_adap_tx_250mhz_tready),
  .m_axis_adap_tx_250mhz_tdata      (m_axis_adap_tx_250mhz_tdata),
  .m_axis_adap_tx_250mhz_tkeep      (m_axis_adap_tx_250mhz_tkeep),
  .m_axis_adap_tx_250mhz_tlast      (m_axis_adap_tx_250mhz_tlast),
  .m_axis_adap_tx_250mhz_tuser_size (m_axis_adap_tx_250mhz_tuser_size),
  .m_axis_adap_tx_250mhz_tuser_src  (m_axis_adap_tx_250mhz_tuser_src),
  .m_axis_adap_tx_250mhz_tuser_dst  (m_axis_adap_tx_250mhz_tuser_dst),

  .s_axis_adap_rx_250mhz_tvalid     (s_axis_adap_rx_250mhz_tvalid),
  .s_axis_adap_rx_250mhz_tready     (s_axis_adap_rx_250mhz_tready),
  .s_axis_adap_rx_250mhz_tdata      (s_axis_adap_rx_250mhz_tdata),
  .s_axis_adap_rx_250mhz_tkeep      (s_axis_adap_rx_250mhz_tkeep),
  .s_axis_adap_rx_250mhz_tlast      (s_axis_adap_rx_250mhz_tlast),
  .s_axis_adap_rx_250mhz_tuser_size (s_axis_adap_rx_250mhz_tuser_size),
  .s_axis_adap_rx_250mhz_tuser_src  (s_axis_adap_rx_250mhz_tuser_src),
  .s_axis_adap_rx_250mhz_tuser_dst  (s_axis_adap_rx_250mhz_tuser_dst),

  .memory_ready_i                   (kv_memory_ready),
  .m_axi_arvalid                    (kv_arvalid),
  .m_axi_arready                    (kv_arready),
  .m_axi_araddr                     (kv_araddr),
  .m_axi_arlen                      (kv_arlen),
  .m_axi_rvalid                     (kv_rvalid),
  .m_axi_rready                     (kv_rready),
  .m_axi_rdata                      (kv_rdata),
  .m_axi_rresp                      (kv_rresp),
  .m_axi_awvalid                    (kv_awvalid),
  .m_axi_awready                    (kv_awready),
  .m_axi_awaddr                     (kv_awaddr),
  .m_axi_awlen                      (kv_awlen),
  .m_axi_wvalid                     (kv_wvalid),
  .m_axi_wready                     (kv_wready),
  .m_axi_wdata                      (kv_wdata),
  .m_axi_wstrb                      (kv_wstrb),
  .m_axi_wlast                      (kv_wlast),
  .m_axi_bvalid                     (kv_bvalid),
  .m_axi_bready                     (kv_bready),
  .m_axi_bresp                      (kv_bresp)
);

kv_box_hbm #(
  .Cores    (NUM_CMAC_PORT),
  .Channels (C_KV_CHANNELS)
) kv_hbm_inst (
  .clk_i         (axis_aclk),
  .ref_clk_i     (ref_clk_100mhz),
  .ready_o       (kv_memory_ready),
  .s_axi_arvalid (kv_arvalid),
  .s_axi_arready (kv_arready),
  .s_axi_araddr  (kv_araddr),
  .s_axi_arlen   (kv_arlen),
  .s_axi_rvalid  (kv_rvalid),
  .s_axi_rready  (kv_rready),
  .s_axi_rdata   (kv_rdata),
  .s_axi_rresp   (kv_rresp),
  .s_axi_awvalid (kv_awvalid),
  .s_axi_awready (kv_awready),
  .s_axi_awaddr  (kv_awaddr),
  .s_axi_awlen   (kv_awlen),
  .s_axi_wvalid  (kv_wvalid),
  .s_axi_wready  (kv_wready),
  .s_axi_wdata   (kv_wdata),
  .s_axi_wstrb   (kv_wstrb),
  .s_axi_wlast   (kv_wlast),
  .s_axi_bvalid  (kv_bvalid),
  .s_axi_bready  (kv_bready),
  .s_axi_bresp   (kv_bresp)
);
`endif
