// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves bypass_doorbell for any ring, NIC and bus: a tail never passes want_i. Without a timer,
/// unanswered tails stay within the credits. With a timer, a tail that differs is eventually written.
module bypass_doorbell_proof
  import bypass_pkg::*;
#(
    parameter bit Timer = 1'b0
) (
    input wire clk_i,
    input wire rst_i,
    input wire run_i,
    input wire bell_settings_t settings_i,
    input wire [2:0] grows_i,
    input wire announce_i,
    input wire fetched_i,
    input wire [1:0] group_i,  // of Bits - 2
    input wire m_ready
);

  localparam int unsigned Bits = 4;
  localparam index_t Mask = index_t'((1 << Bits) - 1);

  logic m_valid, announced;
  gave_t gave_o;
  index_t m_payload, told_o, want_q, free;
  bypass_doorbell #(
      .Bits(Bits)
  ) dut (
      .*,
      .begin_i(1'b0),
      .want_i (want_q),
      .grows_i(announced)
  );

  // Where grows_i is allowed, growth may be announced or not, and an announced growth may fail to come.
  assign announced = announce_i && (grows_i == 3'd0 || (grows_i == 3'd1 && free != '0)) && settings_i.batch <= 8'd1
      && settings_i.align == '0;
  // Room to grow: a ring is never full.
  assign free = Mask - ((want_q - told_o) & Mask);
  logic [4:0] written_q, answered_q;  // tails, and those that a fetch has answered, modulo 32
  logic [4:0] waits_q;  // cycles for which a tail has differed
  logic [3:0] credits;
  logic differs;
  assign credits = settings_i.credits == '0 ? 4'd1 : settings_i.credits;
  assign differs = gave_o.count != '0;
  always_ff @(posedge clk_i) begin
    if (index_t'(grows_i) <= free) want_q <= (want_q + index_t'(grows_i)) & Mask;
    if (gave_o.valid) written_q <= written_q + 1'b1;
    // A fetch answers one tail that was written before or is being written, or all of them.
    if (fetched_i && (gave_o.valid || written_q != answered_q)) begin
      answered_q <= !gave_o.valid && dut.reaches ? written_q : answered_q + 1'b1;
    end
    waits_q <= !differs || gave_o.valid || !run_i ? '0 : waits_q + 5'(waits_q != '1);
    if (rst_i) begin
      want_q     <= '0;
      written_q  <= '0;
      answered_q <= '0;
      waits_q    <= '0;
    end
  end

  `RESET_FIRST
  `ASSUME(small_align, settings_i.align <= 3'd2)
  `ASSUME_NEXT(settings_stay, 1'b1, settings_i == $past(settings_i))
  if (Timer) begin : gen_timer
    `ASSUME(timer_of_six, settings_i.timer == 16'd6)
    `ASSERT(rings_in_the_end, !(waits_q > 5'd8) || m_valid, "a tail is never written")
    `ASSERT(timer_within, !differs || dut.wait_q <= 16'd6, "more is left than there was")
    `ASSERT(waits_are_counted, waits_q == '0 || dut.expired_q || 16'd6 - dut.wait_q >= 16'(waits_q),
            "the timer is late")
  end else begin : gen_no_timer
    `ASSUME(no_timer, settings_i.timer == '0)
    `ASSERT(conserved, 4'(written_q - answered_q) == dut.unanswered_q && 5'(written_q - answered_q) < 5'd16,
            "a credit is lost, or there is one too many")
    `ASSERT(within_credits, dut.unanswered_q <= credits && (!m_valid || dut.unanswered_q < credits),
            "more tails than credits")
    `ASSERT(timer_is_off, !dut.expired_q, "a timer expires that is off")
  end
  `ASSERT(within_want, gave_o.count <= ((want_q - told_o) & Mask), "a tail is ahead of what is there")
  `ASSERT(in_the_ring, (told_o | want_q) <= Mask, "a pointer is outside its ring")
  `ASSERT(aligned, (told_o & ~('1 << settings_i.align)) == '0, "a tail is not aligned")
  `ASSERT(rings_for_something, !m_valid || differs, "it rings for nothing")
  `ASSERT(newest, !gave_o.valid || m_payload == (want_q & ('1 << settings_i.align)), "an old tail is written")

  `COVER(went_round, told_o == 12'd2 && written_q > 5'd4)
  `COVER(waits_for_the_bus, m_valid && !m_ready && $past(m_valid))

endmodule
`default_nettype wire
