// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Tracks the answers that one memory port has still to give, and the write data that it has still to receive.
///
/// Behaviour: settled_o: memory has answered all accepted reads and writes, so
/// it has all write data. idle_o: in addition, no request waits to be accepted.
/// Latency: none from the valids to idle_o; one cycle otherwise.
/// Reset: clear_i forgets all accesses. The FPGA's configuration does the same.
/// Requirements: fewer than 2^Bits beats in flight.
module kv_box_watch
  import kv_core_pkg::*;
#(
    /// Width of the counters; at least 6.
    parameter int unsigned Bits = 12
) (
    input wire clk_i,
    input wire clear_i,

    // verilator lint_off UNUSEDSIGNAL  // handshakes alone
    input wire memory_req_t  axi_req,
    input wire memory_resp_t axi_resp,
    // verilator lint_on UNUSEDSIGNAL

    output logic settled_o,
    output logic idle_o
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Bits < 6) begin : gen_check_bits
    $fatal(1, "Bits must be at least 6 in %m");
  end

  logic [Bits-1:0] reads_q = '0;  // beats to come
  logic [Bits-1:0] writes_q = '0;  // bursts to be confirmed
  logic ar, r, aw, b;

  assign ar = axi_req.ar_valid && axi_resp.ar_ready;
  assign r  = axi_resp.r_valid && axi_req.r_ready;
  assign aw = axi_req.aw_valid && axi_resp.aw_ready;
  assign b  = axi_resp.b_valid && axi_req.b_ready;

  always_ff @(posedge clk_i) begin
    reads_q  <= reads_q + (ar ? Bits'(axi_req.ar.len) + 1'b1 : '0) - Bits'(r);
    writes_q <= writes_q + Bits'(aw) - Bits'(b);
    if (clear_i) begin
      reads_q  <= '0;
      writes_q <= '0;
    end
  end

  assign settled_o = reads_q == '0 && writes_q == '0;
  assign idle_o    = settled_o && !axi_req.ar_valid && !axi_req.aw_valid && !axi_req.w_valid;

`ifndef SYNTHESIS
  logic rst_i;
  assign rst_i = clear_i;
  `ASSERT(answered_what_was_asked, !axi_resp.r_valid || reads_q != '0, "memory answers what nobody asked")
  `ASSERT(confirmed_what_was_written, !axi_resp.b_valid || writes_q != '0, "memory confirms what nobody wrote")
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
