// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Stores the records of frames to send in one memory, and chooses the next.
///
/// Behaviour: a record joins the end of `now` or `later`. A deferred record waits under its place until memory has the
/// place's value (kv_tx_after_store), and then joins the end of `now`. A `now` record is chosen once for each of its
/// nodes, the lowest first. A `later` record is chosen once, when its value has begun to arrive. If both lists have a
/// choice, they alternate. All records are read from one block RAM port by address, so their bits need no multiplexer.
/// The lists hold addresses.
/// Latency: 2 cycles from a record or job_done_i to next_valid; 1 cycle from next_take to the next record.
/// Reset: forgets all records.
/// Requirements: a record comes only if its list has room. A `later` record has at most one node, a `deferred` one
/// none. A place gets no other record until free_o frees it.
module kv_tx_records
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_tx_pkg::*;
#(
    /// The most waiting records of each kind: powers of two, at most Places.
    parameter int unsigned NowDepth   = 32,
    parameter int unsigned LaterDepth = 64
) (
    input wire clk_i,
    input wire rst_i,

    input  wire sending_t sending_i,
    /// There is room for fewer than eight records.
    output almost_full_t  almost_full_o,

    /// The value of a `later` record has begun to arrive.
    input  wire            value_begun_i,
    input  wire job_done_t job_done_i,
    input  wire            dead_i,
    output free_place_t    free_o,

    // The next frame.
    output logic     next_valid,
    input  wire      next_take,   // also while there is none
    output tx_next_t next,
    /// `now` or `later` is not empty.
    output logic     waiting_o
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

  logic now_there, now_take, later_there, later_take, later_empty, later_to_node;
  logic [2:0] later_node;
  place_t later_at_q, now_put_q, later_put_q;
  logic now_put, later_put;
  logic now_ready, later_ready;
  logic [7:0] nodes;
  assign nodes = sending_i.send.nodes;

  function automatic logic several_of(logic [3:0] of);
    return (of[0] && of[1]) || (of[2] && of[3]) || (of[1:0] != '0 && of[3:2] != '0);
  endfunction
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [2:0] lowest_of(logic [7:0] of);
    logic low;
    low = of[3:0] != '0;
    lowest_of[2] = !low;
    lowest_of[1] = low ? of[1:0] == '0 : of[5:4] == '0;
    lowest_of[0] = low ? !of[0] && (of[1] || !of[2]) : !of[4] && (of[5] || !of[6]);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // The part of a record that is in the list `now`.
  typedef struct packed {
    logic [7:0] nodes;
    logic deferred;
    place_t at;  // or the place that a deferred one waited for
  } now_t;
  now_t now_record, answer_record, put, now_first;
  logic answer_valid, answer_open, answer_ready, answered_q, put_valid, unused_ready, unused_last, unused_index;
  place_t answer_place, answered_place_q;
  free_place_t answered;
  assign answered = '{valid: answered_q, place: answered_place_q};
  kv_tx_after_store i_deferred (
      .*,
      .sent_i(answered)
  );

  // The list always accepts: an answer waits while the list is almost full, and the engine sends a record only if the
  // list has room.
  assign answer_open   = answer_valid && !almost_full_o.now;
  assign now_record    = '{nodes: nodes, deferred: 1'b0, at: now_put_q};
  assign answer_record = '{nodes: '0, deferred: 1'b1, at: answer_place};

  stream_arbiter #(
      .Inputs(2),
      .Width ($bits(now_t)),
      .Fixed (1'b1)
  ) i_next (
      .*,
      .s_valid({answer_open, sending_i.now}),
      .s_ready({answer_ready, unused_ready}),
      .s_payload({answer_record, now_record}),
      .s_last('1),
      .m_valid(put_valid),
      .m_ready(1'b1),
      .m_payload(put),
      .m_last(unused_last),
      .m_index(unused_index)
  );

  stream_fifo_level #(
      .Width($bits(now_t)),
      .Depth(NowDepth),
      .AlmostFull(NowDepth - 8)
  ) i_now (
      .*,
      .s_valid(put_valid),
      .s_ready(now_ready),
      .s_payload(put),
      .m_valid(now_there),
      .m_ready(now_take),
      .m_payload(now_first),
      .almost_full_o(almost_full_o.now)
  );

  stream_fifo_level #(
      .Width(1 + 1 + 3),
      .Depth(LaterDepth),
      .Block(1'b0),
      .AlmostFull(LaterDepth - 8)
  ) i_later (
      .*,
      .s_valid(sending_i.later),
      .s_ready(later_ready),
      .s_payload({sending_i.send.length == '0, nodes != '0, lowest_of(nodes)}),
      .m_valid(later_there),
      .m_ready(later_take),
      .m_payload({later_empty, later_to_node, later_node}),
      .almost_full_o(almost_full_o.later)
  );

  assign now_put   = sending_i.now && now_ready;
  assign later_put = sending_i.later && later_ready;
  assign waiting_o = now_there || later_there;

  // ---- the choice of the next record

  // The number of values that have begun to arrive and whose record is still in the list.
  logic [$clog2(LaterDepth+1)-1:0] begun_q;
  logic later_begun, choose_later;
  logic later_q, to_node_q;
  logic [2:0] node_q;
  logic turn_q;  // the list that was not chosen last
  logic [7:0] sent_q;  // nodes of now's first that have been served
  logic [2:0] now_lowest;
  // `keep` stops Yosys from building a carry chain; next_take arrives late in the cycle.
  `YOSYS_KEEP
  logic [7:0] now_left;
  `YOSYS_KEEP
  logic [1:0] now_some, now_several;  // of each half
  `YOSYS_KEEP
  logic now_done, chosen;

  assign later_begun  = later_there && (later_empty || begun_q != '0);
  assign choose_later = later_begun && (!now_there || turn_q);
  assign chosen       = later_begun || now_there;
  assign now_left     = now_first.nodes & ~sent_q;
  assign now_lowest   = lowest_of(now_left);
  assign now_some     = {now_left[7:4] != '0, now_left[3:0] != '0};
  assign now_several  = {several_of(now_left[7:4]), several_of(now_left[3:0])};
  assign later_take   = next_take && choose_later;
  assign now_done     = now_there && !choose_later && now_several == '0 && now_some != '1;
  assign now_take     = next_take && now_done;

  always_ff @(posedge clk_i) begin
    if (now_put) now_put_q <= now_put_q + 1'b1;
    if (later_put) later_put_q <= later_put_q + 1'b1;
    if (later_take) later_at_q <= later_at_q + 1'b1;
    if (next_take && chosen) begin
      turn_q <= !choose_later;
      if (!choose_later) sent_q[now_lowest] <= 1'b1;
    end
    if (value_begun_i != (later_take && !later_empty)) begin
      begun_q <= value_begun_i ? begun_q + 1'b1 : begun_q - 1'b1;
    end
    if (next_take) begin
      next_valid <= chosen;
      later_q    <= choose_later;
      to_node_q  <= choose_later ? later_to_node : now_first.nodes != '0;
      node_q     <= choose_later ? later_node : now_lowest;
    end
    answered_q       <= now_take && now_first.deferred;
    answered_place_q <= now_first.at;
    if (now_take || rst_i) sent_q <= '0;
    if (rst_i) begin
      next_valid  <= 1'b0;
      turn_q      <= 1'b0;
      begun_q     <= '0;
      now_put_q   <= '0;
      later_put_q <= '0;
      later_at_q  <= '0;
      answered_q  <= 1'b0;
    end
  end

  // ---- the records

  send_t send;
  tx_record_t record;
  assign send = sending_i.send;
  assign record = '{
          to: send.to,
          kv: send.kv,
          place: send.place,
          length: send.length,
          summed: send.summed,
          sum: sum_of(send)
      };
  list_e write_list, read_list;
  assign write_list = sending_i.deferred ? Deferred : sending_i.later ? Later : Now;
  assign read_list  = choose_later ? Later : now_first.deferred ? Deferred : Now;
  simple_dual_port_ram #(
      .Width($bits(tx_record_t)),
      .Depth(4 * Places)
  ) i_records (
      .*,
      .write_i(now_put || later_put || sending_i.deferred),
      .write_address_i({write_list, sending_i.deferred ? send.place : sending_i.later ? later_put_q : now_put_q}),
      .write_data_i(record),
      .read_i(next_take),
      .read_address_i({read_list, choose_later ? later_at_q : now_first.at}),
      .read_data_o(next.record)
  );

  assign {next.later, next.to_node, next.node} = {later_q, to_node_q, node_q};

  `ASSERT(one_record, $countones({sending_i.now, sending_i.later, sending_i.deferred}) <= 1, "two records in one cycle")
  `ASSERT(now_has_room, !sending_i.now || now_ready, "no room for a frame")
  `ASSERT(later_has_room, !sending_i.later || later_ready, "no room for a frame with a value from memory")
  `ASSERT(later_nodes, !sending_i.later || $countones(nodes) <= 1, "only one frame can have a value from memory")
  `ASSERT(deferred_nodes, !sending_i.deferred || nodes == '0,
          "an answer that waits for memory goes to one that is no member")
  `ASSERT(begun_in_range, begun_q <= ($clog2(LaterDepth + 1))'(LaterDepth), "more values begun than records can be")

endmodule
`default_nettype wire
