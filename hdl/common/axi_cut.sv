// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// A register in each of the five channels of an AXI4 or AXI4-Lite bus.
///
/// Behaviour: passes every beat on at full throughput. The channels are independent.
/// Cuts: valid and payload of all channels. CutReady also cuts the readies, so no combinational path crosses the cell.
/// Latency: 1 cycle a channel.
/// Reset: empties the registers. Beats within are lost, so a reset must reach both sides of the bus.
/// Requirements: all valid signals are low during reset.
module axi_cut #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t  = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Cut the readies too. Each channel then needs a second register and a multiplexer of its width.
    parameter bit  CutReady   = 1'b1
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t  s_axi_req,
    output axi_resp_t      s_axi_resp,
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp
);

  // The channels by number: AW, W and AR from the manager, B and R from the subordinate.
  localparam int unsigned Channels = 5;
  localparam logic [Channels-1:0][31:0] Widths = {
    32'($bits(m_axi_resp.r)),
    32'($bits(m_axi_resp.b)),
    32'($bits(s_axi_req.ar)),
    32'($bits(s_axi_req.w)),
    32'($bits(s_axi_req.aw))
  };
  function automatic int unsigned bits_before(int unsigned channel);
    bits_before = 0;
    for (int unsigned i = 0; i < channel; i++) bits_before += Widths[i];
  endfunction

  logic [Channels-1:0] s_valid, s_ready, m_valid, m_ready;
  logic [bits_before(Channels)-1:0] s_payload, m_payload;

  assign s_valid = {m_axi_resp.r_valid, m_axi_resp.b_valid, s_axi_req.ar_valid, s_axi_req.w_valid, s_axi_req.aw_valid};
  assign s_payload = {m_axi_resp.r, m_axi_resp.b, s_axi_req.ar, s_axi_req.w, s_axi_req.aw};
  assign {m_axi_req.r_ready, m_axi_req.b_ready, s_axi_resp.ar_ready, s_axi_resp.w_ready, s_axi_resp.aw_ready} = s_ready;
  assign {s_axi_resp.r_valid, s_axi_resp.b_valid, m_axi_req.ar_valid, m_axi_req.w_valid, m_axi_req.aw_valid} = m_valid;
  assign {s_axi_resp.r, s_axi_resp.b, m_axi_req.ar, m_axi_req.w, m_axi_req.aw} = m_payload;
  assign m_ready = {s_axi_req.r_ready, s_axi_req.b_ready, m_axi_resp.ar_ready, m_axi_resp.w_ready, m_axi_resp.aw_ready};

  for (genvar i = 0; i < int'(Channels); i++) begin : gen_channel
    stream_register #(
        .Width(Widths[i]),
        .CutReady(CutReady)
    ) i_register (
        .*,
        `STREAM_PORTS(s, s_valid[i], s_ready[i], s_payload[bits_before(i)+:Widths[i]]),
        `STREAM_PORTS(m, m_valid[i], m_ready[i], m_payload[bits_before(i)+:Widths[i]])
    );
  end

endmodule
`default_nettype wire
