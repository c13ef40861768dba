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

wire kv_memory_ready;
kv_core_pkg::memory_req_t [C_KV_MEMORIES-1:0] kv_memory_req;
kv_core_pkg::memory_resp_t [C_KV_MEMORIES-1:0] kv_memory_resp;

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
  .m_axi_req                        (kv_memory_req),
  .m_axi_resp                       (kv_memory_resp)
);

kv_box_hbm #(
  .Cores    (NUM_CMAC_PORT),
  .Channels (C_KV_CHANNELS)
) kv_hbm_inst (
  .clk_i         (axis_aclk),
  .ref_clk_i     (ref_clk_100mhz),
  .ready_o       (kv_memory_ready),
  .s_axi_req     (kv_memory_req),
  .s_axi_resp    (kv_memory_resp)
);
`endif
