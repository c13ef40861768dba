// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves bypass_pair for any write-backs, fetches and bus: a tail never passes its head, a slot has one owner,
/// and the descriptors given are those that the NIC has or has returned. The proof follows one arbitrary slot.
module bypass_pair_proof
  import bypass_pkg::*;
#(
    /// The timer also writes tails. Without it, credits bound the number of tails.
    parameter bit Timer = 1'b0
) (
    input wire clk_i,
    input wire rst_i,
    input wire settings_t settings_i,
    input wire news_t any_i,
    input wire order_t order_i,
    input wire index_t slot_i,
    input wire [1:0] m_ready
);

  localparam int unsigned RxBits = 4;
  localparam int unsigned TxBits = 3;
  localparam bypass_config_t Config = '{queue_bits: 0, rx_bits: RxBits, tx_bits: TxBits, pack_bits: 9};
  localparam index_t RxMask = index_t'((1 << RxBits) - 1);
  localparam index_t TxMask = index_t'((1 << TxBits) - 1);

  index_t slot_q;
  always_ff @(posedge clk_i) if (rst_i) slot_q <= slot_i & RxMask;

  pair_state_t state_o;
  news_t news_i;
  index_t tail_o;
  logic [1:0] m_valid;
  index_t [1:0] m_payload;
  bypass_pair #(.Config(Config)) dut (.*);
  always_comb begin
    news_i        = any_i;
    news_i.writes = slot_q;
    news_i.reads  = slot_q;
  end
  assign tail_o = state_o.tx.tail;
  release_t [1:0] release_i;
  tx_done_t done_i;
  assign release_i = news_i.released;
  assign done_i    = news_i.done;

  // ---- assumptions about the other blocks

  count_t released;
  index_t unread, unreleased;  // whole and not taken; taken and not released
  assign unread = (dut.i_rx.whole_q - dut.i_rx.taken_q) & RxMask;
  assign unreleased = (dut.i_rx.taken_q - dut.i_rx.released_q) & RxMask;
  assign released = release_i[0].valid ? release_i[0].slots : release_i[1].slots;
  `RESET_FIRST
  `ASSUME(one_pair,
          news_i.rx_written.pair == '0 && release_i[0].pair == '0 && release_i[1].pair == '0 && done_i.pair == '0)
  `ASSUME(takes_whole, !order_i.take || unread != '0)
  `ASSUME(releases_taken, (!release_i[0].valid && !release_i[1].valid) || index_t'(released) <= unreleased)
  `ASSUME(one_releases, !(release_i[0].valid && release_i[1].valid))
  `ASSUME(posts_with_room, !order_i.post || state_o.tx.room)
  `ASSUME(done_was_posted, !done_i.valid || dut.i_tx.given_q != '0)
  `ASSUME(done_was_told, !done_i.valid || state_o.tx.told || !state_o.running)
  `ASSUME(posts_while_it_runs, !order_i.post || state_o.running)
  `ASSUME_NEXT(stays_aligned, 1'b1, settings_i.rx_bell.align == $past(settings_i.rx_bell.align))
  `ASSUME_NEXT(credits_stay, 1'b1, settings_i.rx_bell.credits == $past(settings_i.rx_bell.credits)
               && settings_i.tx_bell.credits == $past(settings_i.tx_bell.credits))
  `ASSUME_NEXT(limit_stays, !state_o.idle, settings_i.rx_limit == $past(settings_i.rx_limit))
  if (!Timer) begin : gen_no_timer
    `ASSUME(no_timer, settings_i.rx_bell.timer == '0 && settings_i.tx_bell.timer == '0)
  end
  `ASSUME(tx_is_not_aligned, settings_i.tx_bell.align == '0)

  // ---- the tail never passes the head: at least one of the slots before it is not the NIC's

  index_t told, free, want, ahead;
  assign told  = dut.i_rx_bell.told_q;
  assign want  = (dut.i_rx.released_q - 1'b1) & RxMask;
  assign free  = (want - told) & RxMask;  // that may be given
  assign ahead = (dut.i_rx_bell.aligned - told) & RxMask;
  `ASSERT(rx_tail_is_given, told == ((dut.i_rx.head_q + dut.i_rx.given_q) & RxMask),
          "the tail is not what the NIC was given")
  `ASSERT(rx_tail_keeps_behind, free + dut.i_rx.given_q + ((dut.i_rx.head_q - dut.i_rx.released_q) & RxMask) == RxMask,
          "slots are lost, or there are too many")
  `ASSERT(rx_within_limit, state_o.idle || ((told - dut.i_rx.released_q) & RxMask) <= (settings_i.rx_limit & RxMask),
          "more slots are away than may be")
  `ASSERT(rx_bell_within, state_o.idle || ahead <= free, "the receive tail would pass the head")
  `ASSERT(tx_within, dut.i_tx.given_q <= TxMask && (!state_o.tx.room || dut.i_tx.given_q < TxMask),
          "the transmit tail would pass the head")
  index_t tx_told;
  assign tx_told = dut.i_tx_bell.told_q;
  `ASSERT(tx_told_was_posted, !state_o.running || ((tail_o - tx_told) & TxMask) <= dut.i_tx.given_q,
          "a tail was told that is not posted")

  // ---- a slot has one owner

  logic nic, core;
  assign nic  = ((slot_q - dut.i_rx.head_q) & RxMask) < dut.i_rx.given_q;
  assign core = ((slot_q - dut.i_rx.released_q) & RxMask) < ((dut.i_rx.head_q - dut.i_rx.released_q) & RxMask);
  `ASSERT(one_owner, !(nic && core), "the NIC and the core have a slot")
  `ASSERT(nic_writes_its_own, !state_o.rx.may_write || nic || !state_o.running,
          "the NIC may write what it does not have")
  `ASSERT(nic_reads_what_is_taken, !state_o.rx.may_read || (core && !nic), "the NIC may read what is not a frame's")

  // ---- credits

  // Tails since the last fetch, for each ring.
  logic [1:0][3:0] silent_q, unanswered, credits;
  assign unanswered = {dut.i_tx_bell.unanswered_q, dut.i_rx_bell.unanswered_q};
  assign credits = {dut.i_tx_bell.credits, dut.i_rx_bell.credits};
  for (genvar i = 0; i < 2; i++) begin : gen_silent
    logic fetched;
    assign fetched = news_i.fetch.valid && news_i.fetch.tx == 1'(i) && news_i.fetch.pair == '0;
    always_ff @(posedge clk_i) begin
      if (fetched) silent_q[i] <= '0;
      else if (m_valid[i] && m_ready[i]) silent_q[i] <= silent_q[i] + 1'b1;
      if (rst_i || state_o.begins) silent_q[i] <= '0;
    end
    if (!Timer) begin : gen_no_timer
      `ASSERT(no_timer_expires, !(i == 0 ? dut.i_rx_bell.expired_q : dut.i_tx_bell.expired_q),
              "a timer expires that is off")
      `ASSERT(silent_is_unanswered, silent_q[i] <= unanswered[i], "an unanswered tail is forgotten")
      `ASSERT(within_credits, unanswered[i] <= credits[i] && (!m_valid[i] || unanswered[i] < credits[i]),
              "more tails than credits")
    end
  end
  `ASSERT(idle_has_nothing, !state_o.idle || (!state_o.rx.has && dut.i_tx.given_q == '0 && m_valid == '0),
          "idle, and something is under way")

  // For induction: it starts from any state that the assertions allow.
  index_t rx_pointers;
  assign rx_pointers = dut.i_rx.head_q | dut.i_rx.whole_q | dut.i_rx.taken_q | dut.i_rx.released_q | dut.i_rx.given_q;
  `ASSERT(rx_in_mask, (rx_pointers | told | slot_q) <= RxMask, "a pointer is outside its ring")
  `ASSERT(tx_in_mask, (dut.i_tx.tail_q | dut.i_tx.done_q | dut.i_tx.given_q | dut.i_tx.reported_q | tx_told) <= TxMask,
          "a pointer is outside its ring")
  `ASSERT(told_aligned, (32'(told) % (32'd1 << settings_i.rx_bell.align)) == '0 || told == '0, "a tail is not aligned")
  `ASSERT(open_short, dut.i_rx.open_q < count_t'(MaxSlots), "a frame is too long")
  `ASSERT(bells_differ, (!m_valid[0] || ahead != '0) && (!m_valid[1] || tail_o != tx_told), "a bell rings for nothing")

  `COVER(went_round, told < dut.i_rx.head_q && dut.i_rx.given_q > 12'd4)
  `COVER(frame_of_two, order_i.take && unread == 12'd2)
  `COVER(given_up, dut.i_rx.ends_q != '0 && dut.i_rx.open_q == '0 && unread == 12'd8)
  `COVER(stopped_and_idle, state_o.idle && $past(state_o.running))

endmodule
`default_nettype wire
