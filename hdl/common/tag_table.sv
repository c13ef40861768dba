// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A table of transactions in flight, by tag. A transaction is allocated at its start and completed in any order. It
/// retires in the order of allocation or of completion.
///
/// Behaviour:
/// - Allocation: s_* accepts a transaction's payload, which the table stores. `s_tag` is its tag, valid with s_ready.
/// - Completion: complete_i ends the transaction of complete_tag_i and stores a result. If that tag is not in flight,
///   the table does not change, and unexpected_o is high in that cycle.
/// - Retirement: m_* offers a completed transaction with tag, payload and result, and frees its tag. With InOrder the
///   oldest transaction goes first, so an incomplete one delays later ones. Otherwise the order of completion applies.
/// - Look-up: returns the payload of lookup_tag_i, and whether it is in flight, in the same cycle.
/// With InOrder the table is a ring that gives out tags in ascending order, so users may use a tag as an index into
/// their own memories.
/// Cuts: all paths between allocation, completion and retirement. `unexpected_o` and lookup_* follow their inputs.
/// Latency: a tag can be completed from the cycle after its allocation. It can retire from the cycle after its
/// completion, and is free from the cycle after that. Each of these can happen once per cycle.
/// Reset: the table is empty.
/// Requirements: s_valid and complete_i are low during reset.
module tag_table #(
    /// Tags; a power of two, at least 2.
    parameter int unsigned Tags = 64,
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8,
    /// Bits of the result; at least 1.
    parameter int unsigned ResultWidth = 1,
    /// Retire in the order of allocation, instead of completion.
    parameter bit InOrder = 1'b1,
    /// lookup_payload_o is used. Costs a second read port of the payloads.
    parameter bit Lookup = 1'b1,
    localparam int unsigned TagWidth = $clog2(Tags)
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_RECEIVER(s, logic [Width-1:0])
    output logic [TagWidth-1:0] s_tag,

    input  wire                    complete_i,
    input  wire  [   TagWidth-1:0] complete_tag_i,
    input  wire  [ResultWidth-1:0] complete_result_i,
    output logic                   unexpected_o,

    input  wire  [TagWidth-1:0] lookup_tag_i,
    output logic                lookup_found_o,
    output logic [   Width-1:0] lookup_payload_o,

    output logic                   m_valid,
    input  wire                    m_ready,
    output logic [   TagWidth-1:0] m_tag,
    output logic [      Width-1:0] m_payload,
    output logic [ResultWidth-1:0] m_result,

    /// Transactions that are allocated and not retired.
    output logic [TagWidth:0] count_o
);

  if (Tags < 2 || 2 ** $clog2(Tags) != Tags) begin : gen_check_tags
    $fatal(1, "Tags must be a power of two and at least 2 in %m");
  end
  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (ResultWidth < 1) begin : gen_check_result_width
    $fatal(1, "ResultWidth must be at least 1 in %m");
  end

  // Counts of allocations and retirements.
  logic [TagWidth:0] allocated_q, retired_q;
  logic allocate, complete, retire, complete_flies;

  assign count_o      = allocated_q - retired_q;
  assign s_ready      = !count_o[TagWidth];
  assign allocate     = s_valid && s_ready;
  assign complete     = complete_i && complete_flies;
  assign unexpected_o = complete_i && !complete_flies;
  assign retire       = m_valid && m_ready;

  always_ff @(posedge clk_i) begin
    if (allocate) allocated_q <= allocated_q + 1'b1;
    if (retire) retired_q <= retired_q + 1'b1;
    if (rst_i) begin
      allocated_q <= '0;
      retired_q   <= '0;
    end
  end

  if (InOrder) begin : gen_in_order
    assign s_tag = allocated_q[TagWidth-1:0];
    assign m_tag = retired_q[TagWidth-1:0];

    // An allocation toggles one bit of its tag, and a completion another. They differ while the transaction is in
    // flight, so no register per tag is needed. After a reset they may differ too, but such tags are not between
    // retired and allocated.
    logic [2:0] turn;
    logic [3:0] done;
    logic retire_turn, retire_done;
    lutram #(
        .Width(1),
        .Depth(Tags),
        .ReadPorts(3)
    ) i_turn (
        .*,
        .write_i(allocate),
        .write_address_i(s_tag),
        .write_data_i(!done[3]),
        .read_address_i({m_tag, lookup_tag_i, complete_tag_i}),
        .read_data_o(turn)
    );
    lutram #(
        .Width(1),
        .Depth(Tags),
        .ReadPorts(4)
    ) i_done (
        .*,
        .write_i(complete),
        .write_address_i(complete_tag_i),
        .write_data_i(turn[0]),
        .read_address_i({s_tag, m_tag, lookup_tag_i, complete_tag_i}),
        .read_data_o(done)
    );
    assign {retire_turn, retire_done} = {turn[2], done[2]};
    assign complete_flies = (TagWidth + 1)'(TagWidth'(complete_tag_i - m_tag)) < count_o && turn[0] != done[0];
    assign lookup_found_o = (TagWidth + 1)'(TagWidth'(lookup_tag_i - m_tag)) < count_o && turn[1] != done[1];
    assign m_valid = count_o != '0 && retire_turn == retire_done;
  end else begin : gen_any_order
    // Tags in the order of completion, in a ring of Tags places. Tags between retired and completed wait to retire.
    // Tags before retired are free, and are given out in the same order. An entry is not overwritten too early: the tag
    // that completes was allocated, so its place in the ring has been read.
    logic [Tags-1:0] in_flight_q;
    logic [TagWidth:0] completed_q;
    logic fresh_q;  // first lap: the ring has no tags yet, so the number of a place is its tag
    logic [TagWidth-1:0] free_tag;

    always_ff @(posedge clk_i) begin
      for (int i = 0; i < int'(Tags); i++) begin
        if (complete && 32'(complete_tag_i) == i) in_flight_q[i] <= 1'b0;
        if (allocate && 32'(s_tag) == i) in_flight_q[i] <= 1'b1;
      end
      if (complete) completed_q <= completed_q + 1'b1;
      if (allocate && allocated_q[TagWidth-1:0] == '1) fresh_q <= 1'b0;
      if (rst_i) begin
        in_flight_q <= '0;
        completed_q <= '0;
        fresh_q     <= 1'b1;
      end
    end

    lutram #(
        .Width(TagWidth),
        .Depth(Tags),
        .ReadPorts(2)
    ) i_order (
        .*,
        .write_i(complete),
        .write_address_i(completed_q[TagWidth-1:0]),
        .write_data_i(complete_tag_i),
        .read_address_i({allocated_q[TagWidth-1:0], retired_q[TagWidth-1:0]}),
        .read_data_o({free_tag, m_tag})
    );

    assign s_tag = fresh_q ? allocated_q[TagWidth-1:0] : free_tag;
    assign m_valid = completed_q != retired_q;
    assign complete_flies = in_flight_q[complete_tag_i];
    assign lookup_found_o = in_flight_q[lookup_tag_i];

    `ASSERT(tag_was_free, !allocate || !in_flight_q[s_tag], "a tag was handed out that is in flight")

    `ASSERT(completed_between, (TagWidth + 1)'(completed_q - retired_q) <= count_o, "more was completed than allocated")
  end

  localparam int unsigned Readers = Lookup ? 2 : 1;
  logic [Readers-1:0][TagWidth-1:0] payload_tag;
  logic [Readers-1:0][Width-1:0] payload;
  lutram #(
      .Width(Width),
      .Depth(Tags),
      .ReadPorts(Readers)
  ) i_payloads (
      .*,
      .write_i(allocate),
      .write_address_i(s_tag),
      .write_data_i(s_payload),
      .read_address_i(payload_tag),
      .read_data_o(payload)
  );
  assign m_payload      = payload[0];
  assign payload_tag[0] = m_tag;
  if (Lookup) begin : gen_lookup
    assign payload_tag[1]   = lookup_tag_i;
    assign lookup_payload_o = payload[1];
  end else begin : gen_no_lookup
    assign lookup_payload_o = '0;
  end

  lutram #(
      .Width(ResultWidth),
      .Depth(Tags)
  ) i_results (
      .*,
      .write_i(complete),
      .write_address_i(complete_tag_i),
      .write_data_i(complete_result_i),
      .read_address_i(m_tag),
      .read_data_o(m_result)
  );

  `ASSERT(count_in_range, count_o <= (TagWidth + 1)'(Tags), "more is in flight than there are tags")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a transaction was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, {m_tag, m_payload, m_result} == $past({m_tag, m_payload, m_result}),
               "a transaction changed before it was taken")

endmodule
`default_nettype wire
