// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// A node of the key-value store behind a commodity NIC. kv_core follows the bypass core. In the place of
/// kv_core's host are the bypass functions, which answer ARP and ping. See docs/design/bypass-functions.md.
///
/// Behaviour: kv_core handles its own received frames, and passes others unchanged to the functions. Their
/// frames return through kv_core, which sends by queue pair 0. Frames in place go to the functions only.
/// Registers: the core's; from 0x8000 the functions'; from 0xC000 kv_core's (docs/reference/kv-registers.md).
/// Latency: the sum of bypass_core and kv_core.
/// Combinational paths: W of s_axi to internal registers; the addresses of s_axil through the address decoder.
/// Reset: all pairs are stopped, kv_core is in no epoch, and the functions receive no frames.
/// Requirements: as bypass_core and kv_core.
module bypass_kv
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
  import kv_core_pkg::AddressBits;
  import kv_core_pkg::kv_axil_req_t;
  import kv_core_pkg::kv_axil_resp_t;
#(
    // Parameters of bypass_core.
    parameter int unsigned QueueBits     = 0,
    parameter int unsigned RxRingBits    = 8,
    parameter int unsigned TxRingBits    = 9,
    parameter int unsigned PackBits      = 9,
    // Parameters of kv_core.
    parameter int unsigned Channels      = 2,
    parameter int unsigned LineCacheBits = 12,
    parameter int unsigned LaneBits      = 12,
    parameter int unsigned MaxFollowers  = 7,
    parameter int unsigned HostBeats     = 4096,
    // Parameters of bypass_function_set.
    parameter int unsigned Rules         = 0,
    parameter bit          Generator     = 1'b0
) (
    `AXI_LITE_SUBORDINATE(s_axil, 16, 32)
    `AXI_SUBORDINATE(s_axi, WindowBits, 512, 6)
    `AXI_LITE_WRITER(m_axil, 64, 32)

    // kv_core's memory.
    `AXI3_MANAGER(m_axi, Channels, AddressBits, 256)

    input wire clk_i,
    input wire rst_i
);

  // ---- registers

  bypass_axil_req_t  axil_req;
  bypass_axil_resp_t axil_resp;
  `AXI_LITE_FROM_FLAT(s_axil, axil_req, axil_resp)
  bypass_axil_req_t  [2:0] block_req;  // the core's, the functions', kv_core's
  bypass_axil_resp_t [2:0] block_resp;
  axi_lite_demux #(
      .axi_req_t(bypass_axil_req_t),
      .axi_resp_t(bypass_axil_resp_t),
      .Outputs(3),
      .Regions({KvRegion, FunctionsBesideKvRegion, CoreRegion})
  ) i_axil (
      .*,
      .s_axil_req (axil_req),
      .s_axil_resp(axil_resp),
      .m_axil_req (block_req),
      .m_axil_resp(block_resp)
  );
  // kv_core decodes the lower 12 address bits and ignores the upper ones.
  kv_axil_req_t  kv_req;
  kv_axil_resp_t kv_resp;
  assign kv_req = '{
          aw: '{addr: block_req[2].aw.addr[11:0]},
          aw_valid: block_req[2].aw_valid,
          w: '{data: block_req[2].w.data, strb: block_req[2].w.strb},
          w_valid: block_req[2].w_valid,
          b_ready: block_req[2].b_ready,
          ar: '{addr: block_req[2].ar.addr[11:0]},
          ar_valid: block_req[2].ar_valid,
          r_ready: block_req[2].r_ready
      };
  assign block_resp[2] = '{
          aw_ready: kv_resp.aw_ready,
          w_ready: kv_resp.w_ready,
          b: '{resp: kv_resp.b.resp},
          b_valid: kv_resp.b_valid,
          ar_ready: kv_resp.ar_ready,
          r: '{data: kv_resp.r.data, resp: kv_resp.r.resp},
          r_valid: kv_resp.r_valid
      };
  logic unused_address;
  assign unused_address = ^{block_req[2].aw.addr[15:12], block_req[2].ar.addr[15:12]};

  // ---- the core

  to_function_t   to_stream;
  from_function_t from_stream;
  to_judge_t      to_judge;
  from_judge_t    from_judge;
  // verilog_lint: waive-start module-port
  bypass_core #(
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits)
  ) i_core (
      .*,
      `AXI_LITE_PORTS(s_axil, block_req[0], block_resp[0]),
      `AXIS_PORTS(m_rx, to_stream.rx.valid, from_stream.rx_ready, to_stream.rx.beat),
      `AXIS_PORTS(s_tx, from_stream.tx.valid, to_stream.tx_ready, from_stream.tx.beat),
      `AXIS_PORTS(m_head, to_judge.head.valid, from_judge.head_ready, to_judge.head.beat),
      `AXIS_PORTS(s_verdict, from_judge.verdict.valid, to_judge.verdict_ready, from_judge.verdict.beat)
  );
  // verilog_lint: waive-stop module-port

  // ---- the key-value store

  to_function_t   foreign;
  from_function_t answer;
  // verilog_lint: waive-start module-port
  kv_core #(
      .Channels(Channels),
      .LineCacheBits(LineCacheBits),
      .LaneBits(LaneBits),
      .MaxFollowers(MaxFollowers),
      .WholeFrames(1'b1),
      .UserWidth(48),
      .HostBeats(HostBeats)
  ) i_kv (
      .*,
      `AXI_LITE_PORTS(s_axil, kv_req, kv_resp),
      `AXIS_PORTS(s_net, to_stream.rx.valid, from_stream.rx_ready, to_stream.rx.beat),
      .s_net_error(1'b0),  // the core has dropped them
      .s_net_size(to_stream.rx.beat.user[15:0]),
      `AXIS_PORTS(m_net, from_stream.tx.valid, to_stream.tx_ready, from_stream.tx.beat),
      `AXIS_PORTS(s_host, answer.tx.valid, foreign.tx_ready, answer.tx.beat),
      `AXIS_PORTS(m_host, foreign.rx.valid, answer.rx_ready, foreign.rx.beat)
  );
  // verilog_lint: waive-stop module-port

  // ---- the functions

  to_function_t   unused;
  from_function_t nobody;  // there is nobody elsewhere
  always_comb begin
    nobody          = '0;
    nobody.rx_ready = 1'b1;
  end
  bypass_function_set #(
      .Rules(Rules),
      .Generator(Generator),
      .Kv(1'b1)
  ) i_functions (
      .*,
      .s_axil_req (block_req[1]),
      .s_axil_resp(block_resp[1]),
      .stream_i   (foreign),
      .stream_o   (answer),
      .place_i    (to_judge),
      .place_o    (from_judge),
      .elsewhere_o(unused),
      .elsewhere_i(nobody)
  );

endmodule
`default_nettype wire
