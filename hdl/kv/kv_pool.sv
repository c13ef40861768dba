// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Values on their way: 64 places of 1 KiB, and which of them are free.
///
/// Behaviour: place_o is the next free place while place_valid_o; take_i takes it, and another is there in the next cycle. Anybody who
/// holds a place gives it back with a bit of free_i. Two readers, independent of each other, each with a copy of the memory.
/// Latency: written in one cycle, it can be read from the next on; reading 1 cycle, and the word stays until the next read_i.
/// Reset: all places are free.
/// Requirements: a place is given back once, and not read or written after that.
module kv_pool
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// Places kept back: place_plenty_o is low when no more than these are free.
    parameter  int unsigned Reserve  = 16,
    /// Who may give places back, at once.
    parameter  int unsigned Freers   = 3,
    localparam int unsigned BeatBits = $clog2(ValueBeats)
) (
    input wire clk_i,
    input wire rst_i,

    output logic   place_valid_o,
    output logic   place_plenty_o,
    output place_t place_o,
    input  wire    take_i,

    input wire         [Freers-1:0] free_i,
    input wire place_t [Freers-1:0] freed_i,

    input wire                        write_i,
    input wire place_t                write_place_i,
    input wire         [BeatBits-1:0] write_beat_i,
    input wire         [       511:0] write_data_i,

    input  wire         [1:0]               read_i,
    input  wire place_t [1:0]               read_place_i,
    input  wire         [1:0][BeatBits-1:0] read_beat_i,
    output logic        [1:0][       511:0] read_data_o
);

  if (Reserve >= Places) begin : gen_check_reserve
    $fatal(1, "Reserve must be below the number of places in %m");
  end
  if (Freers < 1) begin : gen_check_freers
    $fatal(1, "Freers must be at least 1 in %m");
  end

  // Free places but for the one on offer.
  logic [Places-1:0] free_q, lowest, given;
  logic [6:0] count_q;  // free places, with the one on offer
  logic offer_q;
  place_t place_q, first;
  logic refill;

  assign lowest         = free_q & (~free_q + 1'b1);
  assign refill         = (!offer_q || take_i) && free_q != '0;
  assign place_valid_o  = offer_q;
  assign place_o        = place_q;
  assign place_plenty_o = count_q > 7'(Reserve);

  always_comb begin
    first = '0;
    for (int i = 0; i < int'(Places); i++) if (lowest[i]) first |= 6'(i);
    given = '0;
    for (int i = 0; i < int'(Freers); i++) if (free_i[i]) given[freed_i[i]] = 1'b1;
  end

  logic [6:0] given_count;
  always_comb begin
    given_count = '0;
    for (int i = 0; i < int'(Freers); i++) given_count += 7'(free_i[i]);
  end

  always_ff @(posedge clk_i) begin
    free_q  <= (refill ? free_q & ~lowest : free_q) | given;
    count_q <= count_q + given_count - 7'(take_i);
    if (refill) place_q <= first;
    if (!offer_q || take_i) offer_q <= refill;
    if (rst_i) begin
      free_q  <= '1;
      count_q <= 7'(Places);
      offer_q <= 1'b0;
    end
  end

  for (genvar i = 0; i < 2; i++) begin : gen_reader
    simple_dual_port_ram #(
        .Width(512),
        .Depth(Places * ValueBeats)
    ) i_ram (
        .clk_i,
        .write_i(write_i),
        .write_address_i({write_place_i, write_beat_i}),
        .write_data_i(write_data_i),
        .read_i(read_i[i]),
        .read_address_i({read_place_i[i], read_beat_i[i]}),
        .read_data_o(read_data_o[i])
    );
  end

  `ASSERT(taken_from_offer, !take_i || offer_q, "a place was taken that was not on offer")
  `ASSERT(freed_once, (free_q & given) == '0 && !(offer_q && given[place_q]), "a free place was given back")
  `ASSERT(count_right, count_q <= 7'(Places), "more free places than there are")

endmodule
`default_nettype wire
