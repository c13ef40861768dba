// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// Connects a PCIe bridge with AXI4 to a bypass core: docs/guide/cards.md.
///
/// Behaviour: accesses of the host and the NIC to the card (s_pcie) go to the core's window or
/// registers, by the BAR regions below. All others get DECERR. Tail pointers leave as writes
/// of one beat (m_pcie), to bus addresses. Register accesses of more than 4 bytes are split
/// into words; they delay the answers of later window accesses, because answers stay in order.
/// With Dma, a third BAR leads to a DMA engine, which shares the window and m_pcie (bypass_dma).
/// Latency: the window 1 cycle each way (axi_cut), or with Crossing that of
/// cdc_fifo each way; tails 1 cycle, with Crossing plus that of cdc_fifo. Dma adds a cycle to both.
/// Reset: axi_rst_ni, synchronous with axi_clk_i, resets both sides. rst_o resets the core and the blocks behind it.
/// Requirements: without Crossing, clk_i is axi_clk_i. Bursts are INCR. s_tail is used for writes only. Not Dma with
/// Crossing.
/// Clock crossing: axi_cdc and reset_sync.
module bypass_bridge
  import bypass_pkg::*;
#(
    /// clk_i and axi_clk_i are different clocks.
    parameter bit Crossing = 1'b0,
    /// A DMA engine.
    parameter bit Dma      = 1'b0
) (
    // The bridge side: 512 bits, 64-bit addresses, 4-bit identifiers.
    input  wire                     axi_clk_i,
    input  wire                     axi_rst_ni,
    input  wire axi_pkg::axi_req_t  s_pcie_req,
    output axi_pkg::axi_resp_t      s_pcie_resp,
    output axi_pkg::axi_req_t       m_pcie_req,
    input  wire axi_pkg::axi_resp_t m_pcie_resp,

    // The core side: registers, window and tails.
    output bypass_axil_req_t       m_axil_req,
    input  wire bypass_axil_resp_t m_axil_resp,
    output window_req_t            m_window_req,
    input  wire window_resp_t      m_window_resp,
    input  wire tail_req_t         s_tail_req,
    output tail_resp_t             s_tail_resp,

    output logic rst_o,
    input  wire  clk_i
);

  if (Dma && Crossing) begin : gen_check_dma
    $fatal(1, "the DMA engine has the bridge's clock in %m");
  end

  // Addresses of the BARs at the bridge (hdl/cards/shell/build_bridge.tcl): BAR 2 is the window, BAR 0 the registers. BAR
  // 4 is the DMA engine, if there is one.
  localparam axi_pkg::region_t Window = '{base: 64'h0, size: 64'h80_0000};
  localparam axi_pkg::region_t Registers = '{base: 64'h100_0000, size: 64'h1_0000};
  localparam axi_pkg::region_t Engine = '{base: 64'h200_0000, size: 64'h2000};
  localparam int unsigned Bars = 2 + 32'(Dma);
  localparam axi_pkg::region_t [2:0] Regions = {Engine, Registers, Window};
  localparam int unsigned Outstanding = 32;  // what the bridge may ask in each direction

  // ---- clocks and resets

  // The initial value is intended: after the FPGA's configuration, the first cycle is a reset.
  // verilator lint_off PROCASSINIT
  logic axi_rst_q = 1'b1;
  // verilator lint_on PROCASSINIT
  logic rst;
  always_ff @(posedge axi_clk_i) axi_rst_q <= !axi_rst_ni;

  axi_pkg::axi_req_t host_req;
  axi_pkg::axi_resp_t host_resp;
  tail_req_t far_tail_req;
  tail_resp_t far_tail_resp;
  if (Crossing) begin : gen_crossing
    reset_sync i_reset (
        .clk_i,
        .rst_i(axi_rst_q),
        .rst_o(rst)
    );
    axi_cdc i_host (
        .s_clk_i   (axi_clk_i),
        .s_rst_i   (axi_rst_q),
        .s_axi_req (s_pcie_req),
        .s_axi_resp(s_pcie_resp),
        .m_clk_i   (clk_i),
        .m_rst_i   (rst),
        .m_axi_req (host_req),
        .m_axi_resp(host_resp)
    );
    axi_cdc #(
        .axi_req_t (tail_req_t),
        .axi_resp_t(tail_resp_t)
    ) i_tails (
        .s_clk_i   (clk_i),
        .s_rst_i   (rst),
        .s_axi_req (s_tail_req),
        .s_axi_resp(s_tail_resp),
        .m_clk_i   (axi_clk_i),
        .m_rst_i   (axi_rst_q),
        .m_axi_req (far_tail_req),
        .m_axi_resp(far_tail_resp)
    );
  end else begin : gen_one_clock
    assign rst = axi_rst_q;
    axi_cut #(
        .CutReady(1'b0)
    ) i_host (
        .clk_i,
        .rst_i     (rst),
        .s_axi_req (s_pcie_req),
        .s_axi_resp(s_pcie_resp),
        .m_axi_req (host_req),
        .m_axi_resp(host_resp)
    );
    assign far_tail_req = s_tail_req;
    assign s_tail_resp  = far_tail_resp;
  end
  assign rst_o = rst;

  // ---- which BAR

  axi_pkg::axi_req_t  [Bars-1:0] bar_req;
  axi_pkg::axi_resp_t [Bars-1:0] bar_resp;
  axi_demux #(
      .Outputs(Bars),
      .Regions(Regions[Bars-1:0]),
      .Outstanding(Outstanding)
  ) i_bars (
      .clk_i,
      .rst_i     (rst),
      .s_axi_req (host_req),
      .s_axi_resp(host_resp),
      .m_axi_req (bar_req),
      .m_axi_resp(bar_resp)
  );

  axi_to_lite #(
      .lite_req_t (bypass_axil_req_t),
      .lite_resp_t(bypass_axil_resp_t)
  ) i_registers (
      .clk_i,
      .rst_i     (rst),
      .s_axi_req (bar_req[1]),
      .s_axi_resp(bar_resp[1]),
      .m_axil_req,
      .m_axil_resp
  );

  // The core's port has narrower addresses and identifiers.
  window_req_t  host_window_req;
  // verilator lint_off UNUSEDSIGNAL  // identifiers
  window_resp_t host_window_resp;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    host_window_req.aw = '{
        id: '0,
        addr: offset_t'(bar_req[0].aw.addr),
        len: bar_req[0].aw.len,
        size: bar_req[0].aw.size,
        burst: bar_req[0].aw.burst,
        cache: bar_req[0].aw.cache,
        prot: bar_req[0].aw.prot
    };
    host_window_req.aw_valid = bar_req[0].aw_valid;
    host_window_req.w = bar_req[0].w;
    host_window_req.w_valid = bar_req[0].w_valid;
    host_window_req.b_ready = bar_req[0].b_ready;
    host_window_req.ar = '{
        id: '0,
        addr: offset_t'(bar_req[0].ar.addr),
        len: bar_req[0].ar.len,
        size: bar_req[0].ar.size,
        burst: bar_req[0].ar.burst,
        cache: bar_req[0].ar.cache,
        prot: bar_req[0].ar.prot
    };
    host_window_req.ar_valid = bar_req[0].ar_valid;
    host_window_req.r_ready = bar_req[0].r_ready;
  end
  assign bar_resp[0] = '{
          aw_ready: host_window_resp.aw_ready,
          w_ready: host_window_resp.w_ready,
          b: '{id: '0, resp: host_window_resp.b.resp},
          b_valid: host_window_resp.b_valid,
          ar_ready: host_window_resp.ar_ready,
          r: '{
              id: '0,
              data: host_window_resp.r.data,
              resp: host_window_resp.r.resp,
              last: host_window_resp.r.last
          },
          r_valid: host_window_resp.r_valid
      };

  // ---- tails

  axi_pkg::axi_req_t  tails_req;
  axi_pkg::axi_resp_t tails_resp;
  axi_from_lite #(
      .lite_req_t (tail_req_t),
      .lite_resp_t(tail_resp_t)
  ) i_tail_writes (
      .clk_i      (axi_clk_i),
      .rst_i      (axi_rst_q),
      .s_axil_req (far_tail_req),
      .s_axil_resp(far_tail_resp),
      .m_axi_req  (tails_req),
      .m_axi_resp (tails_resp)
  );

  // ---- what shares the window and the bridge with them

  if (Dma) begin : gen_dma
    bypass_dma i_dma (
        .*,
        .rst_i        (rst),
        .s_bar_req    (bar_req[2]),
        .s_bar_resp   (bar_resp[2]),
        .s_window_req (host_window_req),
        .s_window_resp(host_window_resp),
        .s_tails_req  (tails_req),
        .s_tails_resp (tails_resp)
    );
  end else begin : gen_no_dma
    assign m_window_req     = host_window_req;
    assign host_window_resp = m_window_resp;
    assign m_pcie_req       = tails_req;
    assign tails_resp       = m_pcie_resp;
  end

endmodule
`default_nettype wire
