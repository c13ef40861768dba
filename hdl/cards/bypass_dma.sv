// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// The DMA engine beside the bypass core, for rings in the host's memory (docs/design/bypass-host-rings.md).
///
/// Behaviour: s_bar has the engine's registers and doorbells (dma_axi). The engine and the host's accesses (s_window)
/// take turns at the core's window, by bursts. The engine and the core's tails take turns at the bridge (m_pcie). A card
/// address of the engine is an offset in the window. Beyond the window, it gets SLVERR.
/// An access of the host never waits for a read of the host by the engine:
/// - At the window, a burst of the engine is asked for when all its data are here, or have room here. So it ends
///   without the host, and the host's burst behind it begins.
/// - A doorbell waits for the engine's registers only (see dma_axi), a register for at most 520 cycles after a reset.
/// - At m_pcie, a write of the engine is whole before it begins, so a tail behind it waits for the bridge's W only.
/// So the bridge always takes posted writes, and the completions behind them reach the engine.
/// Latency: 1 cycle each way at the window and at m_pcie (axi_cut).
/// Reset: as dma_axi.
/// Requirements: as dma_axi. s_window and s_tails use id 0.
module bypass_dma
  import axi_pkg::axi_req_t;
  import axi_pkg::axi_resp_t;
  import bypass_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_bar_req,
    output axi_resp_t     s_bar_resp,

    // verilator lint_off UNUSEDSIGNAL  // identifiers
    input  wire window_req_t  s_window_req,
    // verilator lint_on UNUSEDSIGNAL
    output window_resp_t      s_window_resp,
    output window_req_t       m_window_req,
    input  wire window_resp_t m_window_resp,

    // verilator lint_off UNUSEDSIGNAL  // identifiers
    input  wire axi_req_t  s_tails_req,
    // verilator lint_on UNUSEDSIGNAL
    output axi_resp_t      s_tails_resp,
    output axi_req_t       m_pcie_req,
    input  wire axi_resp_t m_pcie_resp
);

  // One bit of the identifier names the manager.
  `AXI_TYPES(part, WindowBits, 512, 5)
  `AXI_TYPES(side, 64, 512, 3)

  axi_req_t card_req;
  axi_resp_t card_resp;
  side_req_t [1:0] side_req;
  side_resp_t [1:0] side_resp;
  logic unused_unexpected, unused_timed_out, unused_refused;
  dma_axi #(
      .host_req_t (side_req_t),
      .host_resp_t(side_resp_t)
  ) i_dma (
      .*,
      .s_axi_req   (s_bar_req),
      .s_axi_resp  (s_bar_resp),
      .m_host_req  (side_req[1]),
      .m_host_resp (side_resp[1]),
      .m_card_req  (card_req),
      .m_card_resp (card_resp),
      .unexpected_o(unused_unexpected),
      .timed_out_o (unused_timed_out),
      .refused_o   (unused_refused)
  );

  // ---- the window: 0 the host, 1 the engine

  // In no region, of any parameters of the core.
  localparam offset_t Nowhere = 23'h3F_0000;
  function automatic offset_t window_offset(logic [63:0] address);
    return address[63:WindowBits] == '0 ? offset_t'(address) : Nowhere | offset_t'(address[axi_pkg::BoundaryBits-1:0]);
  endfunction

  part_req_t  [1:0] part_req;
  part_resp_t [1:0] part_resp;
  // The id is an address's first field, so a narrower type drops its top bits.
  always_comb begin
    part_req[0] = '{
        aw: $bits(part_a_t)'(s_window_req.aw),
        aw_valid: s_window_req.aw_valid,
        w: s_window_req.w,
        w_valid: s_window_req.w_valid,
        b_ready: s_window_req.b_ready,
        ar: $bits(part_a_t)'(s_window_req.ar),
        ar_valid: s_window_req.ar_valid,
        r_ready: s_window_req.r_ready
    };
    part_req[1] = '{
        aw: '{
            id: '0,
            addr: window_offset(card_req.aw.addr),
            len: card_req.aw.len,
            size: card_req.aw.size,
            burst: card_req.aw.burst,
            cache: card_req.aw.cache,
            prot: card_req.aw.prot
        },
        aw_valid: card_req.aw_valid,
        w: card_req.w,
        w_valid: card_req.w_valid,
        b_ready: card_req.b_ready,
        ar: '{
            id: '0,
            addr: window_offset(card_req.ar.addr),
            len: card_req.ar.len,
            size: card_req.ar.size,
            burst: card_req.ar.burst,
            cache: card_req.ar.cache,
            prot: card_req.ar.prot
        },
        ar_valid: card_req.ar_valid,
        r_ready: card_req.r_ready
    };
  end
  assign s_window_resp = '{
          aw_ready: part_resp[0].aw_ready,
          w_ready: part_resp[0].w_ready,
          b: $bits(s_window_resp.b)'(part_resp[0].b),
          b_valid: part_resp[0].b_valid,
          ar_ready: part_resp[0].ar_ready,
          r: $bits(s_window_resp.r)'(part_resp[0].r),
          r_valid: part_resp[0].r_valid
      };
  assign card_resp = '{
          aw_ready: part_resp[1].aw_ready,
          w_ready: part_resp[1].w_ready,
          b: $bits(card_resp.b)'(part_resp[1].b),
          b_valid: part_resp[1].b_valid,
          ar_ready: part_resp[1].ar_ready,
          r: $bits(card_resp.r)'(part_resp[1].r),
          r_valid: part_resp[1].r_valid
      };

  window_req_t  window_req;
  window_resp_t window_resp;
  axi_mux #(
      .s_axi_req_t (part_req_t),
      .s_axi_resp_t(part_resp_t),
      .m_axi_req_t (window_req_t),
      .m_axi_resp_t(window_resp_t),
      .Inputs      (2)
  ) i_window (
      .*,
      .s_axi_req (part_req),
      .s_axi_resp(part_resp),
      .m_axi_req (window_req),
      .m_axi_resp(window_resp)
  );
  axi_cut #(
      .axi_req_t (window_req_t),
      .axi_resp_t(window_resp_t),
      .CutReady  (1'b0)
  ) i_window_cut (
      .*,
      .s_axi_req (window_req),
      .s_axi_resp(window_resp),
      .m_axi_req (m_window_req),
      .m_axi_resp(m_window_resp)
  );

  // ---- the bridge: 0 the tails, 1 the engine

  always_comb begin
    side_req[0] = '{
        aw: $bits(side_a_t)'(s_tails_req.aw),
        aw_valid: s_tails_req.aw_valid,
        w: s_tails_req.w,
        w_valid: s_tails_req.w_valid,
        b_ready: s_tails_req.b_ready,
        ar: '0,
        ar_valid: 1'b0,
        r_ready: 1'b1
    };
  end
  assign s_tails_resp = '{
          aw_ready: side_resp[0].aw_ready,
          w_ready: side_resp[0].w_ready,
          b: $bits(s_tails_resp.b)'(side_resp[0].b),
          b_valid: side_resp[0].b_valid,
          ar_ready: 1'b0,
          r: '0,
          r_valid: 1'b0
      };

  axi_req_t  joined_req;
  axi_resp_t joined_resp;
  axi_mux #(
      .s_axi_req_t (side_req_t),
      .s_axi_resp_t(side_resp_t),
      .m_axi_req_t (axi_req_t),
      .m_axi_resp_t(axi_resp_t),
      .Inputs      (2)
  ) i_host (
      .*,
      .s_axi_req (side_req),
      .s_axi_resp(side_resp),
      .m_axi_req (joined_req),
      .m_axi_resp(joined_resp)
  );
  axi_cut #(
      .CutReady(1'b0)
  ) i_host_cut (
      .*,
      .s_axi_req (joined_req),
      .s_axi_resp(joined_resp),
      .m_axi_req (m_pcie_req),
      .m_axi_resp(m_pcie_resp)
  );

  logic unused;
  assign unused = ^{card_req.aw.id, card_req.ar.id, side_resp[0]};

endmodule
`default_nettype wire
