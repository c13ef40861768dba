// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Cuts descriptors into turns of up to 4 KiB, and shares each direction among its channels by bytes.
///
/// Behaviour:
/// - Each direction has every other cycle: one to read the active channel's next descriptor, one to cut a piece,
///   up to the transfer's end or the next 4 KiB of the host's address (of the offset, for a packet to the card).
/// - A channel is active until its balance of bytes is used up or it has no work. The next ready channel
///   follows, and gets 4096 bytes if it has none left. A piece may overdraw the balance by less than 4096 bytes,
///   which the channel's next turn repays. So busy channels get equal shares, whatever the size of their pieces.
/// - A piece of a packet waits for the data part; its ring lets others pass. To the card: stream_room_i. To the
///   host: a packet for its channel, and packet_room_i; one at a time, since it would block the turns behind it.
/// - A ring has at most 128 turns in flight, so a channel whose turns are slow leaves the others their share.
/// - These descriptors end their ring (bad_o) when all before them are reported: 0 bytes; 2^28 or more; a packet
///   buffer longer than a turn; a part of a packet to the card that neither ends it nor has whole lines of 64 bytes.
/// Latency: an available descriptor becomes a turn 3 cycles later if no other work waits; a turn every 2 cycles.
/// Reset: all rings are empty. life_i.clear does the same for one ring.
/// Requirements: a ring in its clear has may_i low and no turn in flight, after 3 cycles of life_i.hold. All
/// descriptors fit the store. answered_i comes once a turn. store_i is the descriptor of the previous cycle's look_o.
module dma_turns
  import dma_pkg::turn_t, dma_pkg::TurnBytes;
  import dma_control_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    /// Rings that may take turns.
    input wire each_t may_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire life_t life_i,

    // Descriptors that the fetch made available.
    input wire stored_t stored_i,
    input wire carry_t  carry_i,

    output look_t            look_o,
    input  wire descriptor_t store_i,
    // verilator lint_on UNUSEDSIGNAL

    // The number of descriptors taken from a ring.
    input  wire ring_t taken_ring_i,
    output count_t     taken_o,

    output logic  [1:0] m_turn_valid,
    input  wire   [1:0] m_turn_ready,
    output turn_t [1:0] m_turn_payload,

    // Data stored with a turn.
    output flight_event_t flight_o,
    input  wire answer_t  answered_i,

    // Whether the data part can move packets.
    input wire stream_room_i,
    input wire stream_valid_i,
    input wire [1:0] stream_channel_i,
    input wire packet_room_i,

    /// A descriptor that a doorbell carried waits to be taken, in any ring.
    output logic  carried_o,
    output each_t bad_o,
    /// All available descriptors were taken.
    output each_t empty_o,
    /// Turns are in flight, or are about to start.
    output each_t busy_o
);

  localparam int unsigned PageBits = $clog2(TurnBytes);
  typedef logic signed [PageBits:0] balance_t;  // bytes that are left, less 1: below 0 there are none

  // ---- first cycle: which channel is active

  logic side_q;
  logic [1:0][1:0] current_q;
  logic [1:0] fresh_q;  // the channel has the turn since the last look
  ring_t ring;
  logic [1:0] next;  // channel
  each_t ready;
  logic [3:0] ready_here;
  logic goes, may_go, free, spent;
  balance_t balance_kept, balance;
  count_t taken;
  offset_t offset;
  flight_t flight;
  logic [Rings-1:0] carried_q;

  assign ring       = {side_q, current_q[side_q]};
  assign ready_here = side_q ? ready[7:4] : ready[3:0];
  assign free       = !m_turn_valid[side_q] || m_turn_ready[side_q];
  assign spent      = balance_kept[PageBits];
  assign balance    = fresh_q[side_q] && spent ? {1'b0, balance_kept[PageBits-1:0]} : balance_kept;  // + TurnBytes
  assign may_go     = ready[ring] && (fresh_q[side_q] || !spent);
  assign goes       = may_go && free && !life_i.hold && !life_i.clear;

  // The next channel that may be active, or the same one.
  always_comb begin
    next = ring[1:0];
    for (int i = 3; i >= 1; i--) begin
      if (ready_here[2'(ring[1:0]+2'(i))]) next = 2'(ring[1:0] + 2'(i));
    end
  end

  assign carried_o = carried_q != '0;
  assign look_o = '{carried: carried_q[ring], ring: ring, index: taken[AheadBits-1:0]};

  // ---- second cycle: the cut

  logic cut_q;
  ring_t ring_q;
  balance_t balance_q;
  count_t taken_q;
  offset_t offset_q;
  flight_t flight_q;
  logic carried_here_q;
  logic begun, begun_q;  // offset_q is not 0; then a page begins there
  logic [28:PageBits] page_after_q;  // of offset_q

  logic bad, gap, ends, cuts, packet_q;
  logic outward;  // of a packet to the card: its turns are whole lines, but for the last
  each_t open;  // for a piece of a packet
  logic [PageBits-1:0] low;  // of the host's address
  logic [PageBits:0] bytes, room, left;
  // The first piece ends at a host page, so all others begin at one. Only the first piece needs the address.
  // The descriptor stores whether the first piece is also the last.
  assign outward = store_i.stream && !ring_q[2];
  assign left = store_i.bytes[PageBits:0] - offset_q[PageBits:0];
  assign low = begun_q || outward ? '0 : store_i.host[PageBits-1:0];
  assign room = (PageBits + 1)'(TurnBytes) - {1'b0, low};
  assign ends = begun_q ? 29'(store_i.bytes) <= {page_after_q, offset_q[PageBits-1:0]}
                        : outward ? store_i.one_turn : store_i.one_page;
  assign bytes = ends ? left : room;
  assign gap = outward && !store_i.end_of_packet && store_i.bytes[5:0] != '0;
  // A packet's buffer is one turn: the turn ends the descriptor, or never begins.
  assign bad = store_i.bad || gap || (store_i.stream && ring_q[2] && !store_i.one_page);
  assign cuts = cut_q && !bad && !(store_i.stream && !open[ring_q]);

  turn_t turn;
  assign turn = '{
          channel: ring_q[1:0],
          stream: store_i.stream,
          last: ends && (!store_i.stream || ring_q[2] || store_i.end_of_packet),
          bytes: bytes,
          // The register comes first: each bit of the sum then needs one LUT, for any source of the other number.
          host:
          64'(
          offset_q
          ) +
          store_i.host,
          card: 64'(offset_q) + store_i.card
      };
  flight_info_t info;
  assign info = '{stream_to_host: store_i.stream && ring_q[2], notify: store_i.notify && ends, ends: ends};
  assign flight_o = '{valid: cuts, ring: ring_q, index: flight_q, info: info};

  turn_t [1:0] turn_q;
  logic  [1:0] valid_q;
  assign m_turn_valid   = valid_q;
  assign m_turn_payload = turn_q;

  always_ff @(posedge clk_i) begin
    side_q         <= !side_q;
    cut_q          <= goes;
    ring_q         <= ring;
    balance_q      <= balance;
    taken_q        <= taken;
    offset_q       <= offset;
    begun_q        <= begun;
    page_after_q   <= 17'(offset[27:PageBits]) + 1'b1;
    flight_q       <= flight;
    carried_here_q <= carried_q[ring];
    if (goes) fresh_q[side_q] <= 1'b0;
    else if (!may_go && ready_here != '0) begin
      current_q[side_q] <= next;
      fresh_q[side_q]   <= 1'b1;
    end
    valid_q <= valid_q & ~m_turn_ready;
    if (answered_i.valid && answered_i.packet) packet_q <= 1'b0;
    if (cuts && store_i.stream && ring_q[2]) packet_q <= 1'b1;
    if (cuts) begin
      valid_q[ring_q[2]] <= 1'b1;
      turn_q[ring_q[2]]  <= turn;
    end
    if (rst_i) begin
      side_q    <= 1'b0;
      cut_q     <= 1'b0;
      current_q <= '0;
      fresh_q   <= '0;
      packet_q  <= 1'b0;
      valid_q   <= '0;
    end
  end

  // ---- the progress of each ring

  logic writes;
  ring_t write_ring;
  count_t taken_next;
  offset_t offset_next;
  balance_t balance_next;
  flight_t flight_next;
  logic begun_next;
  offset_t place_after;
  assign place_after  = begun_q ? {page_after_q[27:PageBits], offset_q[PageBits-1:0]} : offset_t'(room);
  assign writes       = cuts || life_i.clear;
  assign write_ring   = life_i.clear ? life_i.clear_ring : ring_q;
  assign taken_next   = life_i.clear ? '0 : taken_q + 16'(ends);
  assign offset_next  = life_i.clear || ends ? '0 : place_after;
  assign begun_next   = !life_i.clear && !ends;
  assign balance_next = life_i.clear ? '1 : balance_q - balance_t'(bytes);
  assign flight_next  = life_i.clear ? '0 : flight_q + 1'b1;
  lutram #(
      .Width($bits(count_t)),
      .Depth(Rings),
      .ReadPorts(2)
  ) i_taken (
      .*,
      .write_i        (writes),
      .write_address_i(write_ring),
      .write_data_i   (taken_next),
      .read_address_i ({taken_ring_i, ring}),
      .read_data_o    ({taken_o, taken})
  );
  lutram #(
      .Width(1 + $bits(offset_t) + $bits(balance_t) + $bits(flight_t)),
      .Depth(Rings)
  ) i_places (
      .*,
      .write_i        (writes),
      .write_address_i(write_ring),
      .write_data_i   ({begun_next, offset_next, balance_next, flight_next}),
      .read_address_i (ring),
      .read_data_o    ({begun, offset, balance_kept, flight})
  );

  for (genvar i = 0; i < int'(Rings); i++) begin : gen_ring
    // Descriptors in the store, and turns in flight.
    logic [AheadBits:0] stored_q;
    logic [FlightBits:0] flying_q;
    logic some_q;  // stored_q is not 0
    logic bad_q, waits_q, here, clears, uses, takes, starts, ended;
    logic [4:0] more;
    assign here = ring_q == ring_t'(i);
    assign open[i] = i < 4 ? stream_room_i : stream_valid_i && stream_channel_i == 2'(i) && packet_room_i && !packet_q;
    assign clears = life_i.clear && life_i.clear_ring == ring_t'(i);
    assign more = stored_i.valid && stored_i.ring == ring_t'(i) ? stored_i.count : '0;
    assign uses = cuts && here && ends;
    assign takes = uses && !carried_here_q;
    assign starts = cuts && here;
    assign ended = answered_i.valid && answered_i.ring == ring_t'(i);
    always_ff @(posedge clk_i) begin
      stored_q <= stored_q + (AheadBits + 1)'(more) - (AheadBits + 1)'(takes);
      some_q   <= more != '0 || stored_q[AheadBits:1] != '0 || (stored_q[0] && !takes);
      if (uses) carried_q[i] <= 1'b0;
      if (carry_i.valid && carry_i.ring == ring_t'(i)) carried_q[i] <= 1'b1;
      if (starts != ended) flying_q <= starts ? flying_q + 1'b1 : flying_q - 1'b1;
      if (cut_q && here && bad) bad_q <= 1'b1;
      waits_q <= !open[i] && (waits_q || (cut_q && here && store_i.stream && !bad));
      if (rst_i || clears) begin
        stored_q     <= '0;
        some_q       <= 1'b0;
        carried_q[i] <= 1'b0;
        bad_q        <= 1'b0;
        waits_q      <= 1'b0;
      end
      if (rst_i) flying_q <= '0;
    end
    assign ready[i]   = may_i[i] && !bad_q && !waits_q && (some_q || carried_q[i]) && !flying_q[FlightBits];
    assign bad_o[i]   = bad_q;
    assign empty_o[i] = !some_q && !carried_q[i];
    assign busy_o[i]  = flying_q != '0 || (cut_q && here);

    `ASSERT(some_right, some_q == (stored_q != '0), "whether there are descriptors is not what their count says")
    `ASSERT(counted, !ended || flying_q != '0, "a turn was answered that is not under way")
    `ASSERT(cleared_at_rest, !clears || !busy_o[i], "a ring is cleared that is at work")
  end

  `ASSERT(some_bytes, !cuts || bytes != '0, "a turn of no bytes")
  `ASSERT(within_page, !cuts || (PageBits + 1)'(low) + bytes <= (PageBits + 1)'(TurnBytes),
          "a turn crosses a page of the host")
  `ASSERT(begins_a_page, !cuts || !begun_q || outward || ((turn.host & 64'(TurnBytes - 1)) == '0),
          "a turn goes on within a page of the host")
  `ASSERT(begun_right, !cuts || begun_q == (offset_q != '0),
          "whether a descriptor has begun is not what its place says")
  `ASSERT(fits_known, !cuts || {store_i.one_page, store_i.one_turn} == fits_of(store_i.bytes, store_i.host[11:0]),
          "what is known of a descriptor is wrong")
  `ASSERT(place_free, !cuts || !valid_q[ring_q[2]] || m_turn_ready[ring_q[2]], "a turn is overwritten")
  `ASSERT_NEXT(turn_0_kept, m_turn_valid[0] && !m_turn_ready[0], m_turn_valid[0] && m_turn_payload[0] == $past
               (m_turn_payload[0]), "a turn to the card was withdrawn or changed before it was taken")
  `ASSERT_NEXT(turn_1_kept, m_turn_valid[1] && !m_turn_ready[1], m_turn_valid[1] && m_turn_payload[1] == $past
               (m_turn_payload[1]), "a turn to the host was withdrawn or changed before it was taken")

endmodule
`default_nettype wire
