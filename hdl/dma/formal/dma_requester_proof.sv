// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves dma_requester: a tag in flight is never issued again, even across resets, nor for a time-out after a request
/// of it timed out (if timeout_i stays as it is). Completions go to their client while it lives, and then to none. Room
/// for completions is conserved.
///
/// The proof follows one arbitrary tag of one client: watch_i selects it.
module dma_requester_proof
  import dma_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    input wire [6:0] timeout_i,
    input wire [1:0] watch_i,
    input wire [1:0] s_read_valid,
    input wire read_t [1:0] s_read_payload,
    input wire m_completion_ready,
    input wire m_read_ready,
    input wire s_completion_valid,
    input wire completion_t s_completion_payload
);

  localparam int unsigned Tags = 2;
  localparam int unsigned CompletionLines = 70;

  logic [1:0] s_read_ready, m_completion_valid, s_write_ready;
  logic m_read_valid, s_completion_ready, m_write_valid, unexpected_o, timed_out_o, idle_o;
  completion_t m_completion_payload;
  read_t m_read_payload;
  write_t m_write_payload;
  dma_requester #(
      .Tags(Tags),
      .CompletionLines(CompletionLines),
      .TickBits(1),
      .StatusBytes(4)
  ) dut (
      .*,
      .s_write_valid  ('0),
      .s_write_payload('0),
      .m_write_ready  (1'b1)
  );

  // ---- assumptions about the clients and the host
  logic inside_q;  // a completion has begun
  logic [7:0] inside_tag_q;
  logic [1:0] arriving;
  assign arriving = {s_completion_payload.tag[7], s_completion_payload.tag[0]};
  always_ff @(posedge clk_i) begin
    if (s_completion_valid && s_completion_ready) begin
      inside_q     <= !s_completion_payload.last;
      inside_tag_q <= s_completion_payload.tag;
    end
    if (rst_i) inside_q <= 1'b0;
  end
  for (genvar i = 0; i < 2; i++) begin : gen_client
    `ASSUME(read_legal,
            s_read_payload[i].tag < 8'(Tags) && s_read_payload[i].bytes != '0 &&
            14'(s_read_payload[i].addr[11:0]) + 14'(s_read_payload[i].bytes) <= 14'd4096)
    `ASSUME_NEXT(read_kept, s_read_valid[i] && !s_read_ready[i], s_read_valid[i] && s_read_payload[i] == $past(
                 s_read_payload[i]))
  end
  `ASSUME(completion_of_a_client, s_completion_payload.tag[6:1] == '0)
  `ASSUME(completions_whole, s_completion_payload.first == !inside_q)
  `ASSUME(completions_apart, !inside_q || s_completion_payload.tag == inside_tag_q)
  `ASSUME_NEXT(completion_kept, s_completion_valid && !s_completion_ready,
               s_completion_valid && s_completion_payload == $past(s_completion_payload))
  `RESET_FIRST

  // ---- the followed tag, as an observer sees it; bit 20 of `issued` is its turn
  logic [1:0] watched_q;
  logic flying_q, overdue_q, alive_q, stopped_q, asks, ends, told, is_late, forgotten;
  logic [7:0] tick_q, late_since_q, late_age;
  logic tock_q, long_q, changed_q;  // `long_q`: the age has been 128 or more; `changed_q`: the time-out has changed
  logic [6:0] timeout_q;
  logic [3:0] stops_q;
  assign asks = s_read_valid[watched_q[1]] && s_read_ready[watched_q[1]] && !stop_i &&
                s_read_payload[watched_q[1]].tag[0] == watched_q[0];
  assign told = m_completion_valid[watched_q[1]] && m_completion_payload.tag[0] == watched_q[0];
  // Only these signals see the time-out of a dead request, and the end of an overdue one.
  assign is_late = timed_out_o && dut.look_q == watched_q;
  assign forgotten = dut.looking && dut.end_ && dut.look_q == watched_q;
  assign ends = forgotten ||
                (s_completion_valid && s_completion_ready && arriving == watched_q && s_completion_payload.last &&
                 s_completion_payload.final_ && (inside_q ? dut.known_q : flying_q));
  assign late_age = tick_q - late_since_q;
  always_ff @(posedge clk_i) begin
    stopped_q <= stop_i;
    timeout_q <= timeout_i;
    if (timeout_q != timeout_i) changed_q <= 1'b1;
    if (late_age[7]) long_q <= 1'b1;
    {tick_q, tock_q} <= {tick_q, tock_q} + 1'b1;
    if (is_late) begin
      overdue_q    <= 1'b1;
      alive_q      <= 1'b0;
      late_since_q <= tick_q;
      long_q       <= 1'b0;
    end
    if (ends) flying_q <= 1'b0;
    if (stop_i) alive_q <= 1'b0;
    if (stop_i && !stopped_q) stops_q <= stops_q + 1'b1;
    if (asks) begin
      flying_q  <= 1'b1;
      overdue_q <= 1'b0;
      alive_q   <= 1'b1;
      stops_q   <= '0;
    end
    if (rst_i) begin
      watched_q <= watch_i;
      flying_q  <= 1'b0;
      alive_q   <= 1'b0;
      stopped_q <= 1'b0;
      tick_q    <= '0;
      tock_q    <= 1'b0;
      changed_q <= 1'b0;
      timeout_q <= timeout_i;
    end
  end
  // Up to 14 function resets within one time-out can be told apart.
  `ASSUME(lives_in_number, !flying_q || overdue_q || stops_q < 4'd15)

  `ASSERT(never_twice, !asks || !flying_q, "a tag was asked for again while its request is in flight")
  logic long_enough;
  assign long_enough = changed_q || timeout_q != timeout_i || long_q || late_age > 8'(timeout_i);
  `ASSERT(kept_for_another_timeout, !forgotten || (overdue_q && long_enough),
          "a tag was freed while a late completion may come")
  `ASSERT(told_alive, !told || (flying_q && alive_q && !stop_i), "a client was told of a request that is not its own")
  logic must_tell;
  assign must_tell = s_completion_valid && arriving == watched_q && !inside_q && flying_q && alive_q && !stop_i;
  `ASSERT(told_all, !must_tell || dut.sweeping_q || told, "a completion was kept from its client")
  `ASSERT(one_client, m_completion_valid != 2'b11, "two clients were told of one completion")
  `ASSERT(flight_is_right,
          dut.sweeping_q || (dut.i_issued.memory[watched_q][20] != dut.i_ended.memory[watched_q][0]) == flying_q,
          "what is in flight is not what a listener knows")
  `COVER(dead_ends, ends && !alive_q && flying_q)
  `COVER(told_last, told && ends)
  `COVER(times_out, timed_out_o && told)
  `COVER(is_forgotten, forgotten)
  `COVER(comes_late, ends && !forgotten && overdue_q && stops_q == '0)

  // For induction: it starts from any state that the assertions allow.
  typedef struct packed {
    logic turn;
    logic overdue;
    logic [3:0] life;
    logic [6:0] lines;
    logic [7:0] tick;
  } dut_issued_t;
  dut_issued_t watched;
  assign watched = dut.i_issued.memory[watched_q];
  `ASSERT(nothing_while_sweeping,
          !dut.sweeping_q || (!flying_q && dut.flying_q == '0 && dut.room_q == 7'(CompletionLines) && !dut.ended_q),
          "a request in the sweep")
  `ASSERT(whole_while_sweeping, !dut.sweeping_q || !inside_q, "a completion goes on in the sweep")
  `ASSERT(life_is_right, !flying_q || overdue_q || dut.life_q - watched.life == stops_q, "a request is of another life")
  `ASSERT(alive_is_right, !flying_q || alive_q == (stops_q == '0 && !overdue_q), "a request is dead and alive")
  `ASSERT(overdue_is_right, !flying_q || dut.sweeping_q || watched.overdue == overdue_q, "overdue, and not")
  `ASSERT(ticks_alike, tick_q == dut.tick_q && tock_q == dut.cycle_q, "the proof lost its time")
  `ASSERT(told_if_alive, !(dut.looking && dut.old_q && !stop_i && dut.look_q == watched_q) || dut.tell_q == alive_q,
          "a time-out for nobody, or for none")
  `ASSERT(old_is_old, !(dut.old_q && dut.look_q == watched_q && overdue_q) || long_enough, "old before its time")
  `ASSERT(since_is_right, !(flying_q && overdue_q) || watched.tick == late_since_q, "overdue since another time")
  `ASSERT(stop_is_right, dut.stop_q == stopped_q && dut.middle_q == inside_q, "the proof lost its way")
  `ASSERT(alive_before_stop, !(alive_q && flying_q) || !stopped_q, "alive through a reset")
  logic [1:0] open_tag;
  logic inside_watched;
  assign open_tag = {inside_tag_q[7], inside_tag_q[0]};
  assign inside_watched = open_tag == watched_q;
  `ASSERT(known_is_in_flight,
          !(inside_q && dut.known_q) || dut.i_issued.memory[open_tag][20] != dut.i_ended.memory[open_tag][0],
          "a completion goes on whose request is over")
  `ASSERT(known_flies, !(inside_q && dut.known_q && inside_watched) || flying_q, "a completion of nothing")
  `ASSERT(forward_lives, !(inside_q && dut.forward_q && inside_watched) || (dut.known_q && flying_q && alive_q),
          "a completion for the dead")
  `ASSERT(tag_stays, inside_tag_q[6:1] == '0 || !inside_q, "a tag out of range")
  for (genvar i = 0; i < 4; i++) begin : gen_swept
    `ASSERT(swept,
            !dut.sweeping_q || 3'(i) >= 3'(dut.sweep_q) || dut.i_issued.memory[i][20] == dut.i_ended.memory[i][0],
            "the sweep left a request behind")
  end
  logic [8:0] lines;
  logic [2:0] flights;
  always_comb begin
    lines   = 9'(dut.room_q) + 9'(dut.ended_lines_q);
    flights = '0;
    for (int i = 0; i < 4; i++) begin
      if (dut.i_issued.memory[i][20] != dut.i_ended.memory[i][0]) begin
        lines += 9'(dut.i_issued.memory[i][14:8]);
        flights += 1'b1;
      end
    end
  end
  `ASSERT(ended_has_lines, dut.ended_q || dut.ended_lines_q == '0, "room for nothing")
  `ASSERT(room_is_conserved, dut.sweeping_q || lines == 9'(CompletionLines), "room for completions was lost or made up")
  `ASSERT(flights_counted, dut.sweeping_q || dut.flying_q == 3'(flights) + 3'(dut.ended_q),
          "requests in flight were lost or made up")

endmodule
`default_nettype wire
