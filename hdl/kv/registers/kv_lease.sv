// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The core's clock, and the lease that ends by this clock. A part of kv_registers.
///
/// Behaviour: cycles_o is the register `cycles`. Its high word is latched when the low word is read. A write of the
/// lease's high word sets both words. All ones means for ever.
/// Latency: leased_o 1 cycle. The lease ends with the first cycle in which `cycles` could be read as the lease's value.
/// Reset: the clock is 0, and there is no lease.
/// Requirements: none.
module kv_lease
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire register_look_t  look_i,
    input wire register_write_t write_i,
    // verilator lint_on UNUSEDSIGNAL

    output logic [63:0] cycles_o,
    output logic        leased_o
);

  logic [63:0] cycles_q, lease_q;
  logic [31:0] cycles_high_q, lease_low_q;
  logic ones, low_ones_q, never_q;
  assign ones     = write_i.value == '1;
  assign cycles_o = {cycles_high_q, cycles_q[31:0]};

  always_ff @(posedge clk_i) begin
    cycles_q <= cycles_q + 1'b1;
    if (look_i.valid && look_i.reads && look_i.in_file && look_i.word == CyclesWord) cycles_high_q <= cycles_q[63:32];
    leased_o <= never_q || cycles_q < lease_q;
    if (write_i.valid && write_i.word == LeaseWord) begin
      lease_low_q <= write_i.value;
      low_ones_q  <= ones;
    end
    if (write_i.valid && write_i.word == LeaseWord + 7'd1) begin
      lease_q <= {write_i.value, lease_low_q};
      never_q <= ones && low_ones_q;
    end
    if (rst_i) begin
      cycles_q    <= {CyclesReset, CyclesReset};
      lease_low_q <= LeaseReset;
      lease_q     <= {LeaseReset, LeaseReset};
      low_ones_q  <= 1'b0;
      never_q     <= 1'b0;
      leased_o    <= 1'b0;
    end
  end

endmodule
`default_nettype wire
