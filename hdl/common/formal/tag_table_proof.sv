// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of tag_table: a tag has at most one owner. It returns once, after its completion, with the payload and the
/// result of its transaction; with InOrder in the order of allocation. The table accepts exactly Tags transactions.
///
/// The proof follows one arbitrary transaction; watch_i selects it.
module tag_table_proof #(
    parameter int unsigned Tags = 4,
    parameter bit InOrder = 1'b1,
    localparam int unsigned Width = 2,
    localparam int unsigned ResultWidth = 2,
    localparam int unsigned TagWidth = $clog2(Tags)
) (
    input wire                   clk_i,
    input wire                   rst_i,
    input wire                   s_valid,
    input wire [      Width-1:0] s_payload,
    input wire                   complete_i,
    input wire [   TagWidth-1:0] complete_tag_i,
    input wire [ResultWidth-1:0] complete_result_i,
    input wire [   TagWidth-1:0] lookup_tag_i,
    input wire                   m_ready,
    input wire                   watch_i
);

  logic s_ready, unexpected_o, lookup_found_o, m_valid;
  logic [TagWidth-1:0] s_tag, m_tag;
  logic [Width-1:0] lookup_payload_o, m_payload;
  logic [ResultWidth-1:0] m_result;
  logic [TagWidth:0] count_o;
  tag_table #(
      .Tags(Tags),
      .Width(Width),
      .ResultWidth(ResultWidth),
      .InOrder(InOrder)
  ) dut (
      .*
  );

  // The owners of the tags, as an observer counts them.
  logic [Tags-1:0] owned_q, ended_q;
  logic allocate, retire, complete;
  assign allocate = s_valid && s_ready;
  assign retire   = m_valid && m_ready;
  assign complete = complete_i && owned_q[complete_tag_i] && !ended_q[complete_tag_i];

  // The watched transaction, and the earlier transactions that have not retired.
  logic watching_q, over_q;
  logic [TagWidth-1:0] tag_q;
  logic [Width-1:0] payload_q;
  logic [ResultWidth-1:0] result_q;
  logic [TagWidth:0] ahead_q;
  logic watched_retires;
  assign watched_retires = watching_q && retire && m_tag == tag_q;
  always_ff @(posedge clk_i) begin
    if (retire) owned_q[m_tag] <= 1'b0;
    if (complete) ended_q[complete_tag_i] <= 1'b1;
    if (allocate) begin
      owned_q[s_tag] <= 1'b1;
      ended_q[s_tag] <= 1'b0;
    end
    if (watched_retires) watching_q <= 1'b0;
    if (watching_q) begin
      if (retire && ahead_q != '0) ahead_q <= ahead_q - 1'b1;
      if (complete && complete_tag_i == tag_q) begin
        over_q   <= 1'b1;
        result_q <= complete_result_i;
      end
    end else if (allocate && watch_i) begin
      watching_q <= 1'b1;
      over_q     <= 1'b0;
      tag_q      <= s_tag;
      payload_q  <= s_payload;
      ahead_q    <= count_o - (TagWidth + 1)'(retire);
    end
    if (rst_i) begin
      owned_q    <= '0;
      ended_q    <= '0;
      watching_q <= 1'b0;
    end
  end

  logic [TagWidth:0] owned;
  always_comb begin
    owned = '0;
    for (int i = 0; i < int'(Tags); i++) owned += (TagWidth + 1)'(owned_q[i]);
  end

  `RESET_FIRST

  `ASSERT(one_owner, !allocate || !owned_q[s_tag], "a tag was handed out that has an owner")
  `ASSERT(count_is_right, count_o == owned, "a transaction was lost or made up")
  `ASSERT(room_is_given, s_ready == (owned != (TagWidth + 1)'(Tags)), "refuses a transaction though there is a tag")
  logic [Tags-1:0] flying;
  `ASSERT(flight_is_right, flying == (owned_q & ~ended_q), "what is in flight is not what a listener knows")
  `ASSERT(unexpected_is_told, unexpected_o == (complete_i && !complete), "an unexpected completion was not told")
  `ASSERT(retired_is_over, !m_valid || (owned_q[m_tag] && ended_q[m_tag]), "retires what is not complete")
  `ASSERT(retires_what_is_over, InOrder || m_valid == ((owned_q & ended_q) != '0), "keeps back what is complete")
  `ASSERT(watched_stays, !watching_q || (owned_q[tag_q] && ended_q[tag_q] == over_q),
          "the watched transaction was lost")
  `ASSERT(watched_payload, !(watching_q && m_valid && m_tag == tag_q) || m_payload == payload_q,
          "a payload was changed")
  `ASSERT(watched_result, !(watching_q && m_valid && m_tag == tag_q) || m_result == result_q, "a result was changed")
  `ASSERT(watched_found,
          !(watching_q && lookup_tag_i == tag_q) || (lookup_payload_o == payload_q && lookup_found_o == !over_q),
          "the look-up found something else")
  `COVER(full_of_ended, !s_ready && m_valid && watching_q && over_q)
  `COVER(overtaken, watched_retires && $past(complete, 2) && $past(complete_tag_i, 2) != tag_q)

  // For induction: these assertions exclude unreachable starting states.
  `ASSERT(payload_in_place, !watching_q || dut.i_payloads.memory[tag_q] == payload_q, "a payload was overwritten")
  `ASSERT(result_in_place, !(watching_q && over_q) || dut.i_results.memory[tag_q] == result_q,
          "a result was overwritten")
  if (InOrder) begin : gen_in_order
    for (genvar i = 0; i < Tags; i++) begin : gen_flying
      assign flying[i] = (TagWidth + 1)'(TagWidth'(i - dut.retired_q)) < count_o
                         && dut.gen_in_order.i_turn.memory[i] != dut.gen_in_order.i_done.memory[i];
    end
    `ASSERT(in_turn, !watching_q || tag_q == TagWidth'(dut.retired_q + ahead_q),
            "the watched transaction lost its turn")
    `ASSERT(ahead_within, !watching_q || ahead_q < count_o, "the watched transaction is beyond the end")
    for (genvar i = 0; i < Tags; i++) begin : gen_tag
      `ASSERT(owned_in_turn, owned_q[i] == ((TagWidth + 1)'(TagWidth'(i - dut.retired_q)) < count_o),
              "the tags that have owners are not those in turn")
    end
    `ASSERT(oldest_first, !watched_retires || ahead_q == '0, "overtook an older transaction")
  end else begin : gen_any_order
    assign flying = dut.gen_any_order.in_flight_q;
    // Each tag is in one place: in flight, between retired and completed, or between allocated and retired.
    logic [TagWidth:0] done;
    assign done = dut.gen_any_order.completed_q - dut.retired_q;
    for (genvar i = 0; i < Tags; i++) begin : gen_tag
      logic [TagWidth:0] places;
      logic [TagWidth-1:0] place, value;
      logic [TagWidth:0] step;
      logic is_done;
      always_comb begin
        is_done = 1'b0;
        places  = (TagWidth + 1)'(flying[i]);
        for (int j = 0; j < int'(Tags); j++) begin
          place = TagWidth'(dut.retired_q + (TagWidth + 1)'(j));
          if ((TagWidth + 1)'(j) < done && dut.gen_any_order.i_order.memory[place] == TagWidth'(i)) begin
            places++;
            is_done = 1'b1;
          end
        end
        for (int j = 0; j < int'(Tags); j++) begin
          step  = dut.allocated_q + (TagWidth + 1)'(j);
          place = TagWidth'(step);
          value = dut.gen_any_order.fresh_q && !step[TagWidth] ? place : dut.gen_any_order.i_order.memory[place];
          if ((TagWidth + 1)'(j) < (TagWidth + 1)'(Tags) - count_o && value == TagWidth'(i)) places++;
        end
      end
      `ASSERT(done_is_over, is_done == (owned_q[i] && ended_q[i]),
              "the tags to be retired are not those that are complete")
      `ASSERT(in_one_place, places == 1, "a tag is nowhere, or twice")
    end
    `ASSERT(fresh_is_first_lap,
            !dut.gen_any_order.fresh_q || (!dut.allocated_q[TagWidth] && dut.retired_q <= dut.allocated_q),
            "the first lap never ends")
    `ASSERT(done_within, done <= count_o, "more was completed than allocated")
    `COVER(second_lap, !dut.gen_any_order.fresh_q && allocate && s_tag != dut.allocated_q[TagWidth-1:0])
  end

endmodule
`default_nettype wire
