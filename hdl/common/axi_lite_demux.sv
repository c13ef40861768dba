// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// Connects one AXI4-Lite manager to several subordinates, selected by address.
///
/// Behaviour: an axi_demux for bursts of one beat. Responses return in the order of the requests. An address outside
/// all regions is answered with DECERR. Cuts: only those of axi_demux.
/// Latency: 0 cycles. Data can pass from the cycle after their address.
/// Reset: forgets transactions in flight, so a reset must reach both sides of the bus.
/// Requirements: all valid signals are low during reset.
module axi_lite_demux #(
    /// The bundles of the bus: see axi.svh. Addresses have at most 64 bits, and data 32.
    parameter type axi_req_t = axi_pkg::axi_lite_req_t,
    parameter type axi_resp_t = axi_pkg::axi_lite_resp_t,
    /// Outputs; at least 2.
    parameter int unsigned Outputs = 2,
    /// The region of each output; they do not overlap.
    parameter axi_pkg::region_t [Outputs-1:0] Regions = {64'h1000, 64'h1000, 64'h0, 64'h1000}
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t                s_axil_req,
    output axi_resp_t                    s_axil_resp,
    output axi_req_t       [Outputs-1:0] m_axil_req,
    input  wire axi_resp_t [Outputs-1:0] m_axil_resp
);

  localparam int unsigned AddressWidth = $bits(s_axil_req.aw.addr);
  localparam logic [2:0] WordSize = 3'd2;  // 2^n bytes

  `AXI_TYPES(wide, AddressWidth, 32, 1)
  wide_req_t s_req;
  // verilator lint_off UNUSEDSIGNAL  // what AXI4-Lite has not
  wide_resp_t s_resp;
  wide_req_t [Outputs-1:0] m_req;
  // verilator lint_on UNUSEDSIGNAL
  wide_resp_t [Outputs-1:0] m_resp;

  always_comb begin
    s_req          = '0;
    s_req.aw.addr  = s_axil_req.aw.addr;
    s_req.aw.size  = WordSize;
    s_req.aw.burst = axi_pkg::BurstIncr;
    s_req.aw_valid = s_axil_req.aw_valid;
    s_req.w.data   = s_axil_req.w.data;
    s_req.w.strb   = s_axil_req.w.strb;
    s_req.w.last   = 1'b1;
    s_req.w_valid  = s_axil_req.w_valid;
    s_req.b_ready  = s_axil_req.b_ready;
    s_req.ar.addr  = s_axil_req.ar.addr;
    s_req.ar.size  = WordSize;
    s_req.ar.burst = axi_pkg::BurstIncr;
    s_req.ar_valid = s_axil_req.ar_valid;
    s_req.r_ready  = s_axil_req.r_ready;
  end
  assign s_axil_resp = '{
          aw_ready: s_resp.aw_ready,
          w_ready: s_resp.w_ready,
          b: '{resp: s_resp.b.resp},
          b_valid: s_resp.b_valid,
          ar_ready: s_resp.ar_ready,
          r: '{data: s_resp.r.data, resp: s_resp.r.resp},
          r_valid: s_resp.r_valid
      };

  axi_demux #(
      .axi_req_t(wide_req_t),
      .axi_resp_t(wide_resp_t),
      .Outputs(Outputs),
      .Regions(Regions),
      .Outstanding(2)
  ) i_demux (
      .*,
      .s_axi_req (s_req),
      .s_axi_resp(s_resp),
      .m_axi_req (m_req),
      .m_axi_resp(m_resp)
  );

  for (genvar i = 0; i < int'(Outputs); i++) begin : gen_output
    assign m_axil_req[i] = '{
            aw: '{addr: m_req[i].aw.addr},
            aw_valid: m_req[i].aw_valid,
            w: '{data: m_req[i].w.data, strb: m_req[i].w.strb},
            w_valid: m_req[i].w_valid,
            b_ready: m_req[i].b_ready,
            ar: '{addr: m_req[i].ar.addr},
            ar_valid: m_req[i].ar_valid,
            r_ready: m_req[i].r_ready
        };
    assign m_resp[i] = '{
            aw_ready: m_axil_resp[i].aw_ready,
            w_ready: m_axil_resp[i].w_ready,
            b: '{id: '0, resp: m_axil_resp[i].b.resp},
            b_valid: m_axil_resp[i].b_valid,
            ar_ready: m_axil_resp[i].ar_ready,
            r: '{id: '0, data: m_axil_resp[i].r.data, resp: m_axil_resp[i].r.resp, last: 1'b1},
            r_valid: m_axil_resp[i].r_valid
        };
  end

endmodule
`default_nettype wire
