// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A transmit ring: how many descriptors the NIC has.
///
/// Behaviour: tail_o goes up with each frame that is posted, while there are fewer than limit_i that are not done, and fewer than the ring has, less one.
/// They are done in order. Heads that the NIC writes back count if they are ahead of the last one and not ahead of the tail;
/// reported_o: the oldest frame's descriptor was written back; told_o: the NIC knows of it.
/// Latency: 1 cycle.
/// Reset: empty.
/// Requirements: post_i only with room_o; done_i only of what was posted; begin_i only while idle_o.
module bypass_tx_ring
  import bypass_pkg::*;
#(
    parameter queue_t Queue = '0,
    /// 2^n descriptors.
    parameter int unsigned Bits = 9
) (
    input wire clk_i,
    input wire rst_i,

    /// The ring begins anew.
    input wire begin_i,
    input wire index_t limit_i,

    input wire post_i,
    input wire done_i,
    input wire tx_written_t written_i,
    output logic unexpected_o,

    output index_t tail_o,
    output index_t given_o,
    output logic room_o,
    output logic reported_o,
    /// Of the oldest frame; the ring's tail, as it was written.
    output logic told_o,
    input wire index_t told_i,
    output logic idle_o
);

  localparam index_t Mask = index_t'((1 << Bits) - 1);

  index_t tail_q, done_q, given_q, reported_q;  // reported_q: the head that was written back last
  index_t limit, ahead, said;
  logic mine, counts, room_q;
  assign limit = limit_i < Mask ? limit_i : Mask;
  assign mine = written_i.valid && written_i.pair == Queue;
  assign ahead = (tail_q - reported_q) & Mask;
  assign said = (written_i.head - reported_q) & Mask;
  assign counts = said <= ahead;
  assign unexpected_o = mine && !counts;

  always_ff @(posedge clk_i) begin
    if (post_i) tail_q <= (tail_q + 1'b1) & Mask;
    if (done_i) done_q <= (done_q + 1'b1) & Mask;
    given_q <= given_q + index_t'(post_i) - index_t'(done_i);
    // post_i is late. What is done makes room a cycle later.
    room_q  <= post_i ? given_q + 1'b1 < limit : given_q < limit;
    if (mine && counts && said != '0) reported_q <= written_i.head & Mask;
    // What is taken back without having been written back.
    else if (done_i && !reported_o) reported_q <= (done_q + 1'b1) & Mask;
    if (rst_i || begin_i) begin
      tail_q     <= '0;
      done_q     <= '0;
      given_q    <= '0;
      reported_q <= '0;
      room_q     <= 1'b0;
    end
  end

  assign tail_o     = tail_q;
  assign given_o    = given_q;
  assign room_o     = room_q;
  assign reported_o = reported_q != done_q;
  assign told_o     = told_i != done_q;
  assign idle_o     = given_q == '0;

  `ASSERT(given_is_right, given_q == ((tail_q - done_q) & Mask), "what the NIC has is miscounted")
  `ASSERT(posts_with_room, !post_i || room_q, "the tail passes the head")
  `ASSERT(done_was_posted, !done_i || given_q != '0, "a frame is done that was not posted")
  `ASSERT(reported_was_posted, ((reported_q - done_q) & Mask) <= given_q, "the NIC reported what it does not have")
  `ASSERT(begins_idle, !begin_i || idle_o, "a ring begins anew while frames of it are under way")

endmodule
`default_nettype wire
