// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A register in each of the five channels of an AXI4 or AXI4-Lite bus.
///
/// Behaviour: passes every beat on, each channel by itself, at full throughput.
/// Cuts: valid and payload of all channels; with CutReady their readies too, so that no path crosses the cell.
/// Latency: 1 cycle a channel.
/// Reset: empties the registers. Beats within are lost, so a reset must reach both sides of the bus.
/// Requirements: in reset no valid is high.
module axi_cut #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t  = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Cut the readies too. Costs a second register and a multiplexer of each channel's width.
    parameter bit  CutReady   = 1'b1
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t  s_axi_req,
    output axi_resp_t      s_axi_resp,
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp
);

  stream_register #(
      .Width($bits(s_axi_req.aw)),
      .CutReady(CutReady)
  ) i_aw (
      .clk_i,
      .rst_i,
      .s_valid  (s_axi_req.aw_valid),
      .s_ready  (s_axi_resp.aw_ready),
      .s_payload(s_axi_req.aw),
      .m_valid  (m_axi_req.aw_valid),
      .m_ready  (m_axi_resp.aw_ready),
      .m_payload(m_axi_req.aw)
  );

  stream_register #(
      .Width($bits(s_axi_req.w)),
      .CutReady(CutReady)
  ) i_w (
      .clk_i,
      .rst_i,
      .s_valid  (s_axi_req.w_valid),
      .s_ready  (s_axi_resp.w_ready),
      .s_payload(s_axi_req.w),
      .m_valid  (m_axi_req.w_valid),
      .m_ready  (m_axi_resp.w_ready),
      .m_payload(m_axi_req.w)
  );

  stream_register #(
      .Width($bits(s_axi_req.ar)),
      .CutReady(CutReady)
  ) i_ar (
      .clk_i,
      .rst_i,
      .s_valid  (s_axi_req.ar_valid),
      .s_ready  (s_axi_resp.ar_ready),
      .s_payload(s_axi_req.ar),
      .m_valid  (m_axi_req.ar_valid),
      .m_ready  (m_axi_resp.ar_ready),
      .m_payload(m_axi_req.ar)
  );

  stream_register #(
      .Width($bits(m_axi_resp.b)),
      .CutReady(CutReady)
  ) i_b (
      .clk_i,
      .rst_i,
      .s_valid  (m_axi_resp.b_valid),
      .s_ready  (m_axi_req.b_ready),
      .s_payload(m_axi_resp.b),
      .m_valid  (s_axi_resp.b_valid),
      .m_ready  (s_axi_req.b_ready),
      .m_payload(s_axi_resp.b)
  );

  stream_register #(
      .Width($bits(m_axi_resp.r)),
      .CutReady(CutReady)
  ) i_r (
      .clk_i,
      .rst_i,
      .s_valid  (m_axi_resp.r_valid),
      .s_ready  (m_axi_req.r_ready),
      .s_payload(m_axi_resp.r),
      .m_valid  (s_axi_resp.r_valid),
      .m_ready  (s_axi_req.r_ready),
      .m_payload(s_axi_resp.r)
  );

endmodule
`default_nettype wire
