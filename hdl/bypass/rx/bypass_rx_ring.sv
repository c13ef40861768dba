// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A receive ring: the owner of each slot. Descriptor i is slot i, so the pointers are the whole state.
///
/// Behaviour: slots change owners in a circle. The pointers follow each other round the ring:
///
///     told (the tail) - head: the NIC's, which fills them    head - taken: written back, the core's
///     taken - released: of frames that are read, or transmitted in place    released - told: free, to be given by the next tail
///
/// - A write-back counts only if it is in order and the NIC has the descriptor. state_o.unexpected counts the others.
/// - A frame is available when its end is written back: the descriptors from taken to whole.
///   A frame ends after MaxSlots descriptors at the latest; bypass_rx_frames then drops it and the rest of it.
/// - state_o.want is the highest tail that keeps at most limit_i slots in use, by the NIC or by
///   frames. A limit of all ones allows all slots except the one that separates full from empty.
/// - A stopped ring (run_i = 0) accepts no write-back. Complete frames are still read, to be dropped.
/// Latency: from a write-back to state_o.has 1 cycle.
/// Reset: empty.
/// Requirements: take_i only of complete frames; releases only of taken slots; gave_i only up to state_o.want; begin_i
/// only while state_o.idle. limit_i is constant while the ring runs, and its lower bits are at least MaxSlots.
module bypass_rx_ring
  import bypass_pkg::*;
#(
    parameter queue_t Queue = '0,
    /// 2^n descriptors.
    parameter int unsigned Bits = 8
) (
    input wire clk_i,
    input wire rst_i,

    input wire run_i,
    /// The ring restarts empty.
    input wire begin_i,
    /// Slots that may be in use, modulo the slots of the ring.
    input wire index_t limit_i,

    // verilator lint_off UNUSEDSIGNAL  // what of it is this ring's
    input  wire news_t news_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire        take_i,
    input  wire gave_t gave_i,
    output rx_ring_t   state_o
);

  localparam index_t Mask = index_t'((1 << Bits) - 1);

  // Each within Mask.
  index_t head_q, whole_q, taken_q, released_q, given_q;
  count_t open_q;  // descriptors of a frame whose end is not here

  // ---- this ring's part of the news

  // verilator lint_off UNUSEDSIGNAL  // what of it is the entry's
  rx_written_t written;
  // verilator lint_on UNUSEDSIGNAL
  logic [3:0] accept;
  logic [1:0] released;
  count_t slots;
  assign written = news_i.rx_written;
  for (genvar i = 0; i < 2; i++) begin : gen_released
    assign released[i] = news_i.released[i].valid && news_i.released[i].pair == Queue;
  end
  assign slots = released[0] ? news_i.released[0].slots : news_i.released[1].slots;

  // ---- write-backs

  // Of the group, from the head's lane on: the descriptors that are in order, done, and owned by the NIC.
  logic mine;
  logic [1:0] lane;
  logic [3:0] more, fine, ends, closes;
  logic [3:0][1:0] away;  // from the head
  assign mine = written.pair == Queue;
  assign lane = head_q[1:0];
  always_comb begin
    logic here;
    here = mine && run_i && ((written.group ^ head_q[11:2]) & Mask[11:2]) == '0;
    for (int i = 0; i < 4; i++) more[i] = given_q > index_t'(i);
    for (int i = 0; i < 4; i++) begin
      away[i]   = 2'(i) - lane;
      fine[i]   = i < int'(lane) || (written.done[i] && more[away[i]]);
      accept[i] = here && i >= int'(lane);
      for (int k = 0; k <= i; k++) accept[i] = accept[i] && fine[k];
    end
  end

  // Frames end with EOP, or after too many descriptors without EOP.
  logic [2:0] count, behind;  // behind: the last end
  index_t whole;
  always_comb begin
    logic ended;  // a frame, in a lane before
    ended  = 1'b0;
    whole  = whole_q;
    behind = '0;
    for (int i = 0; i < 4; i++) begin
      closes[i] = open_q + count_t'(away[i]) == count_t'(MaxSlots - 1);
      ends[i]   = accept[i] && (written.eop[i] || (closes[i] && !ended));
      ended     = ended || (accept[i] && written.eop[i]);
      if (ends[i]) whole = ({written.group, 2'(i)} + 1'b1) & Mask;
    end
    for (int i = 0; i < 4; i++) begin
      logic last;  // none ends here or behind
      last = 1'b1;
      for (int k = i; k < 4; k++) last = last && !ends[k];
      behind += 3'(accept[i] && last);
    end
    count = 3'($countones(accept));
  end

  // Event counts, a cycle later.
  logic [3:0] lost_q, ends_q;
  always_ff @(posedge clk_i) begin
    lost_q <= mine ? written.done & ~accept : '0;
    ends_q <= ends;
    if (rst_i) begin
      lost_q <= '0;
      ends_q <= '0;
    end
  end

  index_t gave;
  assign gave = gave_i.valid ? gave_i.count : '0;
  always_ff @(posedge clk_i) begin
    head_q  <= (head_q + index_t'(count)) & Mask;
    given_q <= given_q + gave - index_t'(count);
    whole_q <= whole;
    open_q  <= ends != '0 ? count_t'(behind) : open_q + count_t'(count);
    if (take_i) taken_q <= (taken_q + 1'b1) & Mask;
    if (released != '0) released_q <= (released_q + index_t'(slots)) & Mask;
    if (rst_i || begin_i) begin
      head_q     <= '0;
      given_q    <= '0;
      whole_q    <= '0;
      open_q     <= '0;
      taken_q    <= '0;
      released_q <= '0;
    end
  end

  assign state_o = '{
          accept: accept,
          ended: 3'($countones(ends_q)),
          unexpected: 3'($countones(lost_q)),
          want: (released_q + limit_i) & Mask,
          taken: taken_q,
          given: given_q,
          has: whole_q != taken_q,
          idle: whole_q == taken_q && released_q == taken_q,
          may_write: ((news_i.writes - head_q) & Mask) < given_q || !run_i,
          may_read: ((news_i.reads - released_q) & Mask) < ((taken_q - released_q) & Mask)
      };

  // Order round the ring: released, taken, whole, head, and the end of the NIC's descriptors.
  index_t to_taken, to_whole, to_head, to_tail;
  assign to_taken = (taken_q - released_q) & Mask;
  assign to_whole = (whole_q - released_q) & Mask;
  assign to_head  = (head_q - released_q) & Mask;
  assign to_tail  = to_head + given_q;
  `ASSERT(one_owner, to_taken <= to_whole && to_whole <= to_head && to_tail <= Mask,
          "a slot has two owners, or the tail has passed the head")
  `ASSERT(open_is_right, index_t'(open_q) == to_head - to_whole, "a frame's descriptors are miscounted")
  `ASSERT(takes_whole, !take_i || state_o.has, "a descriptor is taken of a frame that is not whole")
  `ASSERT(releases_taken, released == '0 || index_t'(slots) <= to_taken, "a slot is released that was not taken")
  `ASSERT(gives_released, !gave_i.valid || to_tail + gave_i.count <= Mask, "the NIC is given what is not free")
  `ASSERT(within_limit, state_o.idle || !run_i || to_tail <= (limit_i & Mask), "more slots are away than may be")
  `ASSERT(begins_idle, !begin_i || state_o.idle, "a ring begins anew while frames of it are under way")

endmodule
`default_nettype wire
