// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Fetches descriptors into the store as soon as a doorbell announces them.
///
/// Behaviour:
/// - A doorbell without a descriptor moves its ring's tail. Rings take turns to request descriptors. A read asks for up
///   to 16, needs room for 16, and stays within a multiple of 16 (4 or 8 if the function's reads are limited). So it
///   crosses neither a page nor the ring's end. It begins at an even descriptor, so that a beat is a row of the store.
/// - A doorbell's descriptor goes directly to the store (carry_*) if it is the ring's next one to be taken,
///   and no ring has an untaken carried one (carried_i). Otherwise it is fetched from the ring like any other, also if
///   m_read is not accepted at once: no doorbell waits for a read.
/// - Reads complete in any order, but descriptors become available (stored_*) in request order. A read
///   fails at its first completion with an error, or if its length is wrong (ErrorMalformed); code_o is the
///   first error. After a failed read, no more descriptors of its ring become available (bad_o, code_o).
/// Latency: doorbell to read request 6 cycles, to carry_o 4; last beat of a fetch to stored_o 2.
/// Reset: no descriptor is requested, and all tails are 0. life_i.clear does the same for one ring.
/// Requirements: a ring in its clear has may_i low and no read in flight, after 3 cycles of life_i.hold. No answers of
/// reads from before a reset or life_i.forget. Completions begin at multiples of 64 bytes (PCIe's completion boundary).
module dma_fetch
  import dma_pkg::read_t, dma_pkg::completion_t;
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // the other registers
    input wire setting_t  setting_i,
    // verilator lint_on UNUSEDSIGNAL
    /// Rings whose descriptors may be requested.
    input wire each_t     may_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire function_t function_i,
    input wire life_t     life_i,
    // verilator lint_on UNUSEDSIGNAL

    input  wire            doorbell_valid,
    output logic           doorbell_ready,
    input  wire doorbell_t doorbell,

    // The number of descriptors that dma_turns has taken from the ring.
    output ring_t       taken_ring_o,
    input  wire count_t taken_i,
    input  wire         carried_i,

    `STREAM_SENDER(m_read, read_t)

    input wire              s_completion_valid,
    // verilator lint_off UNUSEDSIGNAL
    input wire completion_t s_completion_payload,
    // verilator lint_on UNUSEDSIGNAL

    output row_t    row_o,
    output carry_t  carry_o,
    output stored_t stored_o,

    output each_t             bad_o,
    output code_t [Rings-1:0] code_o,
    /// A read is in flight, or is about to be requested.
    output each_t             busy_o,
    output logic              asking_o
);

  localparam int unsigned TagBits = $clog2(FetchTags);

  // ---- one ring at a time

  typedef enum logic [2:0] {
    Pick,
    Look,
    Count,
    Decide,
    Ask
  } step_e;
  step_e step_q;
  ring_t ring_q, next, next_q;
  logic carry_q, carry_waits, other, some_q;  // of the rings may be picked: next_q
  each_t wants_q, may, later_q;  // behind a doorbell; those after the last one come first

  assign may         = wants_q & may_i & ~bad_o;
  assign carry_waits = doorbell_valid && doorbell.carries;
  always_comb begin
    next  = '0;
    other = |(may & later_q);
    for (int i = int'(Rings) - 1; i >= 0; i--) if (may[i] && (later_q[i] || !other)) next = ring_t'(i);
  end
  assign taken_ring_o = ring_q;
  assign asking_o = step_q != Pick;

  // ---- the state of the ring

  logic moves;  // a tail
  logic stuck_q;  // a read waits
  count_t tail_now, fetched_now, tail_q, fetched_q, taken_q, fetched_next;
  logic write_fetched;
  logic looks;
  logic [63:12] base_q;
  logic [4:0] bits_q;
  assign looks = step_q == Look;
  lutram #(
      .Width(16),
      .Depth(Rings)
  ) i_tails (
      .*,
      .write_i        (moves || life_i.clear),
      .write_address_i(life_i.clear ? life_i.clear_ring : doorbell.ring),
      .write_data_i   (life_i.clear ? '0 : doorbell.tail),
      .read_address_i (ring_q),
      .read_data_o    (tail_now)
  );
  lutram #(
      .Width(16),
      .Depth(Rings)
  ) i_fetched (
      .*,
      .write_i        (write_fetched || life_i.clear),
      .write_address_i(life_i.clear ? life_i.clear_ring : ring_q),
      .write_data_i   (life_i.clear ? '0 : fetched_next),
      .read_address_i (ring_q),
      .read_data_o    (fetched_now)
  );
  dma_ring_word #(
      .Word (RingLowWord[3:0]),
      .Low  (12),
      .Width(20),
      .Block(1'b1)
  ) i_low (
      .*,
      .read_i (looks),
      .ring_i (ring_q),
      .value_o(base_q[31:12])
  );
  dma_ring_word #(
      .Word (RingHighWord[3:0]),
      .Block(1'b1)
  ) i_high (
      .*,
      .read_i (looks),
      .ring_i (ring_q),
      .value_o(base_q[63:32])
  );
  dma_ring_word #(
      .Word (RingControlWord[3:0]),
      .Low  (RingControlRingBitsLow),
      .Width(RingControlRingBitsBits),
      .Block(1'b1)
  ) i_bits (
      .*,
      .read_i (looks),
      .ring_i (ring_q),
      .value_o(bits_q)
  );

  // ---- how many

  count_t ready, held;
  logic [15:1] index;  // of two
  logic [ 3:0] block;  // descriptors that a read may ask for, less 1
  logic [4:0] count, left;  // of the block
  logic room, tag_free, asks, carried_here, takes_carried;
  logic [TagBits-1:0] tag;
  // Computed in Count, used in Decide.
  logic filled_q, room_q, all_q, follows_q;
  logic [4:0] count_q;
  assign block = function_i.max_read == 3'd0 ? 4'd3 : function_i.max_read == 3'd1 ? 4'd7 : 4'd15;
  assign ready = tail_q - fetched_q;
  assign held = fetched_q - taken_q;
  assign left = 5'(block) + 5'd1 - 5'(fetched_q[3:0] & block);
  assign count = ready < 16'(left) ? ready[4:0] : left;
  assign room = held <= count_t'((1 << AheadBits) - FetchMost);
  assign asks = step_q == Decide && !carry_q && filled_q && room_q && tag_free;
  assign carried_here = step_q == Decide && carry_q && carry_waits && doorbell.ring == ring_q && !life_i.ignore[ring_q]
                        && !life_i.hold && !life_i.clear;
  assign takes_carried = carried_here && follows_q && !carried_i;
  assign fetched_next = carry_q ? doorbell.tail : fetched_q + 16'(count_q);
  assign write_fetched = asks || takes_carried;
  assign index = fetched_q[15:1] & ~('1 << (bits_q - 1'b1));

  assign doorbell_ready = life_i.ignore[doorbell.ring] || carried_here || ((!doorbell.carries || stuck_q)
                        && !life_i.hold && !life_i.clear);
  assign moves = doorbell_valid && doorbell_ready && !life_i.ignore[doorbell.ring];
  assign carry_o = '{valid: takes_carried, ring: ring_q, data: doorbell.descriptor};

  logic [63:0] address_q;
  logic [9:0] bytes_q;
  logic [TagBits-1:0] tag_q;
  assign m_read_valid   = step_q == Ask;
  assign m_read_payload = '{tag: 8'(tag_q), bytes: 13'(bytes_q), addr: address_q};

  always_ff @(posedge clk_i) begin
    some_q  <= may != '0;
    stuck_q <= step_q == Ask && !m_read_ready;
    next_q  <= next;
    unique case (step_q)
      Pick: begin
        if (!life_i.hold && !life_i.clear) begin
          // Doorbells with a descriptor alternate with fetches.
          if (carry_waits && (!carry_q || !some_q)) begin
            step_q  <= Look;
            ring_q  <= doorbell.ring;
            carry_q <= 1'b1;
          end else if (some_q) begin
            step_q  <= Look;
            ring_q  <= next_q;
            carry_q <= 1'b0;
            for (int i = 0; i < int'(Rings); i++) later_q[i] <= i > int'(next_q);
            wants_q[next_q] <= 1'b0;
          end
        end
      end
      Look: begin
        step_q    <= Count;
        tail_q    <= tail_now;
        fetched_q <= fetched_now;
        taken_q   <= taken_i;
      end
      Count: begin
        step_q    <= Decide;
        filled_q  <= ready != '0;
        room_q    <= room;
        all_q     <= ready <= 16'(left);
        count_q   <= count;
        follows_q <= held == '0 && ready == '0 && doorbell.tail == fetched_q + 1'b1;
      end
      Decide: begin
        step_q    <= asks ? Ask : Pick;
        tag_q     <= tag;
        bytes_q   <= {count_q + 5'(fetched_q[0]), 5'd0};
        address_q <= {base_q, 12'd0} + 64'({index, 6'd0});
        // Are there more descriptors? A doorbell since Look also sets this.
        if (!carry_q && filled_q && !(asks && all_q)) wants_q[ring_q] <= 1'b1;
      end
      default: if (m_read_ready) step_q <= Pick;  // Ask
    endcase
    if (moves && !takes_carried) wants_q[doorbell.ring] <= 1'b1;
    if (life_i.clear) wants_q[life_i.clear_ring] <= 1'b0;
    if (rst_i) begin
      step_q  <= Pick;
      carry_q <= 1'b0;
      stuck_q <= 1'b0;
      wants_q <= '0;
      later_q <= '0;
      some_q  <= 1'b0;
    end
  end

  // ---- completions, and the order in which descriptors become available

  typedef struct packed {
    ring_t                ring;
    logic [AheadBits-2:0] row;
    logic                 odd;   // of the first row only the second half was asked for
    logic [3:0]           last;  // half of a row that is brought, from the first row's first on
  } fetch_t;
  // verilator lint_off UNUSEDSIGNAL  // each has its use
  fetch_t asked, found, oldest;
  // verilator lint_on UNUSEDSIGNAL
  logic known, here, ends, retires, unused_unexpected;
  logic [TagBits-1:0] here_tag, unused_tag;
  logic [TagBits:0] unused_count;
  code_t failure, wrong, earlier;
  logic fits, whole, halves;
  // One cycle after a beat it is known whether the beat is correct.
  logic here_q, ends_q, fits_q, spoilt;
  logic  [  TagBits-1:0]      tag_of_q;
  code_t                      error_q;
  logic  [FetchTags-1:0][2:0] beat_q;
  code_t [FetchTags-1:0]      wrong_q;  // with the beats so far: the first error
  assign asked = '{
          ring: ring_q,
          row: fetched_q[AheadBits-1:1],
          odd: fetched_q[0],
          last: 4'(count_q - 5'(!fetched_q[0]))
      };
  assign here_tag = s_completion_payload.tag[TagBits-1:0];
  assign here = s_completion_valid && s_completion_payload.tag[7:TagBits] == '0;
  assign ends = here && s_completion_payload.final_;
  // A beat has 32 or 64 bytes. A final beat's last half is the read's last one; other beats must have 64 bytes.
  assign whole = s_completion_payload.bytes[6];
  assign halves = ^s_completion_payload.bytes[6:5] && s_completion_payload.bytes[4:0] == '0;
  assign fits = s_completion_payload.final_ ? halves && {beat_q[here_tag], whole} == found.last
                                            : whole && {beat_q[here_tag], 1'b1} < found.last;
  assign earlier = wrong_q[tag_of_q];
  always_comb begin
    wrong = earlier;
    if (earlier == '0) wrong = error_q;
    if (earlier == '0 && error_q == '0 && !fits_q) wrong = dma_pkg::ErrorMalformed;
  end
  // A beat of this read had an error, so no more of the read is written.
  assign spoilt = wrong_q[here_tag] != '0 || (here_q && tag_of_q == here_tag && (error_q != '0 || !fits_q));
  tag_table #(
      .Tags(FetchTags),
      .Width($bits(fetch_t)),
      .ResultWidth($bits(code_t))
  ) i_reads (
      .*,
      .rst_i            (rst_i || life_i.forget),
      `STREAM_PORTS(s, asks, tag_free, asked),
      .s_tag            (tag),
      .complete_i       (ends_q),
      .complete_tag_i   (tag_of_q),
      .complete_result_i(wrong),
      .unexpected_o     (unused_unexpected),
      .lookup_tag_i     (here_tag),
      .lookup_found_o   (known),
      .lookup_payload_o (found),
      .m_valid          (retires),
      .m_ready          (1'b1),
      .m_tag            (unused_tag),
      .m_payload        (oldest),
      .m_result         (failure),
      .count_o          (unused_count)
  );

  logic first;
  assign first = beat_q[here_tag] == '0;
  assign row_o.write[0] = here && known && !spoilt && !(found.odd && first);
  assign row_o.write[1] = here && known && !spoilt && s_completion_payload.bytes > 7'd32;
  assign row_o.ring = found.ring;
  assign row_o.row = found.row + (AheadBits - 1)'(beat_q[here_tag]);
  assign row_o.data = {
    descriptor_of(s_completion_payload.data[447:256]), descriptor_of(s_completion_payload.data[191:0])
  };
  assign stored_o = '{
          valid: retires && failure == '0 && !bad_o[oldest.ring],
          ring: oldest.ring,
          count: 5'(oldest.last) + 5'(!oldest.odd)
      };

  always_ff @(posedge clk_i) begin
    here_q   <= here && known;
    ends_q   <= ends && known;
    fits_q   <= fits;
    tag_of_q <= here_tag;
    error_q  <= s_completion_payload.error;
    if (here && known) beat_q[here_tag] <= ends ? '0 : beat_q[here_tag] + 1'b1;
    if (here_q) wrong_q[tag_of_q] <= ends_q ? '0 : wrong;
    if (rst_i || life_i.forget) begin
      here_q  <= 1'b0;
      ends_q  <= 1'b0;
      beat_q  <= '0;
      wrong_q <= '0;
    end
  end

  for (genvar i = 0; i < int'(Rings); i++) begin : gen_ring
    logic bad_q;
    code_t code_q;
    logic [TagBits:0] under_way_q;
    logic begins, comes, clears;
    assign clears = life_i.clear && life_i.clear_ring == ring_t'(i);
    assign begins = asks && ring_q == ring_t'(i);
    assign comes  = retires && oldest.ring == ring_t'(i);
    always_ff @(posedge clk_i) begin
      if (begins != comes) under_way_q <= begins ? under_way_q + 1'b1 : under_way_q - 1'b1;
      if (comes && failure != '0 && !bad_q) begin
        bad_q  <= 1'b1;
        code_q <= failure;
      end
      if (rst_i || clears) bad_q <= 1'b0;
      if (rst_i || life_i.forget) under_way_q <= '0;
    end
    assign bad_o[i]  = bad_q;
    assign code_o[i] = code_q;
    assign busy_o[i] = under_way_q != '0 || (step_q != Pick && ring_q == ring_t'(i));
  end

  `ASSERT(room_is_kept, !asks || held + count_t'(count_q) <= count_t'(1 << AheadBits),
          "more descriptors were asked for than fit")
  `ASSERT(within_page, !m_read_valid || 13'(address_q[11:0]) + 13'(bytes_q) <= 13'd4096,
          "a read of descriptors crosses a page")
  `ASSERT(cleared_at_rest, !life_i.clear || !busy_o[life_i.clear_ring], "a ring is cleared that is at work")
  `ASSERT(nothing_counted, !life_i.clear || step_q == Pick || step_q == Ask,
          "a ring is cleared while another is counted")
  `ASSERT_NEXT(read_kept, m_read_valid && !m_read_ready, m_read_valid && m_read_payload == $past(m_read_payload),
               "a read was withdrawn or changed before it was taken")

endmodule
`default_nettype wire
