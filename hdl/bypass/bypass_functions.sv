// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// The bypass core with network functions, which software selects at run time: docs/design/bypass-functions.md.
///
/// Behaviour: as bypass_core, with the functions attached. m_rx and s_tx serve an external function (receive.stream =
/// 3). Frames in place are filtered, then forwarded or echoed. Registers: the core's
/// (docs/reference/bypass-registers.md); from 0x8000 on the functions' (docs/reference/bypass-functions-registers.md).
/// Latency: the sum of bypass_core and bypass_function_set.
/// Combinational paths: W of s_axi to internal registers; the addresses of s_axil through the address decoder.
/// Reset: all pairs are stopped, and the functions receive no frames.
/// Requirements: as bypass_core.
module bypass_functions
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
#(
    // Parameters of bypass_core.
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 8,
    parameter int unsigned TxRingBits = 9,
    parameter int unsigned PackBits   = 9,
    // Parameters of bypass_function_set.
    parameter int unsigned Rules      = MaxRules,
    parameter bit          Generator  = 1'b1
) (
    `AXI_LITE_SUBORDINATE(s_axil, 16, 32)
    `AXI_SUBORDINATE(s_axi, WindowBits, 512, 6)
    `AXI_LITE_WRITER(m_axil, 64, 32)

    // Streams between the core and an external function.
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)

    input wire clk_i,
    input wire rst_i
);

  // ---- registers

  bypass_axil_req_t  axil_req;
  bypass_axil_resp_t axil_resp;
  `AXI_LITE_FROM_FLAT(s_axil, axil_req, axil_resp)
  bypass_axil_req_t  [1:0] block_req;  // the core's, the functions'
  bypass_axil_resp_t [1:0] block_resp;
  axi_lite_demux #(
      .axi_req_t(bypass_axil_req_t),
      .axi_resp_t(bypass_axil_resp_t),
      .Regions({FunctionsRegion, CoreRegion})
  ) i_axil (
      .*,
      .s_axil_req (axil_req),
      .s_axil_resp(axil_resp),
      .m_axil_req (block_req),
      .m_axil_resp(block_resp)
  );

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

  // ---- the functions

  to_function_t   outside;
  from_function_t from_outside;
  assign {m_rx_tuser, m_rx_tlast, m_rx_tkeep, m_rx_tdata} = outside.rx.beat;
  assign m_rx_tvalid = outside.rx.valid;
  assign s_tx_tready = outside.tx_ready;
  assign from_outside = {s_tx_tvalid, s_tx_tuser, s_tx_tlast, s_tx_tkeep, s_tx_tdata, m_rx_tready};
  bypass_function_set #(
      .Rules(Rules),
      .Generator(Generator)
  ) i_functions (
      .*,
      .s_axil_req (block_req[1]),
      .s_axil_resp(block_resp[1]),
      .stream_i   (to_stream),
      .stream_o   (from_stream),
      .place_i    (to_judge),
      .place_o    (from_judge),
      .elsewhere_o(outside),
      .elsewhere_i(from_outside)
  );

endmodule
`default_nettype wire
