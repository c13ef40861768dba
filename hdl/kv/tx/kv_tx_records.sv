// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Records of frames to send: all in one memory, and which of them is next.
///
/// Behaviour: a record goes to the end of `now` or of `later`, or waits beside its place until memory has that place's value (kv_tx_after_store)
/// and then goes to the end of `now`. One of `now` is chosen once for each of its nodes, lowest first, one of `later` once, when its value
/// has begun to arrive; by turns if both could be. Records are read by address from one port of block RAM, whatever they wait for, so
/// that nothing chooses among their bits; the lists are of addresses.
/// Latency: record or done_valid_i to valid_o 2 cycles; take_i to the next one 1 cycle.
/// Reset: forgets all records.
/// Requirements: at most one of now_valid, later_valid and deferred_valid. A place has no other record until done_free_o gave it back.
module kv_tx_records
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// Bits of a record.
    parameter int unsigned Width      = 310,
    /// Records that wait, of each kind: powers of two, at most Places.
    parameter int unsigned NowDepth   = 32,
    parameter int unsigned LaterDepth = 64
) (
    input wire clk_i,
    input wire rst_i,

    // A record: valid when its list has room.
    input  wire                     now_valid,
    output logic                    now_ready,
    input  wire                     later_valid,
    output logic                    later_ready,
    input  wire                     deferred_valid,
    input  wire place_t             place_i,             // that a deferred one waits for
    input  wire         [      7:0] nodes_i,             // of a deferred one none, of a later one at most one
    input  wire                     empty_i,             // a later one whose value has no bytes
    input  wire         [Width-1:0] record_i,
    /// Few places are left.
    output logic                    now_almost_full_o,
    output logic                    later_almost_full_o,

    /// A later one's value has begun to arrive.
    input  wire           value_begun_i,
    input  wire           done_valid_i,
    input  wire job_tag_t done_tag_i,
    input  wire           dead_i,
    output logic          done_free_o,
    output place_t        done_freed_o,

    // The frame that is next.
    output logic             valid_o,
    input  wire              take_i,     // also while there is none
    output logic             later_o,
    output logic             to_node_o,  // to node_o, not to whom the record says
    output logic [      2:0] node_o,
    output logic [Width-1:0] record_o,
    /// There are records in `now` or `later`.
    output logic             waiting_o
);

  if (NowDepth > Places || LaterDepth > Places) begin : gen_check_depth
    $fatal(1, "NowDepth and LaterDepth must be at most Places in %m");
  end

  typedef enum logic [1:0] {
    Now = 2'd0,
    Later = 2'd1,
    Deferred = 2'd2
  } list_e;

  // ---- the lists

  logic now_there, now_take, now_deferred, later_there, later_take, later_empty, later_to_node;
  logic [7:0] now_nodes;
  logic [2:0] later_node;
  place_t now_at, later_at_q, now_put_q, later_put_q;
  logic now_put, later_put;
  // verilator lint_off UNUSEDSIGNAL
  logic [  $clog2(NowDepth+1)-1:0] now_count;
  logic [$clog2(LaterDepth+1)-1:0] later_count;
  // verilator lint_on UNUSEDSIGNAL

  function automatic logic several_of(logic [3:0] nodes);
    return (nodes[0] && nodes[1]) || (nodes[2] && nodes[3]) || (nodes[1:0] != '0 && nodes[3:2] != '0);
  endfunction
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [2:0] lowest_of(logic [7:0] nodes);
    logic low;
    low = nodes[3:0] != '0;
    lowest_of[2] = !low;
    lowest_of[1] = low ? nodes[1:0] == '0 : nodes[5:4] == '0;
    lowest_of[0] = low ? !nodes[0] && (nodes[1] || !nodes[2]) : !nodes[4] && (nodes[5] || !nodes[6]);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // What `now` holds of a record.
  typedef struct packed {
    logic [7:0] nodes;
    logic deferred;
    place_t at;  // or the place that a deferred one waited for
  } now_t;
  now_t now_record, answer_record, next_record, now_first;
  logic answer_valid, answer_open, answer_ready, answered_q, next_valid, unused_ready;
  place_t answer_place, answered_place_q;
  kv_tx_after_store i_deferred (
      .clk_i,
      .rst_i,
      .done_valid_i,
      .done_tag_i,
      .dead_i,
      .answer_valid,
      .answer_ready(answer_ready),
      .answer_place,
      .sent_i(answered_q),
      .sent_place_i(answered_place_q),
      .free_o(done_free_o),
      .freed_o(done_freed_o)
  );

  // The list takes the chosen record at once: an answer waits while the list is almost full, and a record of the engine comes only if
  // the list has room.
  assign answer_open   = answer_valid && !now_almost_full_o;
  assign now_record    = '{nodes: nodes_i, deferred: 1'b0, at: now_put_q};
  assign answer_record = '{nodes: '0, deferred: 1'b1, at: answer_place};

  // verilator lint_off PINCONNECTEMPTY
  stream_arbiter #(
      .Inputs(2),
      .Width ($bits(now_t)),
      .Fixed (1'b1)
  ) i_next (
      .clk_i,
      .rst_i,
      .s_valid({answer_open, now_valid}),
      .s_ready({answer_ready, unused_ready}),
      .s_payload({answer_record, now_record}),
      .s_last('1),
      .m_valid(next_valid),
      .m_ready(1'b1),
      .m_payload(next_record),
      .m_last(),
      .m_index()
  );
  // verilator lint_on PINCONNECTEMPTY

  stream_fifo #(
      .Width($bits(now_t)),
      .Depth(NowDepth),
      .AlmostFull(NowDepth - 8)
  ) i_now (
      .clk_i,
      .rst_i,
      .s_valid(next_valid),
      .s_ready(now_ready),
      .s_payload(next_record),
      .m_valid(now_there),
      .m_ready(now_take),
      .m_payload(now_first),
      .count_o(now_count),
      .almost_full_o(now_almost_full_o)
  );
  assign now_nodes    = now_first.nodes;
  assign now_deferred = now_first.deferred;
  assign now_at       = now_first.at;

  stream_fifo #(
      .Width(1 + 1 + 3),
      .Depth(LaterDepth),
      .Block(1'b0),
      .AlmostFull(LaterDepth - 8)
  ) i_later (
      .clk_i,
      .rst_i,
      .s_valid(later_valid),
      .s_ready(later_ready),
      .s_payload({empty_i, nodes_i != '0, lowest_of(nodes_i)}),
      .m_valid(later_there),
      .m_ready(later_take),
      .m_payload({later_empty, later_to_node, later_node}),
      .count_o(later_count),
      .almost_full_o(later_almost_full_o)
  );

  assign now_put   = now_valid && now_ready;
  assign later_put = later_valid && later_ready;
  assign waiting_o = now_there || later_there;

  // ---- which is next

  // Values that have begun to arrive and whose record is still in the list.
  logic [$clog2(LaterDepth+1)-1:0] begun_q;
  logic later_begun, choose_later;
  logic turn_q;  // the list that was not chosen last
  logic [7:0] sent_q;  // nodes of now's first that have been served
  logic [2:0] now_lowest;
  // What is kept is so that Yosys does not make a chain of it; take_i is late.
  `YOSYS_KEEP
  logic [7:0] now_left;
  `YOSYS_KEEP
  logic [1:0] now_some, now_several;  // of each half
  `YOSYS_KEEP
  logic now_done, chosen;

  assign later_begun  = later_there && (later_empty || begun_q != '0);
  assign choose_later = later_begun && (!now_there || turn_q);
  assign chosen       = later_begun || now_there;
  assign now_left     = now_nodes & ~sent_q;
  assign now_lowest   = lowest_of(now_left);
  assign now_some     = {now_left[7:4] != '0, now_left[3:0] != '0};
  assign now_several  = {several_of(now_left[7:4]), several_of(now_left[3:0])};
  assign later_take   = take_i && choose_later;
  assign now_done     = now_there && !choose_later && now_several == '0 && now_some != '1;
  assign now_take     = take_i && now_done;

  always_ff @(posedge clk_i) begin
    if (now_put) now_put_q <= now_put_q + 1'b1;
    if (later_put) later_put_q <= later_put_q + 1'b1;
    if (later_take) later_at_q <= later_at_q + 1'b1;
    if (take_i && chosen) begin
      turn_q <= !choose_later;
      if (!choose_later) sent_q[now_lowest] <= 1'b1;
    end
    if (value_begun_i != (later_take && !later_empty)) begin
      begun_q <= value_begun_i ? begun_q + 1'b1 : begun_q - 1'b1;
    end
    if (take_i) begin
      valid_o   <= chosen;
      later_o   <= choose_later;
      to_node_o <= choose_later ? later_to_node : now_nodes != '0;
      node_o    <= choose_later ? later_node : now_lowest;
    end
    answered_q       <= now_take && now_deferred;
    answered_place_q <= now_at;
    if (now_take || rst_i) sent_q <= '0;
    if (rst_i) begin
      valid_o     <= 1'b0;
      turn_q      <= 1'b0;
      begun_q     <= '0;
      now_put_q   <= '0;
      later_put_q <= '0;
      later_at_q  <= '0;
      answered_q  <= 1'b0;
    end
  end

  // ---- the records

  list_e write_list, read_list;
  assign write_list = deferred_valid ? Deferred : later_valid ? Later : Now;
  assign read_list  = choose_later ? Later : now_deferred ? Deferred : Now;
  simple_dual_port_ram #(
      .Width(Width),
      .Depth(4 * Places)
  ) i_records (
      .clk_i,
      .write_i(now_put || later_put || deferred_valid),
      .write_address_i({write_list, deferred_valid ? place_i : later_valid ? later_put_q : now_put_q}),
      .write_data_i(record_i),
      .read_i(take_i),
      .read_address_i({read_list, choose_later ? later_at_q : now_at}),
      .read_data_o(record_o)
  );

  `ASSERT(one_record, $countones({now_valid, later_valid, deferred_valid}) <= 1, "two records in one cycle")
  `ASSERT(later_nodes, !later_valid || $countones(nodes_i) <= 1, "only one frame can have a value from memory")
  `ASSERT(deferred_nodes, !deferred_valid || nodes_i == '0,
          "an answer that waits for memory goes to one that is no member")
  `ASSERT(begun_in_range, begun_q <= ($clog2(LaterDepth + 1))'(LaterDepth), "more values begun than records can be")

endmodule
`default_nettype wire
