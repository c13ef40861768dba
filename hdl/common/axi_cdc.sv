// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// Carries an AXI4 or AXI4-Lite bus from s_clk_i to m_clk_i.
///
/// Behaviour: a cdc_fifo in each channel. Requests go from s_clk_i to m_clk_i, responses return.
/// Channels are independent. Latency: see cdc_fifo. Throughput: one beat per cycle of the slower clock.
/// Paths: none from input to output, except those of the resets.
/// Reset: either reset empties both sides, see cdc_reset. Beats inside are lost, so the reset must reach both ends of
/// the bus.
/// Requirements: all valid signals are low during reset.
/// Clock crossing: by cdc_fifo, with its constraints.
module axi_cdc #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Beats that each channel can hold. A power of two; at least 8 for full throughput with Stages = 2.
    parameter int unsigned Depth = 16,
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input  wire           s_clk_i,
    input  wire           s_rst_i,
    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp,

    input  wire            m_clk_i,
    input  wire            m_rst_i,
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp
);

  // Requests: AW, W and AR.
  cdc_fifo #(
      .Width ($bits(s_axi_req.aw)),
      .Depth (Depth),
      .Stages(Stages)
  ) i_aw (
      .*,
      `STREAM_PORTS(s, s_axi_req.aw_valid, s_axi_resp.aw_ready, s_axi_req.aw),
      `STREAM_PORTS(m, m_axi_req.aw_valid, m_axi_resp.aw_ready, m_axi_req.aw)
  );
  cdc_fifo #(
      .Width ($bits(s_axi_req.w)),
      .Depth (Depth),
      .Stages(Stages)
  ) i_w (
      .*,
      `STREAM_PORTS(s, s_axi_req.w_valid, s_axi_resp.w_ready, s_axi_req.w),
      `STREAM_PORTS(m, m_axi_req.w_valid, m_axi_resp.w_ready, m_axi_req.w)
  );
  cdc_fifo #(
      .Width ($bits(s_axi_req.ar)),
      .Depth (Depth),
      .Stages(Stages)
  ) i_ar (
      .*,
      `STREAM_PORTS(s, s_axi_req.ar_valid, s_axi_resp.ar_ready, s_axi_req.ar),
      `STREAM_PORTS(m, m_axi_req.ar_valid, m_axi_resp.ar_ready, m_axi_req.ar)
  );

  // Responses in the opposite direction: B and R.
  cdc_fifo #(
      .Width ($bits(m_axi_resp.b)),
      .Depth (Depth),
      .Stages(Stages)
  ) i_b (
      .s_clk_i(m_clk_i),
      .s_rst_i(m_rst_i),
      `STREAM_PORTS(s, m_axi_resp.b_valid, m_axi_req.b_ready, m_axi_resp.b),
      .m_clk_i(s_clk_i),
      .m_rst_i(s_rst_i),
      `STREAM_PORTS(m, s_axi_resp.b_valid, s_axi_req.b_ready, s_axi_resp.b)
  );
  cdc_fifo #(
      .Width ($bits(m_axi_resp.r)),
      .Depth (Depth),
      .Stages(Stages)
  ) i_r (
      .s_clk_i(m_clk_i),
      .s_rst_i(m_rst_i),
      `STREAM_PORTS(s, m_axi_resp.r_valid, m_axi_req.r_ready, m_axi_resp.r),
      .m_clk_i(s_clk_i),
      .m_rst_i(s_rst_i),
      `STREAM_PORTS(m, s_axi_resp.r_valid, s_axi_req.r_ready, s_axi_resp.r)
  );

endmodule
`default_nettype wire
