// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// What a node does with a request: docs/kv-protocol.md, sections 4 to 6; docs/kv-core.md has the cycles.
///
/// Behaviour: requests enter in order and take four stages. E0 asks all memories, E1 and E2 hear from them, E3 decides
/// (kv_e3_decide); its decisions are registered and take effect in the cycle after, the line two cycles after. A request whose line is not in
/// the cache starts over until it is, and those behind it with it; so does one that one before it gets in the way of (kv_e1_conflicts). A request
/// that changes state keeps the next out for a cycle, and for the cycle in which its line is written; others follow each other every cycle.
/// What needs more than that (epochs, leftovers, a node's return, a key that is not in its first bucket) stays at
/// the head of the queue (head_o) and the sequencer is told (slow_valid_o); it has operations of its own done here, which take the same
/// way and go before requests, and ends what it was told of with one of those that consume it. One that changes state is alone in the
/// stages. stop_i keeps requests out; it must
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
    input wire [5:0] bucket_bits_i,  // at most MostBucketBits
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
    /// The version of a key that OpAgain adds after a walk.
    input  wire           [31:0] walked_version_i,
    /// For the sequencer: the head of the queue is not the engine's business.
    output logic                 slow_valid_o,
    output subject_t             head_o,
    /// A note made way for another one: the lane's record is settled.
    output logic                 settle_valid_o,
    output lane_number_t         settle_lane_o,
    output logic          [31:0] settle_request_o,
    /// A read was refused for the sake of a note in one of this cell's buckets.
    output logic                 pending_o,
    output filter_cell_t         pending_cell_o,
    /// What OpTake took is committed, or had nobody to wait for.
    output logic                 leftover_done_o,
    /// A way's version is refreshed: what is noted of this node, at place 0, has to become a leftover. Until then, and while there are
    /// leftovers, there is no other.
    output logic                 refresh_o,
    input  wire                  refreshing_i,
    input  wire                  stop_i,
    /// Nothing is on its way, but the queue may hold requests.
    output logic                 quiet_o,
    /// Clears what is at this address in the memories of lanes, notes and filters.
    input  wire                  clear_i,
    input  wire           [11:0] clear_at_i,

    // ---- lines: kv_line_cache
    output logic            line_read_o,
    output logic            line_changes_o,       // that line may be written five cycles later
    output bucket_t         line_bucket_o,
    input  wire             line_hit_i,           // two cycles later
    input  wire     [511:0] line_i,
    output logic            want_o,
    output bucket_t         want_bucket_o,
    output logic            line_write_o,
    output bucket_t         line_write_bucket_o,
    output logic    [  1:0] line_write_way_o,
    output logic    [127:0] line_write_header_o,  // and of the job, a cycle before
    /// A write to the group of line_bucket_o of two cycles ago is under way.
    input  wire             group_busy_i,

    // ---- memory
    input  wire    job_room_i,  // for six more, three of which write, a cycle ago
    output logic   job_valid_o,
    output memory_job_t job_o,

    // ---- places of the pool
    output logic   place_free_o,  // of a request that came to nothing
    output place_t place_freed_o,

    // ---- what is sent: one record a cycle, with its list
    input wire now_almost_full_i,  // fewer than eight places
    input wire later_room_i,  // for four more
    output logic now_valid_o,
    output logic later_valid_o,
    output logic deferred_valid_o,  // when memory has send_o.place
    output send_t send_o,

    // ---- what the sequencer and the counters want to know
    output logic [Places-1:0] window_o,            // places in flight
    output logic              received_o,
    output logic [       4:0] received_kind_o,
    output logic              replied_o,
    output logic [       4:0] replied_status_o,
    output logic              dropped_epoch_o,
    output logic              dropped_duplicate_o
);

  // ---- E0: what enters

  logic valid0, op0, from_queue0, changes0, calm, done2, rewind, want_op_q;
  kv_t kv0;
  bucket_t bucket0, mask_q;
  delivery_t delivery1;
  always_ff @(posedge clk_i) mask_q <= ~(bucket_t'('1) << bucket_bits_i);

  kv_e0_admit #(
      .QueueDepth(QueueDepth)
  ) i_admit (
      .clk_i,
      .rst_i,
      .bucket_mask_i(mask_q),
      .request_valid_i,
      .request_i,
      .room_o,
      .op_valid_i,
      .op_i,
      .op_done_i(op_done_o),
      .stop_i,
      .open_i(!line_write_o && !now_almost_full_i && later_room_i && job_room_i),
      .want_i(want_o),
      .want_op_i(want_op_q),
      .done_i(done2),
      .rewind_i(rewind),
      .valid_o(valid0),
      .op_o(op0),
      .from_queue_o(from_queue0),
      .changes_o(changes0),
      .reads_line_o(line_read_o),
      .kv_o(kv0),
      .bucket_o(bucket0),
      .calm_o(calm),
      .head_o,
      .delivery_o(delivery1)
  );
  assign slot_o         = bucket0[7:0];
  assign peer_o         = kv0.node;
  assign line_changes_o = changes0;
  assign line_bucket_o  = bucket0;

  // ---- the memories: asked in E0, written one cycle after E3, so that five cycles after E0 they can be asked again

  lane_t lane1;
  note_t note1;
  filter_t filter_read;
  window_t window1;
  logic [7:0] answered0;
  logic filter_again1;
  looked_t looked3_q;
  decision_t decision3;
  kv_records #(
      .LaneBits(LaneBits)
  ) i_records (
      .clk_i,
      .rst_i,
      .read_i(valid0),
      .kv_i(kv0),
      .bucket_i(bucket0),
      .again_i(filter_again1),
      .decision_i(decision3),
      .looked_i(looked3_q),
      .lane_o(lane1),
      .note_o(note1),
      .filter_o(filter_read),
      .window_o(window1),
      .answered_o(answered0),
      .in_use_o(window_o),
      .clear_i,
      .clear_at_i
  );

  // ---- E1: who sent it, and whether its form is right

  logic valid1_q, flag1_q, from_queue1_q, changes1_q;
  op_e op1_q;
  logic [7:0] nodes1_q;
  logic [31:0] hash1_q;
  kv_t kv1_q;
  bucket_t bucket1_q;
  logic [2:0] leader1_q;
  logic [31:0] peer_ip1_q;
  logic [15:0] peer_port1_q;
  logic [7:0] answered1_q;

  always_ff @(posedge clk_i) begin
    valid1_q      <= valid0 && !rewind;
    op1_q         <= op0 ? op_i.op : OpRequest;
    changes1_q    <= changes0;
    from_queue1_q <= from_queue0;
    flag1_q       <= op0 && op_i.flag;
    nodes1_q      <= op_i.nodes;
    hash1_q       <= head_o.hash;
    kv1_q         <= kv0;
    bucket1_q     <= bucket0;
    leader1_q     <= leader_i;
    peer_ip1_q    <= peer_i.ip;
    peer_port1_q  <= peer_i.port;
    answered1_q   <= answered0;
    if (rst_i) valid1_q <= 1'b0;
  end

  // Compared here, so that the next stage need not.
  logic in_window1, place_used1, matches_window1, matches_note1, last_answer1, unanswered1;
  logic [7:0] others;
  logic member_q, alone_q;
  always_ff @(posedge clk_i) begin
    others   <= members_i & ~(8'd1 << node_i);
    alone_q  <= (members_i & ~(8'd1 << node_i)) == '0;
    member_q <= members_i[node_i];
  end
  assign in_window1 = window_o[kv1_q.detail[5:0]];
  assign place_used1 = window_o[delivery1.place];
  assign matches_window1 = in_window1 && window1.version == kv1_q.version && window1.lane == kv1_q.client
      && window1.request == kv1_q.request
      && ({window1.group, window1.bucket[9:8]} == kv1_q.candidate || op1_q != OpRequest);
  assign matches_note1 = note1.valid && note1.version == kv1_q.version && note1.bucket == bucket1_q
      && note1.way == kv1_q.detail[7:6] && note1.lane == kv1_q.client && note1.request == kv1_q.request;
  assign last_answer1 = (others & ~(answered1_q | 8'd1 << kv1_q.node)) == '0;
  assign unanswered1 = (others & ~answered1_q) != '0;

  logic
      plain1, windowed1;  // what the protocol says of the request's kind is to be done; it is about the window's write
  assign plain1 = op1_q == OpRequest || op1_q == OpAgain;
  assign windowed1 = op1_q == OpRetry || op1_q == OpReplay || (plain1 && is_replicated(kv1_q.kind));
  // The cell of the note that a replicate takes the place of.
  assign filter_again1 = valid1_q && plain1 && is_replicate(kv1_q.kind);

  // What was read is about to be changed.
  logic conflict1, settled1, changes2_q, changes3_q, valid3_q;
  plan_t plan3_q;
  kv_e1_conflicts #(
      .LaneBits(LaneBits)
  ) i_conflicts (
      .clk_i,
      .rst_i,
      .kv_i(kv1_q),
      .cell_i(filter_cell(bucket1_q)),
      .noted_i(note1.valid),
      .settled_o(settled1),
      .conflict_o(conflict1),
      .changes_i(valid3_q && changes3_q),
      .changing_i(looked3_q.kv),
      .changing_cell_i(filter_cell(looked3_q.bucket)),
      .changing_all_i((looked3_q.note.valid && is_replicate(
          looked3_q.kv.kind
      )) || (plan3_q.commit && looked3_q.leftover)),
      .changing_settles_i(plan3_q.settle)
  );

  class_t class1, class2_q;
  logic line1, line2_q, waits2_q, same_lane2_q, leads1, known1;
  status_e refusal1;
  kv_e1_classify #(
      .LaneBits(LaneBits)
  ) i_vet (
      .node_i,
      .member_i(member_q),
      .members_i,
      .serving_i,
      .opened_i,
      .epoch_i,
      .dead_i,
      .op_i(op1_q),
      .flag_i(flag1_q),
      .kv_i(kv1_q),
      .delivery_i(delivery1),
      .leader_i(leader1_q),
      .peer_ip_i(peer_ip1_q),
      .peer_port_i(peer_port1_q),
      .class_o(class1),
      .line_o(line1),
      .leads_o(leads1),
      .refusal_o(refusal1),
      .known_o(known1)
  );

  // ---- E2: the line has come

  logic valid2_q, again2_q, in_window2_q, place_used2_q, leads2_q, known2_q, from_queue2_q;
  logic matches_window2_q, matches_note2_q, last_answer2_q, unanswered2_q;
  op_e op2_q;
  logic [1:0] first_way2_q;
  status_e refusal2_q;
  endpoint_t window_to2_q;
  // verilator lint_off UNUSEDSIGNAL
  looked_t looked2_q;  // but for what the line says, and what comes late
  // verilator lint_on UNUSEDSIGNAL
  kv_t named1;
  always_comb begin
    named1 = kv1_q;
    if (op1_q == OpRetry || op1_q == OpReplay) named1.key = window1.key;
  end

  // Of the value that the request is about.
  logic [10:0] length1;
  logic [15:0] sum1;
  logic summed1, group1, removes1;
  always_comb begin
    {length1, summed1, sum1} = {delivery1.length, delivery1.summed, delivery1.sum};
    group1 = ((bucket1_q ^ bucket_t'(hash1_q)) & mask_q) >> 10 != '0;
    removes1 = kv1_q.kind == KindRemove || kv1_q.kind == KindRemoveIf || kv1_q.kind == KindReplicateRemove;
    if (op1_q == OpStore) removes1 = !kv1_q.detail[5];
    if (windowed1) begin
      {length1, summed1, sum1} = {window1.length, window1.summed, window1.sum};
      group1 = window1.group;
      removes1 = window1.remove;
    end
  end

  always_ff @(posedge clk_i) begin
    valid2_q <= valid1_q && !conflict1 && !rewind;
    again2_q <= valid1_q && conflict1 && !rewind;
    changes2_q <= changes1_q;
    op2_q <= op1_q;
    from_queue2_q <= from_queue1_q;
    in_window2_q <= in_window1;
    place_used2_q <= place_used1;
    matches_window2_q <= matches_window1;
    matches_note2_q <= matches_note1;
    last_answer2_q <= last_answer1;
    unanswered2_q <= unanswered1;
    leads2_q <= leads1;
    known2_q <= known1;
    first_way2_q <= first_way_of(hash1_q);
    refusal2_q <= refusal1;
    waits2_q <= filter_read.notes != '0;
    same_lane2_q <= lane1.used && kv1_q.request == lane1.request;
    class2_q <= class1;
    line2_q <= line1;
    window_to2_q <= window1.to;
    looked2_q <= '{
        flag: flag1_q,
        nodes: nodes1_q,
        kv: named1,
        to: delivery1.from,
        has_place: delivery1.has_place,
        place: delivery1.place,
        length: length1,
        summed: summed1,
        value_sum: sum1,
        bucket: bucket1_q,
        group: group1,
        written: op1_q != OpStore || kv1_q.version != '0,
        leader: leader1_q,
        lane: lane1,
        newer_lane: !lane1.used || newer_request(kv1_q.request, lane1.request),
        same_lane: 1'b0,
        note: note1,
        filter: filter_read,
        filter_old: '0,
        answered: answered1_q,
        window_kind: window1.kind,
        leftover: window1.leftover,
        window: '{
            bucket: window1.bucket,
            way: window1.way,
            version: window1.version,
            lane: window1.lane,
            request: window1.request
        },
        busy: 1'b0,
        removes: removes1,
        ways: '0
    };
    if (settled1) looked2_q.note.valid <= 1'b0;
    if (rst_i) begin
      valid2_q <= 1'b0;
      again2_q <= 1'b0;
    end
  end

  plan_t plan2;
  // Kept, as line_hit_i is late.
  `YOSYS_KEEP
  logic needs_line2, slow2, several2;
  logic miss2, walk2, walks_q;
  kv_e2_plan i_plan (
      .member_i(member_q),
      .alone_i(alone_q),
      .serving_i,
      .accept_i,
      .leftovers_i,
      .op_i(op2_q),
      .line_i(line2_q),
      .class_i(class2_q),
      .has_place_i(looked2_q.has_place),
      .leads_i(leads2_q),
      .known_i(known2_q),
      .refusal_i(refusal2_q),
      .lane_i(looked2_q.lane),
      .newer_lane_i(looked2_q.newer_lane),
      .same_lane_i(same_lane2_q),
      .noted_i(looked2_q.note.valid),
      .waits_i(waits2_q),
      .filter_leads_i(looked2_q.filter.leads),
      .matches_note_i(matches_note2_q),
      .matches_window_i(matches_window2_q),
      .in_window_i(in_window2_q),
      .place_used_i(place_used2_q),
      .leftover_i(looked2_q.leftover),
      .last_answer_i(last_answer2_q),
      .unanswered_i(unanswered2_q),
      .busy_i(group_busy_i),
      .plan_o(plan2),
      .needs_line_o(needs_line2),
      .slow_o(slow2)
  );

  // The key is not in its first bucket, and may be in another one.
  ways_t ways2;
  assign walk2  = (plan2.read || plan2.write) && op2_q == OpRequest && walks_q && several2 && !ways2.found;
  assign miss2  = valid2_q && needs_line2 && !slow2 && !line_hit_i;
  assign rewind = again2_q || (valid2_q && (slow2 || (needs_line2 && !line_hit_i) || walk2));
  assign done2  = valid2_q && !rewind && from_queue2_q;

  always_ff @(posedge clk_i) begin
    if (valid2_q) begin
      want_o        <= miss2;
      want_op_q     <= op2_q != OpRequest;
      want_bucket_o <= looked2_q.bucket;
    end
    slow_valid_o <= valid2_q && (slow2 || (walk2 && line_hit_i));
    walks_q      <= mask_q[8];
    if (rst_i) begin
      want_o       <= 1'b0;
      slow_valid_o <= 1'b0;
    end
  end

  logic refresh_q;  // a write may need one: none begins before this node has opened
  always_ff @(posedge clk_i) refresh_q <= opened_i;
  kv_e2_lookup i_ways (
      .line_i,
      .op_i(op2_q),
      .kv_i(looked2_q.kv),
      .flag_i(looked2_q.flag),
      .removes_i(looked2_q.removes),
      .first_way_i(first_way2_q),
      .window_way_i(looked2_q.window.way),
      .refresh_i(refresh_q),
      .several_o(several2),
      .ways_o(ways2)
  );

  // ---- E3: the decision

  logic request3_q, op3_q, second_q;

  always_ff @(posedge clk_i) begin
    valid3_q <= valid2_q && !rewind;
    second_q <= valid3_q && decision3.second;
    if (valid2_q) begin
      changes3_q <= changes2_q;
      request3_q <= op2_q == OpRequest;
      op3_q <= op2_q != OpRequest;
      plan3_q <= plan2;
      looked3_q <= looked2_q;
      if (plan2.commit) looked3_q.to <= window_to2_q;
      looked3_q.filter_old <= filter_read;
      looked3_q.same_lane <= same_lane2_q;
      looked3_q.busy <= group_busy_i;
      looked3_q.ways <= ways2;
    end
    if (rst_i) begin
      valid3_q <= 1'b0;
      second_q <= 1'b0;
    end
  end

  kv_e3_decide i_decide (
      .node_i,
      .others_i  (others),
      .alone_i   (alone_q),
      .accept_i,
      .epoch_i,
      .walked_version_i,
      .refresh_i (!leftovers_i && !refreshing_i && !refresh_o),
      .valid_i   (valid3_q),
      .second_i  (second_q),
      .plan_i    (plan3_q),
      .looked_i  (looked3_q),
      .decision_o(decision3)
  );

  assign op_done_o = valid3_q && op3_q;
  assign seen_o    = decision3.seen;

  // ---- what takes effect

  logic line_put_q;
  always_ff @(posedge clk_i) begin
    now_valid_o      <= decision3.now_valid;
    later_valid_o    <= decision3.later_valid;
    deferred_valid_o <= decision3.defer;
    send_o           <= decision3.send;
    job_valid_o      <= decision3.job_valid;
    job_o            <= decision3.job;

    // The line a cycle after the job, since then the next that changes state does not read one. Whoever is next in E3 comes later than that.
    line_put_q       <= decision3.header_put;
    line_write_o     <= line_put_q;
    if (valid3_q) begin
      line_write_bucket_o <= looked3_q.bucket;
      line_write_way_o    <= looked3_q.ways.way;
      line_write_header_o <= way_bytes(decision3.header);
    end

    place_free_o        <= decision3.place_free;
    place_freed_o       <= decision3.place_freed;
    settle_valid_o      <= decision3.settle;
    settle_lane_o       <= looked3_q.note.lane;
    settle_request_o    <= looked3_q.note.request;
    pending_o           <= valid3_q && plan3_q.pending;
    pending_cell_o      <= filter_cell(looked3_q.bucket);
    leftover_done_o     <= decision3.leftover_done;
    refresh_o           <= decision3.refreshes;

    received_o          <= (valid3_q && request3_q) || slow_valid_o;
    received_kind_o     <= looked3_q.kv.kind;
    replied_o           <= decision3.replied;
    replied_status_o    <= decision3.status;
    dropped_epoch_o     <= valid3_q && plan3_q.dropped_epoch;
    dropped_duplicate_o <= decision3.dropped_duplicate;
    if (rst_i) begin
      now_valid_o <= 1'b0;
      later_valid_o <= 1'b0;
      job_valid_o <= 1'b0;
      line_put_q <= 1'b0;
      line_write_o <= 1'b0;
      deferred_valid_o <= 1'b0;
      place_free_o <= 1'b0;
      settle_valid_o <= 1'b0;
      pending_o <= 1'b0;
      leftover_done_o <= 1'b0;
      refresh_o <= 1'b0;
      received_o <= 1'b0;
      replied_o <= 1'b0;
      dropped_epoch_o <= 1'b0;
      dropped_duplicate_o <= 1'b0;
    end
  end

  assign quiet_o = !valid1_q && !valid2_q && !again2_q && !valid3_q && !second_q && calm && !want_o && !line_put_q
      && !line_write_o;

  `ASSERT_NEXT(op_kept, op_valid_i && !op_done_o, op_valid_i && op_i.op == $past(op_i.op) && op_i.kv == $past(op_i.kv),
               "an operation changed before it was done")
  `ASSERT(second_alone, !(second_q && valid3_q), "two frames for one cycle")
  `ASSERT(one_plan, !valid3_q || $countones(plan3_q[$bits(plan_t)-1-:23]) <= 1, "two things to do at once")
  `ASSERT(place_used_once,
          !(decision3.place_free && ((decision3.header_put && !decision3.job.tag[TagNobody]) || decision3.window_put)),
          "a place was freed and used")
  `ASSERT(alone_with_its_line, !line_write_o || !line_read_o, "a line was asked for while one is written")
  `ASSERT(line_was_there, !decision3.header_put || $past(line_hit_i), "a line was changed that had not come")
  `ASSERT(line_kept, !line_put_q || !valid3_q, "a line's new content is overwritten before it is written")
  `ASSERT(operations_alone,
          !(valid1_q && changes1_q && op1_q != OpRequest) || !((valid2_q && changes2_q) || (valid3_q && changes3_q)),
          "an operation is among requests that change state")

endmodule
`default_nettype wire
