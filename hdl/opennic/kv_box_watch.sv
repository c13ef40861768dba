// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Knows what one port of memory still owes, and is owed.
///
/// Behaviour: settled_o: all reads and writes that memory has taken have been answered, and so every write has had its data. idle_o: that, and
/// nothing waits to be taken.
/// Latency: none from the valids to idle_o, one cycle for the rest.
/// Reset: clear_i forgets everything. It begins so when the FPGA has been configured.
/// Requirements: fewer than 2^Bits beats on their way.
module kv_box_watch #(
    /// Of the counters; at least 6.
    parameter int unsigned Bits = 12
) (
    input wire clk_i,
    input wire clear_i,

    input wire       arvalid_i,
    input wire       arready_i,
    input wire [3:0] arlen_i,
    input wire       rvalid_i,
    input wire       rready_i,
    input wire       awvalid_i,
    input wire       awready_i,
    input wire       wvalid_i,
    input wire       bvalid_i,
    input wire       bready_i,

    output logic settled_o,
    output logic idle_o
);

  // Initial values are meant: those of the FPGA's configuration.
  // verilator lint_off PROCASSINIT

  if (Bits < 6) begin : gen_check_bits
    $fatal(1, "Bits must be at least 6 in %m");
  end

  logic [Bits-1:0] reads_q = '0;  // beats to come
  logic [Bits-1:0] writes_q = '0;  // bursts to be confirmed
  logic ar, r, aw, b;

  assign ar = arvalid_i && arready_i;
  assign r  = rvalid_i && rready_i;
  assign aw = awvalid_i && awready_i;
  assign b  = bvalid_i && bready_i;

  always_ff @(posedge clk_i) begin
    reads_q  <= reads_q + (ar ? Bits'(arlen_i) + 1'b1 : '0) - Bits'(r);
    writes_q <= writes_q + Bits'(aw) - Bits'(b);
    if (clear_i) begin
      reads_q  <= '0;
      writes_q <= '0;
    end
  end

  assign settled_o = reads_q == '0 && writes_q == '0;
  assign idle_o    = settled_o && !arvalid_i && !awvalid_i && !wvalid_i;

`ifndef SYNTHESIS
  logic rst_i;
  assign rst_i = clear_i;
  `ASSERT(answered_what_was_asked, !rvalid_i || reads_q != '0, "memory answers what nobody asked")
  `ASSERT(confirmed_what_was_written, !bvalid_i || writes_q != '0, "memory confirms what nobody wrote")
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
