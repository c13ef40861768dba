// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Values in transit: 64 places of 1 KiB, and lists of the free places.
///
/// Behaviour: place_o offers a free place while it is valid. `take_i` takes it, and the next offer follows one cycle
/// later. An owner frees a place by its element of free_i. There are two independent readers, each with its own copy of
/// the memory.
/// Latency: a written word can be read from the next cycle on; reading takes 1 cycle, and the word stays until the next
/// read.
/// Reset: all places are free.
/// Requirements: a place is freed once, and not read or written afterwards.
module kv_pool
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// Reserved places: place_o.plenty is low if at most this many places are free.
    parameter int unsigned Reserve = 16,
    /// Number of blocks that may free places in the same cycle.
    parameter int unsigned Freers  = 3
) (
    input wire clk_i,
    input wire rst_i,

    output offered_place_t place_o,
    input  wire            take_i,

    input wire free_place_t [Freers-1:0] free_i,

    input wire pool_write_t write_i,

    input  wire pool_read_t [1:0]        read_i,
    output logic            [1:0][511:0] read_data_o
);

  if (Reserve >= Places) begin : gen_check_reserve
    $fatal(1, "Reserve must be below the number of places in %m");
  end
  if (Freers < 1) begin : gen_check_freers
    $fatal(1, "Freers must be at least 1 in %m");
  end

  // Free places other than the one on offer: never-used places, plus one list of free places for each block that
  // returns them.
  logic [6:0] fresh_q;
  logic [Freers-1:0][5:0] put_q, take_q;
  place_t [Freers-1:0] oldest;
  // In groups of three bits, as in kv_hazards.
  `YOSYS_KEEP
  logic [Freers-1:0][1:0] differs;
  `YOSYS_KEEP
  logic [Freers-1:0] some, pick;
  logic [6:0] count_q;  // free places, with the one on offer
  logic offer_q;
  place_t place_q, next;
  // take_i arrives late in the cycle, and the other inputs are early.
  `YOSYS_KEEP
  logic found;
  logic fresh, move;

  assign fresh   = !fresh_q[6];
  assign found   = fresh || some != '0;
  assign move    = !offer_q || take_i;
  assign place_o = '{valid: offer_q, plenty: count_q > 7'(Reserve), place: place_q};

  // A list never holds all 64 places, because one has been offered. So 64 entries cannot look like none.
  for (genvar i = 0; i < Freers; i++) begin : gen_list
    assign differs[i] = {put_q[i][5:3] != take_q[i][5:3], put_q[i][2:0] != take_q[i][2:0]};
    assign some[i] = differs[i] != '0;
    lutram #(
        .Width($bits(place_t)),
        .Depth(Places)
    ) i_list (
        .*,
        .write_i(free_i[i].valid),
        .write_address_i(put_q[i]),
        .write_data_i(free_i[i].place),
        .read_address_i(take_q[i]),
        .read_data_o(oldest[i])
    );
  end

  always_comb begin
    next = fresh_q[5:0];
    pick = '0;
    if (!fresh) begin
      for (int i = int'(Freers) - 1; i >= 0; i--) begin
        if (some[i]) begin
          next = oldest[i];
          pick = Freers'(1) << i;
        end
      end
    end
  end

  logic [6:0] given_count;
  always_comb begin
    given_count = '0;
    for (int i = 0; i < int'(Freers); i++) given_count += 7'(free_i[i].valid);
  end

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Freers); i++) begin
      if (free_i[i].valid) put_q[i] <= put_q[i] + 1'b1;
      if (move && pick[i]) take_q[i] <= take_q[i] + 1'b1;
    end
    if (move && fresh) fresh_q <= fresh_q + 1'b1;
    count_q <= count_q + given_count - 7'(take_i);
    if (move && found) place_q <= next;
    if (move) offer_q <= found;
    if (rst_i) begin
      put_q   <= '0;
      take_q  <= '0;
      fresh_q <= '0;
      count_q <= 7'(Places);
      offer_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  logic [Places-1:0] held_q, given;
  always_comb begin
    given = '0;
    for (int i = 0; i < int'(Freers); i++) if (free_i[i].valid) given[free_i[i].place] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    held_q <= held_q & ~given;
    if (take_i) held_q[place_q] <= 1'b1;
    if (rst_i) held_q <= '0;
  end
  logic [6:0] listed;
  always_comb begin
    listed = '0;
    for (int i = 0; i < int'(Freers); i++) listed += 7'(6'(put_q[i] - take_q[i]));
  end
  `ASSERT(none_lost, count_q == 7'(Places) - fresh_q + listed + 7'(offer_q), "a free place is nowhere")
`endif

  for (genvar i = 0; i < 2; i++) begin : gen_reader
    simple_dual_port_ram #(
        .Width(512),
        .Depth(Places * ValueBeats)
    ) i_ram (
        .*,
        .write_i(write_i.write),
        .write_address_i({write_i.place, write_i.beat}),
        .write_data_i(write_i.data),
        .read_i(read_i[i].read),
        .read_address_i({read_i[i].place, read_i[i].beat}),
        .read_data_o(read_data_o[i])
    );
  end

  `ASSERT(taken_from_offer, !take_i || offer_q, "a place was taken that was not on offer")
  `ASSERT(freed_once, (given & ~held_q) == '0, "a free place was given back")
  `ASSERT(freed_by_one, 7'($countones(given)) == given_count, "two gave the same place back")
  `ASSERT(count_right, count_q <= 7'(Places), "more free places than there are")

endmodule
`default_nettype wire
