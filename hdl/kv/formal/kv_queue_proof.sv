// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of kv_queue: requests are offered in order, each until it is taken. A rewind offers again
/// exactly the requests that were taken and are not done, the oldest first. No other request is offered
/// twice.
/// The proof follows one arbitrary request, which watch_i selects.
module kv_queue_proof #(
    parameter int unsigned Width = 3,
    parameter int unsigned Depth = 4
) (
    input wire             clk_i,
    input wire             rst_i,
    input wire             valid_i,
    input wire [Width-1:0] request_i,
    input wire [Width-1:0] late_i,
    input wire             take_i,
    input wire             done_i,
    input wire             rewind_i,
    input wire             watch_i
);

  localparam int unsigned Bits = $clog2(Depth);
  typedef logic [Bits:0] count_t;

  logic room_o, valid_o;
  logic [Width-1:0] request_o, late_o;
  kv_queue #(
      .Width(Width),
      .LateWidth(Width),
      .Depth(Depth)
  ) dut (
      .*
  );

  // An observer's counts of stored requests, and of those among them that were taken.
  count_t held_q, taken_q;
  `RESET_FIRST
  `ASSUME(comes_with_room, !valid_i || room_o)
  `ASSUME(taken_is_offered, !take_i || valid_o)
  `ASSUME(done_was_taken, !done_i || taken_q != '0)
  `ASSUME(done_or_rewind, !(done_i && rewind_i))

  // The watched request, with the number of earlier requests that are not done.
  logic watching_q, put_q;
  count_t ahead_q;
  logic [Width-1:0] request_q, late_q;
  always_ff @(posedge clk_i) begin
    put_q   <= valid_i;
    held_q  <= held_q + count_t'(valid_i) - count_t'(done_i);
    taken_q <= rewind_i ? '0 : taken_q + count_t'(take_i) - count_t'(done_i);
    if (done_i && watching_q) begin
      ahead_q <= ahead_q - 1'b1;
      if (ahead_q == '0) watching_q <= 1'b0;
    end
    if (valid_i && watch_i && !watching_q) begin
      watching_q <= 1'b1;
      ahead_q    <= held_q - count_t'(done_i);
      request_q  <= request_i;
      late_q     <= late_i;
    end
    if (rst_i) begin
      put_q      <= 1'b0;
      held_q     <= '0;
      taken_q    <= '0;
      watching_q <= 1'b0;
    end
  end

  `ASSERT(offers_what_is_left, valid_o == (taken_q != held_q), "a request is kept back, or made up")
  `ASSERT(offered_in_order, !(watching_q && valid_o && taken_q == ahead_q) || request_o == request_q,
          "a request was changed, or is out of order")
  `ASSERT_NEXT(late_part_follows, watching_q && valid_o && taken_q == ahead_q, late_o == $past(late_q),
               "the late part is another request's")
  `ASSERT(not_too_many, held_q <= count_t'(Depth), "holds more than it has places for")
  `COVER(offered_again, watching_q && valid_o && taken_q == ahead_q && $past(rewind_i))
  `COVER(full, held_q == count_t'(Depth - 2))
  `COVER(done_while_taken, done_i && take_i)

  // For induction: these assertions exclude unreachable starting states.
  `ASSERT(held_is_right, count_t'(dut.write_q - dut.done_q) == held_q, "what is held is not what came")
  `ASSERT(taken_is_right, count_t'(dut.take_q - dut.done_q) == taken_q, "what was taken is not what is tried")
  `ASSERT(taken_is_held, taken_q <= held_q, "more was taken than is there")
  `ASSERT(watched_is_held, !watching_q || ahead_q < held_q, "the watched request was lost")
  `ASSERT(room_is_right, !room_o || held_q <= count_t'(Depth - 4) + count_t'(put_q) || held_q == '0,
          "there is said to be room, and there is none")
  logic [Bits-1:0] place;
  assign place = Bits'(dut.done_q + ahead_q);
  `ASSERT(watched_in_place, !watching_q || dut.i_requests.memory[place] == request_q,
          "the watched request was overwritten")
  `ASSERT(late_in_place, !watching_q || dut.i_late.gen_block.memory[place] == late_q,
          "the watched request's late part was overwritten")

endmodule
`default_nettype wire
