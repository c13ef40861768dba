// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves dma_turns for any inputs. An arbitrary ring's turns are its descriptors, piece by piece,
/// in order: each byte once, and none without a descriptor. With Fair: while two channels of a
/// direction are both ready, neither gets more than the other by three turns' bytes (12288) or more.
module dma_turns_proof
  import dma_pkg::turn_t;
  import dma_control_pkg::*;
#(
    parameter bit Fair = 1'b0
) (
    input wire clk_i,
    input wire rst_i,
    input wire each_t may_i,
    input wire hold_i,
    input wire stored_i,
    input wire ring_t stored_ring_i,
    input wire [4:0] stored_count_i,
    input wire carry_i,
    input wire ring_t carry_ring_i,
    input wire descriptor_t other_i,
    input wire descriptor_t [2:0] watched_i,
    input wire ring_t watch_i,
    input wire [1:0] rival_i,
    input wire [1:0] m_turn_ready,
    input wire answered_i,
    input wire ring_t answered_ring_i,
    input wire answered_packet_i,
    input wire stream_room_i,
    input wire stream_valid_i,
    input wire [1:0] stream_channel_i,
    input wire packet_room_i
);

  look_t look_o;
  flight_event_t flight_o;
  count_t taken_o;
  logic [1:0] m_turn_valid;
  turn_t [1:0] m_turn_payload;
  each_t bad_o, empty_o, busy_o;
  logic carried_o;
  descriptor_t store_i;
  life_t life;
  carry_t carry;
  always_comb begin
    life        = '0;
    life.hold   = hold_i;
    carry       = '0;
    carry.valid = carry_i;
    carry.ring  = carry_ring_i;
  end
  dma_turns dut (
      .*,
      .life_i      (life),
      .stored_i    ({stored_i, stored_ring_i, stored_count_i}),
      .carry_i     (carry),
      .answered_i  ({answered_i, answered_ring_i, answered_packet_i}),
      .taken_ring_i('0)
  );

  // ---- the followed ring and its descriptors: one for all even ones, one for odd ones, one for carried ones

  ring_t watch_q, asked_q;
  logic odd_q, carried_q;
  descriptor_t [2:0] watched_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) watch_q <= watch_i;
    if (rst_i) watched_q <= watched_i;
    asked_q   <= look_o.ring;
    odd_q     <= look_o.index[0];
    carried_q <= look_o.carried;
  end
  // Adds the fields that fetch and doorbells compute.
  function automatic descriptor_t known(descriptor_t descriptor);
    known = descriptor;
    {known.one_page, known.one_turn} = fits_of(descriptor.bytes, descriptor.host[11:0]);
  endfunction
  assign store_i = known(asked_q == watch_q ? watched_q[carried_q?2'd2 : 2'(odd_q)] : other_i);

  // ---- assumptions about the neighbours

  logic [7:0][7:0] stored, flying;
  for (genvar i = 0; i < 8; i++) begin : gen_ring
    assign stored[i] = dut.gen_ring[i].stored_q;
    assign flying[i] = dut.gen_ring[i].flying_q;
    `ASSERT(in_range, stored[i] <= 8'd128 && flying[i] <= 8'd128, "a count runs over")
    // There is room for a cut that is about to be counted.
    `ASSERT(place, !(dut.cut_q && dut.ring_q == ring_t'(i)) || flying[i] < 8'd128, "a turn has no place")
    `ASSERT(has_one,
            !(dut.cut_q && dut.ring_q == ring_t'(i)) || (dut.carried_here_q ? dut.carried_q[i] : stored[i] != '0),
            "a turn of nothing")
    `ASSERT(which, !(dut.cut_q && dut.ring_q == ring_t'(i)) || dut.carried_here_q == dut.carried_q[i],
            "a descriptor changed while it was cut")
  end
  `RESET_FIRST
  // dma_life, not the reset, clears the memories; here they start cleared.
  always @(posedge clk_i) begin
    reset_once : assume (!(begun_q && rst_i));
    nothing_before : assume (begun_q || !dut.cut_q);
  end
  `ASSUME(room, !stored_i || 9'(stored[stored_ring_i]) + 9'(stored_count_i) <= 9'd128)
  `ASSUME(carried_alone, !carry_i || (empty_o[carry_ring_i] && !(stored_i && stored_ring_i == carry_ring_i)))
  `ASSUME(under_way, !answered_i || flying[answered_ring_i] != '0)

  // ---- the expected turns of the followed ring

  offset_t offset_q, size;
  count_t taken_q, given_q;
  flight_t flight_q;
  logic cuts;
  descriptor_t now;
  turn_t turn_q;
  logic turn_known_q;
  assign cuts = dut.cuts && dut.ring_q == watch_q;
  assign now  = watched_q[dut.carried_q[watch_q]?2'd2 : 2'(taken_q[0])];
  assign size = now.bytes;
  always_ff @(posedge clk_i) begin
    given_q <= given_q + 16'(stored_i && stored_ring_i == watch_q ? stored_count_i : '0)
               + 16'(carry_i && carry_ring_i == watch_q);
    if (m_turn_valid[watch_q[2]] && m_turn_ready[watch_q[2]]) turn_known_q <= 1'b0;
    if (dut.cuts && dut.ring_q[2] == watch_q[2]) turn_known_q <= dut.ring_q == watch_q;
    if (cuts) begin
      offset_q <= offset_q + offset_t'(dut.bytes) == size ? '0 : offset_q + offset_t'(dut.bytes);
      taken_q <= taken_q + 16'(offset_q + offset_t'(dut.bytes) == size);
      flight_q <= flight_q + 1'b1;
      turn_q <= '{
          channel: watch_q[1:0],
          stream: now.stream,
          last: offset_q + offset_t'(dut.bytes) == size && (!now.stream || watch_q[2] || now.end_of_packet),
          bytes: dut.bytes,
          host: now.host + 64'(offset_q),
          card: now.card + 64'(offset_q)
      };
    end
    if (rst_i) begin
      offset_q     <= '0;
      taken_q      <= '0;
      given_q      <= '0;
      flight_q     <= '0;
      turn_known_q <= 1'b0;
    end
  end

  `ASSERT(asked_as_cut, dut.ring_q == asked_q && (!dut.cut_q || dut.carried_here_q == carried_q), "another one is cut")
  `ASSERT(conserved, 8'(given_q - taken_q) == stored[watch_q] + 8'(dut.carried_q[watch_q]),
          "a descriptor is lost or doubled")
  `ASSERT(taken_kept, dut.i_taken.memory[watch_q] == taken_q, "the ring's place is lost")
  `ASSERT(offset_kept, dut.i_places.memory[watch_q][47:20] == offset_q, "the place in the descriptor is lost")
  `ASSERT(flight_kept, dut.i_places.memory[watch_q][6:0] == flight_q, "the turn's number is lost")
  logic places_agree;
  assign places_agree = dut.offset_q == offset_q && dut.taken_q == taken_q && dut.flight_q == flight_q
                        && dut.begun_q == (offset_q != '0);
  `ASSERT(begun_kept, dut.i_places.memory[watch_q][48] == (offset_q != '0), "whether the descriptor has begun is lost")
  `ASSERT(page_counted, !dut.cut_q || dut.page_after_q == 17'(dut.offset_q[27:12]) + 1'b1,
          "the page after is another one")
  `ASSERT(cut_in_place, !(dut.cut_q && asked_q == watch_q) || (places_agree && odd_q == taken_q[0]),
          "a turn begins at the wrong place")
  `ASSERT(in_descriptor, offset_q == '0 || (offset_q < size && !now.bad && !empty_o[watch_q]), "a place behind the end")
  `ASSERT(piece, !cuts || (dut.bytes >= 13'd1 && dut.bytes <= 13'd4096 && 29'(offset_q) + 29'(dut.bytes) <= 29'(size)),
          "a turn reaches behind its descriptor")
  for (genvar i = 0; i < 3; i++) begin : gen_sized
    `ASSUME(sized, watched_q[i].bytes != '0 || watched_q[i].bad)
  end
  // The others' descriptors are arbitrary, but have bytes left when a turn begins.
  `ASSUME(others_go_on, asked_q == watch_q || other_i.bytes > dut.offset_q || other_i.bad)
  `ASSUME(others_begun, asked_q == watch_q || dut.begun_q == (dut.offset_q != '0))
  logic [11:0] other_first;
  assign other_first = (other_i.stream && !asked_q[2] ? '0 : other_i.host[11:0]) + dut.offset_q[11:0];
  `ASSUME(others_at_page, asked_q == watch_q || dut.offset_q == '0 || other_first == '0)
  // A packet to the card is cut at multiples of a page of its own offset, so that turns are whole lines.
  logic [11:0] first;
  assign first = now.stream && !watch_q[2] ? offset_q[11:0] : 12'(now.host[11:0] + offset_q[11:0]);
  `ASSERT(goes_on_at_page, offset_q == '0 || first == '0, "a piece that is not the first begins within a page")
  `ASSERT(page, !cuts || 13'(first) + dut.bytes <= 13'd4096, "a turn crosses a page")
  `ASSERT(at_lines, !now.stream || watch_q[2] || offset_q[5:0] == '0, "a packet's turn begins within a line")
  `ASSERT(lines, !cuts || !now.stream || watch_q[2] || dut.bytes[5:0] == '0 || dut.ends && now.end_of_packet,
          "a packet to the card would have a gap")
  `ASSERT(as_cut, !turn_known_q || (m_turn_valid[watch_q[2]] && m_turn_payload[watch_q[2]] == turn_q),
          "a turn is lost, or is not what was cut")
  `ASSERT(nobody_else, !m_turn_valid[watch_q[2]] || turn_known_q || m_turn_payload[watch_q[2]].channel != watch_q[1:0],
          "a turn is there twice")
  `ASSERT(told,
          !cuts || (flight_o.index == flight_q && flight_o.info.ends == (offset_q + offset_t'(dut.bytes) == size)),
          "what is remembered is not of this turn")

  if (Fair) begin : gen_fair
    // Two channels ready since counting_q: the bytes by which one is ahead of the other.
    ring_t rival;
    logic [1:0] rival_q, current;
    logic counting_q, begins_q, last_q, both, side, starts_a, starts_b, tops, pend_a, pend_b, spent_a, spent_b;
    logic signed [15:0] more_q;
    logic signed [12:0] base_a_q, base_b_q, kept_a, kept_b, now_a, now_b;
    logic signed [2:0] topped_q;
    always_ff @(posedge clk_i) if (rst_i) rival_q <= rival_i;
    assign side     = watch_q[2];
    assign rival    = {side, rival_q};
    assign both     = dut.ready[watch_q] && dut.ready[rival];
    assign kept_a   = dut.i_places.memory[watch_q][19:7];
    assign kept_b   = dut.i_places.memory[rival][19:7];
    assign pend_a   = dut.cut_q && dut.ring_q == watch_q;
    assign pend_b   = dut.cut_q && dut.ring_q == rival;
    assign now_a    = pend_a ? dut.balance_q : kept_a;
    assign now_b    = pend_b ? dut.balance_q : kept_b;
    assign spent_a  = now_a[12];
    assign spent_b  = now_b[12];
    assign current  = dut.current_q[side];
    // A visit begins. It gets more bytes if the previous one has used all.
    assign starts_a = dut.goes && dut.ring == watch_q && dut.fresh_q[side];
    assign starts_b = dut.goes && dut.ring == rival && dut.fresh_q[side];
    assign tops     = dut.spent;
    always_ff @(posedge clk_i) begin
      if (!counting_q || !both) begin
        counting_q <= both && spent_a && spent_b && !pend_a && !pend_b && !starts_a && !starts_b;
        begins_q   <= 1'b0;
        more_q     <= '0;
        topped_q   <= '0;
        base_a_q   <= kept_a;
        base_b_q   <= kept_b;
      end else begin
        if (starts_a || starts_b) begin
          begins_q <= 1'b1;
          last_q   <= starts_b;
          if (tops) topped_q <= starts_a ? topped_q + 3'sd1 : topped_q - 3'sd1;
        end
        if (dut.cuts && pend_a) more_q <= more_q + 16'(dut.bytes);
        if (dut.cuts && pend_b) more_q <= more_q - 16'(dut.bytes);
      end
      if (rst_i) counting_q <= 1'b0;
    end
    `ASSUME(two, rival_q != watch_q[1:0])
    function automatic logic [1:0] steps(logic [1:0] from, logic [1:0] to);
      return to - from;
    endfunction
    // Remaining, granted and sent bytes form one sum. If a cut does not happen, counting ends in the next cycle.
    logic given_up;
    assign given_up = (pend_a || pend_b) && !dut.cuts;
    logic missed_q;
    always_ff @(posedge clk_i) missed_q <= given_up && !rst_i;
    `ASSERT(sum,
            !counting_q || missed_q || more_q == 16'(base_a_q) - 16'(now_a) - 16'(base_b_q) + 16'(now_b)
            + (16'(topped_q) <<< 12),
            "bytes are lost between the balances")
    `ASSERT(based, !counting_q || (base_a_q < 0 && base_b_q < 0), "counting began in the middle")
    `ASSERT(none_yet, !counting_q || begins_q || (topped_q == 0 && spent_a && spent_b), "given without a visit")
    `ASSERT(alternate,
            !counting_q || missed_q || !begins_q || (last_q
            ? (topped_q == 0 || topped_q == -3'sd1) && spent_a && !pend_a
              && steps(
            rival_q, current) <= steps(rival_q, watch_q[1:0]
            ) && (current != rival_q || !dut.fresh_q[side]) && (current != watch_q[1:0] || dut.fresh_q[side]) &&
                (current == rival_q || spent_b) : (topped_q == 0 || topped_q == 3'sd1) && spent_b && !pend_b && steps(
            watch_q[1:0], current) <= steps(watch_q[1:0], rival_q
            ) && (current != watch_q[1:0] || !dut.fresh_q[side]) && (current != rival_q || dut.fresh_q[side]) &&
                (current == watch_q[1:0] || spent_a)),
            "a channel has two visits while the other has none")
    `ASSERT(fair, !counting_q || missed_q || (more_q > -16'sd12288 && more_q < 16'sd12288),
            "one channel gets more than the other")
    `ASSERT(ends, !missed_q || !both, "the counting goes on after a cut that did not happen")
    `COVER(counts, counting_q && begins_q && more_q != 0)
  end else begin : gen_plain
    `COVER(two_pieces, taken_q == 16'd1 && offset_q != '0)
    `COVER(both_kinds, taken_q == 16'd3 && m_turn_valid == '1)
  end

endmodule
`default_nettype wire
