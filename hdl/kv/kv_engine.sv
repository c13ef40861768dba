// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What a node does with a request: docs/kv-protocol.md, sections 4 to 6; docs/kv-core.md has the cycles.
///
/// Behaviour: requests enter in order and take four stages. E0 asks all memories, E1 and E2 hear from them, E3 decides
/// (kv_decide); its decisions are registered and take effect in the cycle after. A request whose line is not in the cache
/// starts over until it is, and those behind it with it. One that changes state keeps the next out until what it changed
/// can be read; reads follow each other every cycle. What needs more than that (epochs, leftovers, a node's return) stays at
/// the head of the queue (head_o) and the sequencer is told (slow_valid_o); it has operations of its own done here, which take the same
/// way and go before requests, and ends what it was told of with one of those that consume it. stop_i keeps requests out; it must
/// answer slow_valid_o in the same cycle. One that waits for its line still enters. With dead_i requests come to nothing.
/// Latency: request in to decision at the outputs 6 cycles; operation in to op_done_o 3, if its line is there.
/// Reset: forgets all requests and all writes in flight; the memories of lanes, notes and filters are the sequencer's to
/// clear.
/// Requirements: the configuration changes, and clear_i is high, only while quiet_o and stop_i, with no operation. Outputs are taken at
/// once: now_almost_full_i, later_room_i and job_room_i keep room for what is under way.
module kv_engine
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter int unsigned LaneBits   = 12,
    parameter int unsigned QueueDepth = 32
) (
    input wire clk_i,
    input wire rst_i,

    // ---- configuration
    input wire [2:0] node_i,
    input wire [7:0] members_i,
    input wire serving_i,  // in the epoch's serving set, with a lease, without a fault
    input wire opened_i,
    input wire accept_i,
    input wire [15:0] epoch_i,  // 0: none
    input wire [5:0] bucket_bits_i,  // at most as many as a bucket_t has
    input wire dead_i,
    input wire leftovers_i,  // there are some

    /// Who leads a slot, and who a node is: in the same cycle.
    output logic [7:0] slot_o,
    input wire [2:0] leader_i,
    output logic [2:0] peer_o,
    // verilator lint_off UNUSEDSIGNAL  // a node's MAC address does not matter
    input wire endpoint_t peer_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- requests
    input  wire                  request_valid_i,
    input  wire request_t        request_i,
    output logic                 room_o,
    /// The sequencer's, which stays until it is done.
    input  wire                  op_valid_i,
    input  wire op_t             op_i,
    output logic                 op_done_o,
    output seen_t                seen_o,
    /// For the sequencer: the head of the queue is not the engine's business.
    output logic                 slow_valid_o,
    output request_t             head_o,
    /// A note made way for another one: the lane's record is settled.
    output logic                 settle_valid_o,
    output logic          [15:0] settle_lane_o,
    output logic          [31:0] settle_request_o,
    /// A read was refused for the sake of a note in a bucket with these low bits.
    output logic                 pending_o,
    output logic          [11:0] pending_bucket_o,
    /// What OpTake took is committed, or had nobody to wait for.
    output logic                 leftover_done_o,
    input  wire                  stop_i,
    /// Nothing is on its way, but the queue may hold requests.
    output logic                 quiet_o,
    output logic                 idle_o,
    /// Clears what is at this address in the memories of lanes, notes and filters.
    input  wire                  clear_i,
    input  wire           [11:0] clear_at_i,

    // ---- lines: kv_lines
    output logic            line_read_o,
    output bucket_t         line_bucket_o,
    input  wire             line_hit_i,           // two cycles later
    input  wire     [511:0] line_i,
    output logic            want_o,
    output bucket_t         want_bucket_o,
    output logic            line_write_o,
    output bucket_t         line_write_bucket_o,
    output logic    [511:0] line_write_line_o,    // and of the job
    /// A write to the group of line_bucket_o of two cycles ago is under way.
    input  wire             group_busy_i,

    // ---- memory, and what it has done
    input  wire    job_room_i,  // for four more
    output logic   job_valid_o,
    output memory_job_t job_o,
    input  wire    done_valid_i,
    input  wire job_tag_t done_tag_i,

    // ---- places of the pool
    output logic   place_free_o,   // of a request that came to nothing
    output place_t place_freed_o,
    output logic   done_free_o,    // of a value that memory has
    output place_t done_freed_o,

    // ---- what is sent
    input wire now_almost_full_i,  // fewer than eight places
    output logic now_valid_o,
    output send_t now_o,
    input wire later_room_i,  // for four more
    output logic later_valid_o,
    output send_t later_o,

    // ---- what the sequencer and the counters want to know
    output logic [Places-1:0] window_o,            // places in flight
    output logic              received_o,
    output logic [       4:0] received_kind_o,
    output logic              replied_o,
    output logic [       4:0] replied_status_o,
    output logic              dropped_epoch_o,
    output logic              dropped_duplicate_o
);

  // ---- the queue, and what enters

  localparam int unsigned RequestWidth = $bits(request_t);
  localparam int unsigned Spacing = 6;  // cycles from a request that changes state to the next

  logic head_valid, take, done2, rewind, queue_empty;
  request_t head;

  kv_queue #(
      .Width(RequestWidth),
      .Depth(QueueDepth)
  ) i_queue (
      .clk_i,
      .rst_i,
      .room_o,
      .valid_i  (request_valid_i),
      .request_i(request_i),
      .valid_o  (head_valid),
      .request_o(head),
      .take_i   (take),
      .done_i   (done2),
      .rewind_i (rewind),
      .empty_o  (queue_empty)
  );


  logic [Places-1:0] window_q;  // in use
  bucket_t mask_q;
  logic [Spacing-2:0] hold_q;  // nobody enters while its lowest bit is set
  logic open, valid0, op0, op_busy_q, want_op_q;
  kv_t kv0;
  bucket_t bucket0;
  place_t place0;

  // While a line is wanted, nobody enters but who wants it. What enters in a cycle of rewind comes to nothing.
  assign open = !hold_q[0] && !now_almost_full_i && later_room_i && job_room_i;
  assign op0 = open && op_valid_i && !op_busy_q && (!want_o || want_op_q);
  assign take = op0 ? consumes(op_i.op) : open && head_valid && (want_o ? !want_op_q : !stop_i);
  assign valid0 = take || op0;
  assign head_o = head;

  assign kv0 = op0 && !consumes(op_i.op) ? op_i.kv : head.kv;
  assign place0 = kv0.detail[5:0];
  assign bucket0 = op0 ? op_i.bucket
                 : bucket_t'(head.kv.kind == KindFetch ? 32'(head.kv.key >> 2) : head.hash) & mask_q;

  always_ff @(posedge clk_i) mask_q <= ~(bucket_t'('1) << bucket_bits_i);

  assign slot_o        = bucket0[7:0];
  assign peer_o        = kv0.node;
  assign line_read_o   = valid0;
  assign line_bucket_o = bucket0;

  function automatic logic op_changes(op_e op);
    return op != OpLook && op != OpSend && op != OpAsk;
  endfunction

  always_ff @(posedge clk_i) begin
    hold_q <= hold_q >> 1;
    if (valid0 && (op0 ? op_changes(op_i.op) : changes(head.kv.kind))) hold_q <= '1;
    if (rewind || rst_i) hold_q <= '0;
    if (op0) op_busy_q <= 1'b1;
    if (rewind || op_done_o || rst_i) op_busy_q <= 1'b0;
  end

  // ---- the memories: asked in E0, written one cycle after E3

  lane_t lane1, lane_write_q;
  logic lane_put_q;
  logic [LaneBits-1:0] lane_at_q;
  simple_dual_port_ram #(
      .Width($bits(lane_t)),
      .Depth(2 ** LaneBits)
  ) i_lanes (
      .clk_i,
      .write_i(lane_put_q),
      .write_address_i(lane_at_q),
      .write_data_i(lane_write_q),
      .read_i(valid0),
      .read_address_i(kv0.client[LaneBits-1:0]),
      .read_data_o(lane1)
  );

  note_t note1, note_write_q;
  logic note_put_q;
  logic [8:0] note_at_q;
  simple_dual_port_ram #(
      .Width($bits(note_t)),
      .Depth(512)
  ) i_notes (
      .clk_i,
      .write_i(note_put_q),
      .write_address_i(note_at_q),
      .write_data_i(note_write_q),
      .read_i(valid0),
      .read_address_i({kv0.node, place0}),
      .read_data_o(note1)
  );

  filter_t filter_read, filter_write_q;
  logic filter_put_q, filter_again1;
  logic [11:0] filter_at_q, filter_address;
  // In E1 the cell of the note that a replicate takes the place of.
  assign filter_address = filter_again1 ? note1.bucket[11:0] : bucket0[11:0];
  simple_dual_port_ram #(
      .Width($bits(filter_t)),
      .Depth(4096)
  ) i_filter (
      .clk_i,
      .write_i(filter_put_q),
      .write_address_i(filter_at_q),
      .write_data_i(filter_write_q),
      .read_i(valid0 || filter_again1),
      .read_address_i(filter_address),
      .read_data_o(filter_read)
  );

  window_t window0, window_write_q;
  logic   window_put_q;
  place_t window_at_q;
  lutram #(
      .Width($bits(window_t)),
      .Depth(Places)
  ) i_window (
      .clk_i,
      .write_i(window_put_q),
      .write_address_i(window_at_q),
      .write_data_i(window_write_q),
      .read_address_i(place0),
      .read_data_o(window0)
  );
  logic [7:0] answered0, answered_write_q;
  logic answered_put_q;
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_answered (
      .clk_i,
      .write_i(answered_put_q),
      .write_address_i(window_at_q),
      .write_data_i(answered_write_q),
      .read_address_i(place0),
      .read_data_o(answered0)
  );
  assign window_o = window_q;

  // ---- E1: who sent it, and whether its form is right

  logic valid1_q, flag1_q, from_queue1_q;
  op_e op1_q;
  logic [7:0] nodes1_q;
  // verilator lint_off UNUSEDSIGNAL
  request_t request1_q;  // but for its header
  // verilator lint_on UNUSEDSIGNAL
  kv_t kv1_q;
  bucket_t bucket1_q;
  logic [2:0] leader1_q;
  logic [31:0] peer_ip1_q;
  logic [15:0] peer_port1_q;
  window_t window1_q;
  logic [7:0] answered1_q;

  always_ff @(posedge clk_i) begin
    valid1_q      <= valid0 && !rewind;
    op1_q         <= op0 ? op_i.op : OpRequest;
    from_queue1_q <= take;
    flag1_q       <= op0 && op_i.flag;
    nodes1_q      <= op_i.nodes;
    request1_q    <= head;
    kv1_q         <= kv0;
    bucket1_q     <= bucket0;
    leader1_q     <= leader_i;
    peer_ip1_q    <= peer_i.ip;
    peer_port1_q  <= peer_i.port;
    window1_q     <= window0;
    answered1_q   <= answered0;
    if (rst_i) valid1_q <= 1'b0;
  end

  // Compared here, so that the next stage need not.
  logic in_window1, matches_window1, matches_note1, last_answer1, unanswered1;
  logic [7:0] others;
  logic member_q, alone_q;
  always_ff @(posedge clk_i) begin
    others   <= members_i & ~(8'd1 << node_i);
    alone_q  <= (members_i & ~(8'd1 << node_i)) == '0;
    member_q <= members_i[node_i];
  end
  assign in_window1 = window_q[kv1_q.detail[5:0]];
  assign matches_window1 = in_window1 && window1_q.version == kv1_q.version && window1_q.lane == kv1_q.client
      && window1_q.request == kv1_q.request;
  assign matches_note1 = note1.valid && note1.version == kv1_q.version && note1.bucket == bucket1_q
      && note1.way == kv1_q.detail[7:6] && note1.lane == kv1_q.client && note1.request == kv1_q.request;
  assign last_answer1 = (others & ~(answered1_q | 8'd1 << kv1_q.node)) == '0;
  assign unanswered1 = (others & ~answered1_q) != '0;

  class_t class1, class2_q;
  logic line1, line2_q, waits2_q;
  always_comb begin
    class1 = '0;
    if (op1_q == OpAgain || (op1_q == OpRequest && !dead_i)) begin
      class1.read = kv1_q.kind == KindRead;
      class1.write = is_write(kv1_q.kind);
      class1.replicate = is_replicate(kv1_q.kind);
      class1.replicated = is_replicated(kv1_q.kind);
      class1.commit = kv1_q.kind == KindCommit;
      class1.fetch = kv1_q.kind == KindFetch;
      class1.ping = kv1_q.kind == KindPing;
      class1.lane = kv1_q.kind == KindLane;
      class1.theirs     = kv1_q.kind == KindEntry || kv1_q.kind == KindEntered || kv1_q.kind == KindEnter
                          || kv1_q.kind == KindLaneRecord;
      class1.between = class1.replicate || class1.replicated || class1.commit || class1.fetch || class1.theirs;
    end
    case (op1_q)
      OpLeave, OpAsk, OpTake, OpStore, OpReplay, OpLook: line1 = 1'b1;
      default: line1 = 1'b0;
    endcase
  end

  logic plain1, window1;  // what the protocol says of the request's kind is to be done; it is about the window's write
  assign plain1 = op1_q == OpRequest || op1_q == OpAgain;
  assign window1 = op1_q == OpRetry || op1_q == OpReplay || (plain1 && is_replicated(kv1_q.kind));
  assign filter_again1 = valid1_q && plain1 && is_replicate(kv1_q.kind);

  // Why a client's request is refused before anybody looks for the key; StatusOk: not yet.
  status_e refusal1;
  logic leads1, right_lane1;
  assign leads1      = leader1_q == node_i;
  assign right_lane1 = (kv1_q.client >> LaneBits) == '0;
  always_comb begin
    refusal1 = StatusOk;
    if (request1_q.too_long) refusal1 = StatusTooLong;
    else if ((request1_q.length != '0 && !may_have_value(kv1_q.kind)) || kv1_q.detail != '0 || kv1_q.node != '0)
      refusal1 = StatusBadFrame;
    else if (!right_lane1 && kv1_q.kind != KindRead && kv1_q.kind != KindPing) refusal1 = StatusBadLane;
    else if (!serving_i) refusal1 = StatusNotServing;
    else if (is_write(kv1_q.kind)) begin
      if (kv1_q.epoch != epoch_i) refusal1 = StatusStaleEpoch;
      else if (!leads1) refusal1 = StatusNotLeader;
      else if (!opened_i) refusal1 = StatusBusy;
    end
  end

  // A frame between nodes: of this epoch, of a member, from where that is, about a slot that the right one leads.
  logic known1;
  always_comb begin
    known1 = member_q && epoch_i != '0 && kv1_q.epoch == epoch_i && members_i[kv1_q.node]
        && kv1_q.node != node_i && request1_q.from.ip == peer_ip1_q && request1_q.from.port == peer_port1_q
        && !request1_q.too_long && (request1_q.length == '0 || may_have_value(kv1_q.kind));
    if (is_replicate(kv1_q.kind) || kv1_q.kind == KindCommit) known1 &= leader1_q == kv1_q.node && kv1_q.version != '0;
    if (is_replicated(kv1_q.kind)) known1 &= leads1;
    if (kv1_q.kind != KindFetch) known1 &= right_lane1;
  end

  // ---- E2: the line has come

  logic valid2_q, flag2_q, in_window2_q, leads2_q, known2_q, newer_lane2_q, same_lane2_q, from_queue2_q;
  logic matches_window2_q, matches_note2_q, last_answer2_q, unanswered2_q;
  op_e op2_q;
  logic [7:0] nodes2_q;
  kv_t kv2_q;
  endpoint_t from2_q;
  logic has_place2_q, summed2_q, removes2_q;
  place_t place2_q;
  logic [10:0] length2_q;
  logic [15:0] sum2_q;
  bucket_t bucket2_q;
  logic [1:0] first_way2_q;
  logic [2:0] leader2_q;
  status_e refusal2_q;
  lane_t lane2_q;
  note_t note2_q;
  filter_t filter2_q;
  // verilator lint_off UNUSEDSIGNAL
  window_t window2_q;  // but for its key and value
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0] answered2_q;

  always_ff @(posedge clk_i) begin
    valid2_q          <= valid1_q && !rewind;
    op2_q             <= op1_q;
    from_queue2_q     <= from_queue1_q;
    flag2_q           <= flag1_q;
    nodes2_q          <= nodes1_q;
    in_window2_q      <= in_window1;
    matches_window2_q <= matches_window1;
    matches_note2_q   <= matches_note1;
    last_answer2_q    <= last_answer1;
    unanswered2_q     <= unanswered1;
    leads2_q          <= leads1;
    known2_q          <= known1;
    newer_lane2_q     <= !lane1.used || newer(kv1_q.request, lane1.request);
    same_lane2_q      <= lane1.used && kv1_q.request == lane1.request;
    kv2_q             <= kv1_q;
    if (op1_q == OpRetry || op1_q == OpReplay) kv2_q.key <= window1_q.key;
    from2_q <= request1_q.from;
    has_place2_q <= request1_q.has_place;
    place2_q <= request1_q.place;
    // Of the value that the request is about.
    length2_q <= window1 ? window1_q.length : request1_q.length;
    summed2_q <= window1 ? window1_q.summed : request1_q.summed;
    sum2_q <= window1 ? window1_q.sum : request1_q.sum;
    removes2_q   <= window1 ? window1_q.remove : op1_q == OpStore ? !kv1_q.detail[5]
                  : kv1_q.kind == KindRemove || kv1_q.kind == KindRemoveIf || kv1_q.kind == KindReplicateRemove;
    bucket2_q <= bucket1_q;
    first_way2_q <= first_way_of(request1_q.hash);
    leader2_q <= leader1_q;
    refusal2_q <= refusal1;
    lane2_q <= lane1;
    note2_q <= note1;
    filter2_q <= filter_read;
    waits2_q <= filter_read.notes != '0;
    class2_q <= class1;
    line2_q <= line1;
    window2_q <= window1_q;
    answered2_q <= answered1_q;
    if (rst_i) valid2_q <= 1'b0;
  end

  plan_t plan2;
  // Kept, as line_hit_i is late.
  (* keep *)
  logic needs_line2, slow2;
  logic miss2;
  kv_plan i_plan (
      .member_i(member_q),
      .alone_i(alone_q),
      .serving_i,
      .accept_i,
      .leftovers_i,
      .op_i(op2_q),
      .line_i(line2_q),
      .class_i(class2_q),
      .has_place_i(has_place2_q),
      .leads_i(leads2_q),
      .known_i(known2_q),
      .refusal_i(refusal2_q),
      .lane_i(lane2_q),
      .newer_lane_i(newer_lane2_q),
      .same_lane_i(same_lane2_q),
      .noted_i(note2_q.valid),
      .waits_i(waits2_q),
      .filter_leads_i(filter2_q.leads),
      .matches_note_i(matches_note2_q),
      .matches_window_i(matches_window2_q),
      .in_window_i(in_window2_q),
      .leftover_i(window2_q.leftover),
      .last_answer_i(last_answer2_q),
      .unanswered_i(unanswered2_q),
      .busy_i(group_busy_i),
      .plan_o(plan2),
      .needs_line_o(needs_line2),
      .slow_o(slow2)
  );

  assign miss2  = valid2_q && needs_line2 && !slow2 && !line_hit_i;
  assign rewind = miss2 || (valid2_q && slow2);
  assign done2  = valid2_q && !rewind && from_queue2_q;

  always_ff @(posedge clk_i) begin
    if (valid2_q) begin
      want_o        <= miss2;
      want_op_q     <= op2_q != OpRequest;
      want_bucket_o <= bucket2_q;
    end
    slow_valid_o <= valid2_q && slow2;
    if (rst_i) begin
      want_o       <= 1'b0;
      slow_valid_o <= 1'b0;
    end
  end

  // The four ways; which of them matters, and how it compares.
  way_header_t [3:0] way2;
  // Keys by threes of bits, so that Yosys does not make a chain of it.
  (* keep *)
  logic [3:0][21:0] differs2;
  logic [3:0] match2, free2, equal2;
  logic [1:0] found_way2, new_way2, named_way2, detail_way2;
  logic found2, searches2, conditional2;
  assign searches2    = op2_q == OpRequest && (kv2_q.kind == KindRead || is_write(kv2_q.kind));
  assign conditional2 = kv2_q.kind == KindWriteIf || kv2_q.kind == KindRemoveIf;
  assign found2       = match2 != '0;
  assign found_way2   = {match2[3] | match2[2], match2[3] | match2[1]};
  assign detail_way2  = kv2_q.detail[7:6];
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      way2[i] = way_of(line_i, 2'(i));
      for (int j = 0; j < 22; j++) begin
        differs2[i][j] = 3'(way2[i].key >> 3 * j) != 3'(kv2_q.key >> 3 * j);
      end
      match2[i] = way2[i].present && differs2[i] == '0;
      free2[i]  = !way2[i].present;
      equal2[i] = way2[i].version == kv2_q.version;
    end
    new_way2 = first_way2_q;
    if (!free2[first_way2_q]) begin
      for (int i = 3; i >= 0; i--) if (free2[i]) new_way2 = 2'(i);
    end
    named_way2 = detail_way2;
    if (op2_q == OpRequest && kv2_q.kind == KindFetch) named_way2 = kv2_q.key[1:0];
    if (op2_q == OpRequest && is_replicated(kv2_q.kind)) named_way2 = window2_q.way;
  end

  // ---- E3: the decision

  logic valid3_q, request3_q, op3_q, second_q;
  plan_t plan3_q;
  looked_t looked3_q;
  decision_t decision3;

  always_ff @(posedge clk_i) begin
    valid3_q <= valid2_q && !rewind;
    second_q <= valid3_q && decision3.second;
    if (valid2_q) begin
      request3_q <= op2_q == OpRequest;
      op3_q <= op2_q != OpRequest;
      plan3_q <= plan2;
      looked3_q.flag <= flag2_q;
      looked3_q.nodes <= nodes2_q;
      looked3_q.kv <= kv2_q;
      looked3_q.to <= plan2.commit ? window2_q.to : from2_q;
      looked3_q.has_place <= has_place2_q;
      looked3_q.place <= place2_q;
      looked3_q.length <= length2_q;
      looked3_q.summed <= summed2_q;
      looked3_q.value_sum <= sum2_q;
      looked3_q.bucket <= bucket2_q;
      looked3_q.leader <= leader2_q;
      looked3_q.lane <= lane2_q;
      looked3_q.newer_lane <= newer_lane2_q;
      looked3_q.same_lane <= same_lane2_q;
      looked3_q.note <= note2_q;
      looked3_q.filter <= filter2_q;
      looked3_q.filter_old <= filter_read;
      looked3_q.answered <= answered2_q;
      looked3_q.window_kind <= window2_q.kind;
      looked3_q.leftover <= window2_q.leftover;
      looked3_q.window <= '{
          bucket: window2_q.bucket,
          way: window2_q.way,
          version: window2_q.version,
          lane: window2_q.lane,
          request: window2_q.request
      };
      looked3_q.busy <= group_busy_i;
      looked3_q.removes <= removes2_q;
      looked3_q.line <= line_i;
      looked3_q.way <= !searches2 ? named_way2 : found2 ? found_way2 : new_way2;
      looked3_q.found <= found2;
      looked3_q.same <= kv2_q.detail[5] ? match2[detail_way2] : free2[detail_way2];
      looked3_q.fresh <= newer(kv2_q.version, way2[detail_way2].version) || flag2_q;
      looked3_q.equal <= equal2[detail_way2];
      looked3_q.no_key <= removes2_q && !found2;
      looked3_q.mismatch <= conditional2 && (found2 ? (match2 & equal2) == '0 : kv2_q.version != '0);
      looked3_q.full <= !found2 && free2 == '0;
      for (int i = 0; i < 2; i++) begin
        looked3_q.newest[i] <= newer(way2[2*i].version, way2[2*i+1].version) ? way2[2*i].version : way2[2*i+1].version;
      end
    end
    if (rst_i) begin
      valid3_q <= 1'b0;
      second_q <= 1'b0;
    end
  end

  kv_decide i_decide (
      .node_i,
      .others_i  (others),
      .alone_i   (alone_q),
      .accept_i,
      .epoch_i,
      .valid_i   (valid3_q),
      .second_i  (second_q),
      .plan_i    (plan3_q),
      .looked_i  (looked3_q),
      .decision_o(decision3)
  );

  assign op_done_o = valid3_q && op3_q;
  assign seen_o    = decision3.seen;

  // ---- what takes effect

  logic filter_second_q, defer_q;
  place_t defer_place_q;
  filter_t filter_second_write_q;
  logic [11:0] filter_second_at_q;
  logic engine_now_q;  // the frame is the engine's
  send_t send_q;

  always_ff @(posedge clk_i) begin
    engine_now_q        <= decision3.now_valid;
    later_valid_o       <= decision3.later_valid;
    send_q              <= decision3.send;
    job_valid_o         <= decision3.job_valid;
    job_o               <= decision3.job;

    line_write_o        <= decision3.line_put;
    line_write_bucket_o <= looked3_q.bucket;
    line_write_line_o   <= decision3.line;

    lane_put_q          <= decision3.lane_put || clear_i;
    lane_write_q        <= decision3.lane;
    lane_at_q           <= clear_i ? LaneBits'(clear_at_i) : looked3_q.kv.client[LaneBits-1:0];
    note_put_q          <= decision3.note_put || clear_i;
    note_write_q        <= decision3.note;
    note_at_q           <= clear_i ? clear_at_i[8:0] : {looked3_q.kv.node, looked3_q.kv.detail[5:0]};
    window_put_q        <= decision3.window_put;
    window_write_q      <= decision3.window;
    window_at_q         <= decision3.window_place;
    if (decision3.window_set) window_q[decision3.window_place] <= 1'b1;
    if (decision3.window_clear) window_q[decision3.window_place] <= 1'b0;
    answered_put_q        <= decision3.answered_put;
    answered_write_q      <= decision3.answered;

    // Two cells in two cycles: nobody else writes in the second.
    filter_put_q          <= decision3.filter_put || filter_second_q || clear_i;
    filter_write_q        <= filter_second_q ? filter_second_write_q : decision3.filter;
    filter_at_q           <= clear_i ? clear_at_i : filter_second_q ? filter_second_at_q : looked3_q.bucket[11:0];
    filter_second_q       <= decision3.filter_old_put;
    filter_second_write_q <= decision3.filter_old;
    filter_second_at_q    <= looked3_q.note.bucket[11:0];

    defer_q               <= decision3.defer;
    defer_place_q         <= decision3.job.place;

    place_free_o          <= decision3.place_free;
    place_freed_o         <= decision3.place_freed;
    settle_valid_o        <= decision3.settle;
    settle_lane_o         <= looked3_q.note.lane;
    settle_request_o      <= looked3_q.note.request;
    pending_o             <= valid3_q && plan3_q.pending;
    pending_bucket_o      <= looked3_q.bucket[11:0];
    leftover_done_o       <= decision3.leftover_done;

    received_o            <= (valid3_q && request3_q) || slow_valid_o;
    received_kind_o       <= looked3_q.kv.kind;
    replied_o             <= decision3.replied;
    replied_status_o      <= decision3.status;
    dropped_epoch_o       <= valid3_q && plan3_q.dropped_epoch;
    dropped_duplicate_o   <= decision3.dropped_duplicate;
    if (clear_i) begin
      lane_write_q   <= '0;
      note_write_q   <= '0;
      filter_write_q <= '0;
    end
    if (rst_i) begin
      engine_now_q <= 1'b0;
      later_valid_o <= 1'b0;
      job_valid_o <= 1'b0;
      line_write_o <= 1'b0;
      lane_put_q <= 1'b0;
      note_put_q <= 1'b0;
      window_put_q <= 1'b0;
      window_q <= '0;
      answered_put_q <= 1'b0;
      filter_put_q <= 1'b0;
      filter_second_q <= 1'b0;
      defer_q <= 1'b0;
      place_free_o <= 1'b0;
      settle_valid_o <= 1'b0;
      pending_o <= 1'b0;
      leftover_done_o <= 1'b0;
      received_o <= 1'b0;
      replied_o <= 1'b0;
      dropped_epoch_o <= 1'b0;
      dropped_duplicate_o <= 1'b0;
    end
  end

  // ---- what memory has done: the place is free, and with `store` now is the time for the answer

  // At once, if nothing waits and nothing is in the way.
  logic done_valid, done_waits, done_answer, done_take, waiting_answer;
  place_t done_place, waiting_place;
  send_t deferred;
  logic done_ready;
  // verilator lint_off UNUSEDSIGNAL
  logic [6:0] done_count;
  logic done_almost_full;
  // verilator lint_on UNUSEDSIGNAL
  assign done_valid  = done_valid_i && !done_tag_i[TagNobody];
  assign done_place  = done_waits ? waiting_place : place_t'(done_tag_i);
  assign done_answer = done_waits ? waiting_answer : done_tag_i[TagAnswer];
  assign done_take   = (done_waits || done_valid) && !(done_answer && (engine_now_q || now_almost_full_i));
  stream_fifo #(
      .Width(1 + $bits(place_t)),
      .Depth(64)
  ) i_done (
      .clk_i,
      .rst_i,
      .s_valid(done_valid && (done_waits || !done_take)),
      .s_ready(done_ready),
      .s_payload({done_tag_i[TagAnswer], place_t'(done_tag_i)}),
      .m_valid(done_waits),
      .m_ready(done_waits && done_take),
      .m_payload({waiting_answer, waiting_place}),
      .count_o(done_count),
      .almost_full_o(done_almost_full)
  );
  lutram #(
      .Width($bits(send_t)),
      .Depth(Places)
  ) i_deferred (
      .clk_i,
      .write_i(defer_q),
      .write_address_i(defer_place_q),
      .write_data_i(send_q),
      .read_address_i(done_place),
      .read_data_o(deferred)
  );

  assign done_free_o  = done_take;
  assign done_freed_o = done_place;
  assign now_valid_o  = engine_now_q || (done_take && done_answer && !dead_i);
  assign now_o        = engine_now_q ? send_q : deferred;
  assign later_o      = send_q;

  assign quiet_o      = !valid1_q && !valid2_q && !valid3_q && !second_q && !hold_q[0] && !want_o;
  assign idle_o       = queue_empty && quiet_o;

  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  assign unused = ^done_tag_i[15:TagAnswer+1];
  // verilator lint_on UNUSEDSIGNAL

  `ASSERT_NEXT(op_kept, op_valid_i && !op_done_o, op_valid_i && op_i.op == $past(op_i.op) && op_i.kv == $past(op_i.kv),
               "an operation changed before it was done")
  `ASSERT(second_alone, !(second_q && valid3_q), "two frames for one cycle")
  `ASSERT(one_plan, !valid3_q || $countones(plan3_q[$bits(plan_t)-1-:23]) <= 1, "two things to do at once")
  `ASSERT(place_used_once, !(decision3.place_free && (decision3.line_put || decision3.window_put)),
          "a place was freed and used")
  `ASSERT(room_for_done, !done_valid_i || done_ready, "memory did more than there are places")
  `ASSERT(line_was_there, !decision3.line_put || $past(line_hit_i), "a line was changed that had not come")

endmodule
`default_nettype wire
