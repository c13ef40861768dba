// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// bypass_node with its functions and the DMA engine, with flat ports: a top for simulators without SystemVerilog types.
///
/// Behaviour: s_pcie_* is the bridge's master port, with the three BARs. m_pcie_* is its slave port. The function's own
/// streams are unused.
/// Latency: as bypass_node.
/// Reset: rst_i, synchronous. rst_o is high until the core's reset is over.
/// Requirements: as bypass_node.
module bypass_node_dma
  import bypass_pkg::bypass_axis_t;
#(
    /// Of bypass_node.
    parameter int unsigned QueueBits  = 0,
    parameter int unsigned RxRingBits = 6,
    parameter int unsigned TxRingBits = 6,
    parameter int unsigned PackBits   = 9
) (
    `AXI_SUBORDINATE(s_pcie, 64, 512, 4)
    `AXI_MANAGER(m_pcie, 64, 512, 4)

    output logic rst_o,
    input  wire  clk_i,
    input  wire  rst_i
);

  axi_pkg::axi_req_t in_req, out_req;
  axi_pkg::axi_resp_t in_resp, out_resp;
  `AXI_FROM_FLAT(s_pcie, in_req, in_resp)
  `AXI_TO_FLAT(m_pcie, out_req, out_resp)

  // verilator lint_off UNUSEDSIGNAL
  bypass_axis_t [1:0] unused, none;
  logic [1:0] unused_valid, unused_ready;
  kv_core_pkg::memory_req_t [1:0] unused_memory;
  // verilator lint_on UNUSEDSIGNAL
  assign none = '0;
  // verilog_lint: waive-start module-port
  bypass_node #(
      .Functions (1'b1),
      .Dma       (1'b1),
      .QueueBits (QueueBits),
      .RxRingBits(RxRingBits),
      .TxRingBits(TxRingBits),
      .PackBits  (PackBits)
  ) i_node (
      .axi_clk_i(clk_i),
      .axi_rst_ni(!rst_i),
      .s_pcie_req(in_req),
      .s_pcie_resp(in_resp),
      .m_pcie_req(out_req),
      .m_pcie_resp(out_resp),
      `AXIS_PORTS(m_rx, unused_valid[0], 1'b0, unused[0]),
      `AXIS_PORTS(s_tx, 1'b0, unused_ready[0], none[0]),
      `AXIS_PORTS(m_head, unused_valid[1], 1'b0, unused[1]),
      `AXIS_PORTS(s_verdict, 1'b0, unused_ready[1], none[1]),
      .m_memory_req(unused_memory),
      .m_memory_resp('0),
      .memory_ready_i(1'b1),
      .rst_o,
      .clk_i
  );
  // verilog_lint: waive-stop module-port

endmodule
`default_nettype wire
