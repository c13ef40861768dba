// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of kv_pool: at any time each place is either in exactly one list of free places, or held by one owner. So no
/// place is offered twice or lost.
/// The proof watches one arbitrary place, which `watched_i` selects in the first cycle. The stored values are
/// irrelevant.
module kv_pool_proof
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter int unsigned Freers  = 3,
    parameter int unsigned Reserve = 16
) (
    input wire                           clk_i,
    input wire                           rst_i,
    input wire                           take_i,
    input wire free_place_t [Freers-1:0] free_i,
    input wire place_t                   watched_i
);

  offered_place_t place_o;
  kv_pool #(
      .Reserve(Reserve),
      .Freers (Freers)
  ) dut (
      .*,
      .write_i('0),
      .read_i('0),
      .read_data_o()
  );

  place_t watched_q;
  logic held_q;  // by somebody: the watched place
  logic [Places-1:0] all_held_q;
  logic [6:0] taken_q;  // and not given back
  logic [Freers-1:0] gives, frees_watched, is_held, is_other;

  `RESET_FIRST
  `ASSUME(taken_from_offer, !take_i || place_o.valid)
  for (genvar i = 0; i < Freers; i++) begin : gen_given
    assign gives[i] = free_i[i].valid;
    assign is_held[i] = !free_i[i].valid || all_held_q[free_i[i].place];
    assign frees_watched[i] = free_i[i].valid && free_i[i].place == watched_q;
    always_comb begin
      is_other[i] = 1'b1;
      for (int j = 0; j < i; j++)
      if (free_i[i].valid && free_i[j].valid && free_i[i].place == free_i[j].place) is_other[i] = 1'b0;
    end
  end
  `ASSUME(given_back_was_taken, is_held == '1)
  `ASSUME(given_back_by_one, is_other == '1)
  // This follows from the two assumptions above, but induction needs it explicitly.
  `ASSUME(given_were_taken, 7'($countones(gives)) <= taken_q)

  logic [Places-1:0] given;
  always_comb begin
    given = '0;
    for (int i = 0; i < int'(Freers); i++) if (free_i[i].valid) given[free_i[i].place] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    all_held_q <= all_held_q & ~given;
    if (take_i) all_held_q[place_o.place] <= 1'b1;
    taken_q <= taken_q + 7'(take_i) - 7'($countones(gives));
    if (rst_i) begin
      taken_q <= '0;
      all_held_q <= '0;
      watched_q <= watched_i;
    end
  end
  assign held_q = all_held_q[watched_q];

  // Where the watched place waits. A ghost variable follows the place and the contents of the lists.
  typedef enum logic [1:0] {
    Fresh,
    Listed,
    Offered,
    Held
  } spot_t;
  spot_t spot_q;
  logic [Freers-1:0] list_q;  // one bit: whose list
  place_t index_q;
  always_ff @(posedge clk_i) begin
    if (spot_q == Held && frees_watched != '0) begin
      spot_q <= Listed;
      list_q <= frees_watched;
      for (int i = 0; i < int'(Freers); i++) if (frees_watched[i]) index_q <= dut.put_q[i];
    end
    if (take_i && spot_q == Offered) spot_q <= Held;
    if (dut.move && dut.fresh && spot_q == Fresh && 7'(watched_q) == dut.fresh_q) spot_q <= Offered;
    for (int i = 0; i < int'(Freers); i++)
    if (dut.move && dut.pick[i] && spot_q == Listed && list_q[i] && index_q == dut.take_q[i]) spot_q <= Offered;
    if (rst_i) spot_q <= Fresh;
  end

  logic [Freers-1:0][6:0] length;
  logic [Freers-1:0][Places-1:0] waits;  // the watched place, at that place of that list
  for (genvar i = 0; i < Freers; i++) begin : gen_list
    assign length[i] = 7'(6'(dut.put_q[i] - dut.take_q[i]));
    for (genvar j = 0; j < Places; j++) begin : gen_entry
      assign waits[i][j] = 6'(6'(j) - dut.take_q[i]) < 6'(length[i]) && dut.gen_list[i].i_list.memory[j] == watched_q;
    end
    `ASSERT(in_its_list, waits[i] == (spot_q == Listed && list_q[i] ? Places'(1) << index_q : '0),
            "a place is in a list twice, or in two, or lost")
  end
  logic [8:0] free_places;
  always_comb begin
    free_places = 9'd64 - 9'(dut.fresh_q) + 9'(dut.offer_q);
    for (int i = 0; i < int'(Freers); i++) free_places += 9'(length[i]);
  end

  `ASSERT(fresh_once, (spot_q == Fresh) == (7'(watched_q) >= dut.fresh_q),
          "a place that nobody has had was lost, or made up")
  `ASSERT(on_offer_once, (spot_q == Offered) == (dut.offer_q && dut.place_q == watched_q),
          "a place is on offer and elsewhere")
  `ASSERT(held_once, (spot_q == Held) == held_q, "a place is free though somebody holds it, or lost")
  `ASSERT(one_list, spot_q != Listed || (list_q & (list_q - 1'b1)) == '0 && list_q != '0, "in no list, or in two")
  `ASSERT(offered_is_free, !(place_o.valid && place_o.place == watched_q) || !held_q,
          "a place was offered that somebody holds")
  `ASSERT(all_are_somewhere, free_places + 9'(taken_q) == 9'(Places), "places were lost or made up")
  `ASSERT(plenty_is_right, place_o.plenty == (free_places > 9'(Reserve)), "says wrongly how many are free")
  `COVER(taken_and_given, take_i && frees_watched != '0)
  `COVER(given_by_two, frees_watched[0] && free_i[Freers-1].valid)

  // For induction: these assertions exclude unreachable starting states.
  `ASSERT(same_holders, dut.held_q == all_held_q, "the pool's own list of holders is another")
  `ASSERT(fresh_ends, dut.fresh_q <= 7'(Places), "more places than there are")
  `ASSERT(short_without_offer, dut.offer_q || (dut.fresh_q[6] || dut.fresh_q == '0),
          "nothing is on offer, and a place that nobody has had waits")
  for (genvar i = 0; i < Freers; i++) begin : gen_short
    `ASSERT(short_list, dut.offer_q || length[i] <= 7'd1, "nothing is on offer, and two places wait")
  end

endmodule
`default_nettype wire
