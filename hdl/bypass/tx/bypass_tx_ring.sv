// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A transmit ring: the number of descriptors that the NIC has.
///
/// Behaviour: each posted frame advances state_o.tail. At most limit_i frames are in work, and at most the ring's
/// size less one. They are done in order. A written-back head counts if it lies after the last one, up to the tail.
/// Latency: 1 cycle.
/// Reset: empty.
/// Requirements: post_i only with state_o.room; done only for posted frames; begin_i only while state_o.idle.
module bypass_tx_ring
  import bypass_pkg::*;
#(
    parameter queue_t Queue = '0,
    /// 2^n descriptors.
    parameter int unsigned Bits = 9
) (
    input wire clk_i,
    input wire rst_i,

    /// The ring restarts empty.
    input wire begin_i,
    input wire index_t limit_i,

    // verilator lint_off UNUSEDSIGNAL  // what of it is this ring's
    input  wire news_t  news_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire         post_i,
    /// The ring's tail as it was last written to the NIC.
    input  wire index_t told_i,
    output tx_ring_t    state_o
);

  localparam index_t Mask = index_t'((1 << Bits) - 1);

  index_t tail_q, done_q, given_q, reported_q;  // reported_q: the head that was written back last
  index_t limit, ahead, said;
  logic mine, counts, done, reported, room_q;
  assign limit = limit_i < Mask ? limit_i : Mask;
  tx_written_t written;
  assign written = news_i.tx_written;
  assign mine = written.valid && written.pair == Queue;
  assign done = news_i.done.valid && news_i.done.pair == Queue;
  assign reported = reported_q != done_q;
  assign ahead = (tail_q - reported_q) & Mask;
  assign said = (written.head - reported_q) & Mask;
  assign counts = said <= ahead;

  always_ff @(posedge clk_i) begin
    if (post_i) tail_q <= (tail_q + 1'b1) & Mask;
    if (done) done_q <= (done_q + 1'b1) & Mask;
    given_q <= given_q + index_t'(post_i) - index_t'(done);
    // post_i is late in the cycle. So a frame that is done makes room a cycle later.
    room_q  <= post_i ? given_q + 1'b1 < limit : given_q < limit;
    if (mine && counts && said != '0) reported_q <= written.head & Mask;
    // The frame is done without a write-back.
    else if (done && !reported) reported_q <= (done_q + 1'b1) & Mask;
    if (rst_i || begin_i) begin
      tail_q     <= '0;
      done_q     <= '0;
      given_q    <= '0;
      reported_q <= '0;
      room_q     <= 1'b0;
    end
  end

  assign state_o = '{
          tail: tail_q,
          given: given_q,
          room: room_q,
          reported: reported,
          told: told_i != done_q,
          idle: given_q == '0,
          unexpected: mine && !counts
      };

  `ASSERT(given_is_right, given_q == ((tail_q - done_q) & Mask), "what the NIC has is miscounted")
  `ASSERT(posts_with_room, !post_i || room_q, "the tail passes the head")
  `ASSERT(done_was_posted, !done || given_q != '0, "a frame is done that was not posted")
  `ASSERT(reported_was_posted, ((reported_q - done_q) & Mask) <= given_q, "the NIC reported what it does not have")
  `ASSERT(begins_idle, !begin_i || state_o.idle, "a ring begins anew while frames of it are under way")

endmodule
`default_nettype wire
