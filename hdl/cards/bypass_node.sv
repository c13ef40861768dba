// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// The bypass core and the design behind it, with an AXI4 port for a PCIe bridge: a card without the vendor's cells.
/// See docs/guide/cards.md.
///
/// Behaviour: one of three designs follows bypass_bridge. Without Functions and Kv: bypass_core, with four
/// streams for a user's function. Functions: bypass_functions, whose register `receive` may select the
/// external streams m_rx and s_tx. Kv: bypass_kv, with memory. Unused streams offer and accept no beats.
/// Dma: a DMA engine at a third BAR, for rings in the host's memory (bypass_dma).
/// Latency: the sum of bypass_bridge and the design behind it.
/// Reset: axi_rst_ni, synchronous with axi_clk_i. With Kv, a reset waits until memory was idle for 64
/// cycles (kv_box_reset), because memory would take the rest of a broken burst for a part of the next
/// one. It then lasts until memory_ready_i. Meanwhile the bridge is ignored. rst_o resets the function.
/// Requirements: as bypass_bridge, bypass_core and kv_core. Kv and Dma require that Crossing is 0, and exclude each
/// other.
module bypass_node
  import axi_pkg::axi_req_t;
  import axi_pkg::axi_resp_t;
  import bypass_pkg::*;
  import bypass_functions_pkg::MaxRules;
  import kv_core_pkg::AddressBits;
  import kv_core_pkg::memory_req_t;
  import kv_core_pkg::memory_resp_t;
#(
    parameter bit          Functions     = 1'b0,
    parameter bit          Kv            = 1'b0,
    /// clk_i and axi_clk_i are different clocks.
    parameter bit          Crossing      = 1'b0,
    /// A DMA engine.
    parameter bit          Dma           = 1'b0,
    /// Parameters of bypass_core.
    parameter int unsigned QueueBits     = 0,
    parameter int unsigned RxRingBits    = 8,
    parameter int unsigned TxRingBits    = 9,
    parameter int unsigned PackBits      = 9,
    /// Parameters of bypass_function_set.
    parameter int unsigned Rules         = MaxRules,
    parameter bit          Generator     = 1'b1,
    /// Parameters of kv_core.
    parameter int unsigned Channels      = 2,
    parameter int unsigned LineCacheBits = 12,
    parameter int unsigned LaneBits      = 12,
    parameter int unsigned MaxFollowers  = 7,
    parameter int unsigned HostBeats     = 4096
) (
    // The bridge side: 512 bits, 64-bit addresses, 4-bit identifiers.
    input  wire            axi_clk_i,
    input  wire            axi_rst_ni,
    input  wire axi_req_t  s_pcie_req,
    output axi_resp_t      s_pcie_resp,
    output axi_req_t       m_pcie_req,
    input  wire axi_resp_t m_pcie_resp,

    // Streams between the core and the function: see bypass_core.
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)
    `AXIS_TRANSMITTER(m_head, 512, 48)
    `AXIS_RECEIVER(s_verdict, 512, 48)

    // kv_core's memory.
    output memory_req_t       [Channels-1:0] m_memory_req,
    input  wire memory_resp_t [Channels-1:0] m_memory_resp,
    input  wire                              memory_ready_i,

    output logic rst_o,
    input  wire  clk_i
);

  if (Kv && (Crossing || Functions)) begin : gen_check_kv
    $fatal(1, "Kv has the bridge's clock, and functions of its own, in %m");
  end

  if (Dma && (Crossing || Kv)) begin : gen_check_dma
    $fatal(1, "Dma has the bridge's clock, and no place beside Kv, in %m");
  end

  // ---- the bridge

  logic bridge_rst_n, rst;
  axi_req_t in_req, out_req;
  axi_resp_t in_resp, out_resp;
  bypass_axil_req_t register_req;
  bypass_axil_resp_t register_resp;
  window_req_t window_req;
  window_resp_t window_resp;
  tail_req_t tail_req;
  // verilator lint_off UNUSEDSIGNAL  // nothing is read there
  tail_resp_t tail_resp;
  // verilator lint_on UNUSEDSIGNAL
  bypass_bridge #(
      .Crossing(Crossing),
      .Dma     (Dma)
  ) i_bridge (
      .*,
      .axi_rst_ni   (bridge_rst_n),
      .s_pcie_req   (in_req),
      .s_pcie_resp  (in_resp),
      .m_pcie_req   (out_req),
      .m_pcie_resp  (out_resp),
      .m_axil_req   (register_req),
      .m_axil_resp  (register_resp),
      .m_window_req (window_req),
      .m_window_resp(window_resp),
      .s_tail_req   (tail_req),
      .s_tail_resp  (tail_resp),
      .rst_o        (rst)
  );
  assign rst_o             = rst;
  assign tail_req.ar       = '0;
  assign tail_req.ar_valid = 1'b0;
  assign tail_req.r_ready  = 1'b1;

  // ---- without a kv core the design has no memory, so nothing waits for memory

  if (!Kv) begin : gen_no_memory
    assign bridge_rst_n = axi_rst_ni;
    assign in_req       = s_pcie_req;
    assign s_pcie_resp  = in_resp;
    assign m_pcie_req   = out_req;
    assign out_resp     = m_pcie_resp;
    assign m_memory_req = '0;
    logic unused_memory;
    assign unused_memory = ^{m_memory_resp, memory_ready_i};
  end

  // ---- what is behind it

  // verilog_lint: waive-start module-port
  if (Kv) begin : gen_kv
    memory_req_t  [Channels-1:0] memory_req;
    memory_resp_t [Channels-1:0] memory_resp;
    logic [Channels-1:0] settled, idle;
    logic stop, closed, done, rest_rst, rest_rst_q, deaf;
    kv_box_reset i_rest (
        .*,
        .axil_clk_i    (clk_i),
        .mod_rstn_i    (axi_rst_ni),
        .mod_rst_done_o(done),
        .quiet_i       (&idle),
        .settled_i     (&settled),
        .stop_o        (stop),
        .closed_o      (closed),
        .rst_o         (rest_rst)
    );
    assign bridge_rst_n = !rest_rst;
    always_ff @(posedge clk_i) rest_rst_q <= rest_rst;

    // Until the reset is over, the IP's requests wait, and answers to requests from before the reset are discarded.
    assign deaf = !axi_rst_ni || !done || stop || closed || rst;
    always_comb begin
      in_req      = s_pcie_req;
      s_pcie_resp = in_resp;
      m_pcie_req  = out_req;
      out_resp    = m_pcie_resp;
      if (deaf) begin
        {in_req.aw_valid, in_req.w_valid, in_req.ar_valid} = '0;
        {in_req.b_ready, in_req.r_ready} = '1;
        {s_pcie_resp.aw_ready, s_pcie_resp.w_ready, s_pcie_resp.ar_ready} = '0;
        {s_pcie_resp.b_valid, s_pcie_resp.r_valid} = '0;
        {m_pcie_req.aw_valid, m_pcie_req.w_valid} = '0;
        {out_resp.aw_ready, out_resp.w_ready, out_resp.b_valid} = '0;
      end
    end

    `AXI3_NETS(m_axi, Channels, AddressBits, 256)
    for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
      `AXI3_FROM_FLAT(m_axi, c, memory_req[c], memory_resp[c])
      always_comb begin
        m_memory_req[c] = memory_req[c];
        memory_resp[c]  = m_memory_resp[c];
        if (closed) begin
          {m_memory_req[c].aw_valid, m_memory_req[c].w_valid, m_memory_req[c].ar_valid} = '0;
          {m_memory_req[c].b_ready, m_memory_req[c].r_ready} = '1;
          {memory_resp[c].aw_ready, memory_resp[c].w_ready, memory_resp[c].ar_ready} = '0;
          {memory_resp[c].b_valid, memory_resp[c].r_valid} = '0;
        end
      end
      kv_box_watch i_watch (
          .clk_i,
          .clear_i  (rest_rst_q && !rest_rst),
          .axi_req  (m_memory_req[c]),
          .axi_resp (m_memory_resp[c]),
          .settled_o(settled[c]),
          .idle_o   (idle[c])
      );
    end
    bypass_kv #(
        .QueueBits(QueueBits),
        .RxRingBits(RxRingBits),
        .TxRingBits(TxRingBits),
        .PackBits(PackBits),
        .Channels(Channels),
        .LineCacheBits(LineCacheBits),
        .LaneBits(LaneBits),
        .MaxFollowers(MaxFollowers),
        .HostBeats(HostBeats)
    ) i_behind (
        .*,
        .rst_i(rst),
        `AXI_LITE_PORTS(s_axil, register_req, register_resp),
        `AXI_PORTS(s_axi, window_req, window_resp),
        `AXI_LITE_WRITER_PORTS(m_axil, tail_req, tail_resp)
    );
    assign {m_rx_tvalid, m_rx_tdata, m_rx_tkeep, m_rx_tlast, m_rx_tuser, s_tx_tready} = '0;
    logic unused_streams;
    assign unused_streams = ^{m_rx_tready, s_tx_tvalid, s_tx_tdata, s_tx_tkeep, s_tx_tlast, s_tx_tuser};
  end else if (Functions) begin : gen_functions
    bypass_functions #(
        .QueueBits(QueueBits),
        .RxRingBits(RxRingBits),
        .TxRingBits(TxRingBits),
        .PackBits(PackBits),
        .Rules(Rules),
        .Generator(Generator)
    ) i_behind (
        .*,
        .rst_i(rst),
        `AXI_LITE_PORTS(s_axil, register_req, register_resp),
        `AXI_PORTS(s_axi, window_req, window_resp),
        `AXI_LITE_WRITER_PORTS(m_axil, tail_req, tail_resp)
    );
  end else begin : gen_core
    bypass_core #(
        .QueueBits (QueueBits),
        .RxRingBits(RxRingBits),
        .TxRingBits(TxRingBits),
        .PackBits  (PackBits)
    ) i_behind (
        .*,
        .rst_i(rst),
        `AXI_LITE_PORTS(s_axil, register_req, register_resp),
        `AXI_PORTS(s_axi, window_req, window_resp),
        `AXI_LITE_WRITER_PORTS(m_axil, tail_req, tail_resp)
    );
  end
  // verilog_lint: waive-stop module-port

  if (Functions || Kv) begin : gen_no_judge
    assign {m_head_tvalid, m_head_tdata, m_head_tkeep, m_head_tlast, m_head_tuser, s_verdict_tready} = '0;
    logic unused_judge;
    assign unused_judge = ^{m_head_tready, s_verdict_tvalid, s_verdict_tdata, s_verdict_tkeep, s_verdict_tlast,
                            s_verdict_tuser};
  end

endmodule
`default_nettype wire
