// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves dma_teller for any answers and any host. For an arbitrary ring: a status word reports exactly the
/// earlier answers. The ring is due while its state differs from its last word. A stopped ring no longer
/// counts. A message follows its status word. The stored data of an arbitrary turn return with its answer.
module dma_teller_proof
  import dma_pkg::done_t;
  import dma_control_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire hold_i,
    input wire may_post_i,
    input wire flight_i,
    input wire ring_t flight_ring_i,
    input wire flight_info_t flight_info_i,
    input wire [1:0] s_done_valid,
    input wire done_t [1:0] s_done_payload,
    input wire each_t failing_i,
    input wire code_t [7:0] code_i,
    input wire [7:0] threshold_i,
    input wire each_t expired_i,
    input wire message_i,
    input wire ring_t message_ring_i,
    input wire m_ready,
    input wire ring_t watch_i,
    input wire flight_t place_i
);

  logic [1:0] s_done_ready;
  logic message_taken_o, packet_room_o, post_valid;
  answer_t answered_o;
  event_t  fire_o;
  ring_t   threshold_ring_o;
  life_t   life;
  each_t failed_o, busy_o, waiting_o;
  post_t   post;
  flight_t index_q;
  always_comb begin
    life      = '0;
    life.hold = hold_i;
  end
  dma_teller dut (
      .*,
      .pace_i    (8'd2),
      .life_i    (life),
      .flight_i  ({flight_i, flight_ring_i, index_q, flight_info_i}),
      .message_i ({message_i, message_ring_i}),
      .post_ready(m_ready)
  );

  // ---- one ring, and one of its turns

  post_t m_post;
  assign m_post = dut.put;
  ring_t watch_q;
  flight_t place_q, answered_q;
  logic [7:0] flying_q;
  flight_info_t info_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) watch_q <= watch_i;
    if (rst_i) place_q <= place_i;
  end

  logic takes, begins, took_q, looks, failing_q;
  done_t done, done_q;
  assign done   = s_done_payload[watch_q[2]];
  assign takes  = s_done_valid[watch_q[2]] && s_done_ready[watch_q[2]] && done.channel == watch_q[1:0];
  assign begins = flight_i && flight_ring_i == watch_q;
  `RESET_FIRST
  // dma_life, not the reset, clears the memories; here they start cleared.
  always @(posedge clk_i) begin
    reset_once : assume (!(begun_q && rst_i));
    nothing_before : assume (begun_q || (!dut.answer_q && !dut.look_now_q && s_done_valid == '0 && !flight_i));
  end
  `ASSUME(of_a_turn, !takes || flying_q != '0)
  `ASSUME(few, !begins || flying_q < 8'd128)
  `ASSUME(packets_have_room, !(dut.answer_q && dut.info.stream_to_host) || dut.waiting_q <= 4'd5)
  `ASSUME(
      fails_at_rest,
      !(failing_i[watch_q] && !failed_o[watch_q]) || (code_i[watch_q] != '0 && flying_q == '0 && !took_q && !begins))
  `ASSUME_NEXT(fails_for_ever, failing_i[watch_q] && !failed_o[watch_q], failing_i[watch_q] && code_i[watch_q] == $past
               (code_i[watch_q]))

  // ---- the answers

  logic [31:0] count_q, told_q;
  code_t error_q, told_error_q;
  assign looks = dut.look_now_q && dut.ring_q == watch_q;
  always_ff @(posedge clk_i) begin
    took_q <= takes && !rst_i;
    done_q <= done;
    if (takes) answered_q <= answered_q + 1'b1;
    if (begins) index_q <= index_q + 1'b1;
    if (begins && index_q == place_q) info_q <= flight_info_i;
    flying_q <= flying_q + 8'(begins) - 8'(takes);
    if (took_q && error_q == '0) begin
      if (done_q.error != '0) error_q <= done_q.error;
      else count_q <= count_q + 32'(dut.info.ends);
    end
    failing_q <= failing_i[watch_q];
    if (looks && failing_q && error_q == '0) error_q <= code_i[watch_q];
    if (dut.puts && !dut.message_q && looks) begin
      told_q       <= m_post.count;
      told_error_q <= m_post.error;
    end
    if (rst_i) begin
      answered_q   <= '0;
      index_q      <= '0;
      info_q       <= '0;
      flying_q     <= '0;
      count_q      <= '0;
      error_q      <= '0;
      told_q       <= '0;
      told_error_q <= '0;
    end
  end

  `ASSERT(one_step, took_q == (dut.answer_q && dut.ring_q == watch_q), "an answer is lost or doubled")
  logic in_order;
  assign in_order = dut.i_heads.memory[watch_q] == answered_q && flight_t'(index_q - flying_q[6:0]) == answered_q;
  `ASSERT(order, in_order && flying_q <= 8'd128, "a turn is taken for another")
  `ASSERT(remembered, dut.i_flights.gen_block.memory[{watch_q, place_q}] == info_q, "what was remembered is lost")
  logic here_q;
  always_ff @(posedge clk_i) here_q <= takes && dut.head == place_q && !rst_i;
  flight_info_t past_q;
  always_ff @(posedge clk_i) past_q <= info_q;
  `ASSERT(comes_back, !here_q || dut.info == past_q, "an answer comes with another turn's memory")
  `ASSERT(kept, dut.i_states.memory[watch_q][70:39] == count_q && dut.i_states.memory[watch_q][10:8] == error_q,
          "the ring's count or error is not what was answered")
  `ASSERT(stopped, failed_o[watch_q] == (error_q != '0), "a ring with an error goes on, or one without stops")
  code_t told_error;
  assign told_error = dut.fails ? code_i[watch_q] : error_q;
  `ASSERT(true_words,
          !(looks && dut.puts) || (m_post.kind == PostStatus && m_post.count == count_q && m_post.error == told_error),
          "a status word says what was not answered")
  `ASSERT(due, (told_q == count_q && told_error_q == error_q) || dut.dirty[watch_q], "a change is never told")
  `ASSERT(told_before_fire, !(dut.fires && dut.ring_q == watch_q) || !dut.dirty[watch_q] || dut.shows,
          "an interrupt goes before its status word")
  `ASSERT(counted_posts, dut.waiting_q == dut.i_posts.i_fifo.count_q && dut.waiting_q <= 4'd7, "posts are miscounted")
  `ASSERT(bounded, !((dut.look_now_q || dut.message_q) && dut.waiting_q > 4'd5), "too many words wait")

  `COVER(tells, told_q == 32'd1)
  `COVER(fails, told_error_q != '0)

endmodule
`default_nettype wire
