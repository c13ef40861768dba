// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Handles a node's requests: docs/design/kv-protocol.md, sections 4 to 6. docs/design/kv-core.md has the cycles.
///
/// Behaviour: requests enter in order and pass four stages. E0 reads all memories, E1 and E2 get the results, and E3
/// decides (kv_e3_decide). Decisions are registered and take effect one cycle later; a line changes two cycles later. A
/// request whose line is not in the cache starts over, with all requests behind it, until the line is there. So does a
/// request that conflicts with an earlier one (kv_e1_conflicts). After a request that changes state, one cycle stays
/// free, and so does the cycle in which its line is written. Otherwise a request enters in every cycle.
/// Some requests need more: epochs, leftovers, a node's return, a key that is not in its first bucket. Such a request
/// stays at the head of the queue (recovery_o.head), and handed_on signals it to kv_recovery. `kv_recovery` issues
/// operations, which pass the same stages with priority over requests. Its last operation consumes the request. An
/// operation that changes state is alone in the stages. `stop_i` keeps requests out, and must answer handed_on in the
/// same cycle. With stop_i, an operation that waits for its line still enters. In a dead node requests have no effect.
/// Latency: 6 cycles from a request to the decision at the outputs; 3 from an operation to op_done, if its line is
/// cached.
/// Reset: forgets all requests and writes in flight. `kv_recovery` must clear the memories of lanes, notes and filters.
/// Requirements: the settings change, and memories are cleared, only while quiet and stop_i are high and no operation
/// runs. Receivers take outputs at once: almost_full_i and job_room_i reserve room for entries in flight.
module kv_engine
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    parameter kv_config_t  Config     = DefaultConfig,
    parameter int unsigned QueueDepth = 32
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here; a node's MAC address does not
    input wire kv_settings_t settings_i,
    input wire standing_t standing_i,

    /// The leader of a slot and the addresses of a node are looked up in the same cycle.
    output who_ask_t  ask_o,
    input  wire who_t who_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- requests
    input  wire arrival_t arrival_i,
    output logic          room_o,

    // ---- kv_recovery
    input wire to_engine_t recovery_i,
    input wire stop_i,
    output from_engine_t recovery_o,

    // ---- lines: kv_line_cache
    output lookup_t lookup_o,
    input wire found_t found_i,  // two cycles later
    output want_t want_o,
    output line_write_t line_write_o,
    /// Memory is being written in the group of the bucket that was looked up two cycles ago.
    input wire group_busy_i,

    // ---- memory
    input  wire         job_room_i,   // for six more, three of which write, a cycle ago
    output logic        job_valid_o,
    output memory_job_t job_o,

    // ---- places of the pool: frees the place of a request without effect
    output free_place_t free_o,

    // ---- frames to send
    input wire almost_full_t almost_full_i,
    output sending_t sending_o,

    output engine_events_t events_o
);

  // verilator lint_off UNUSEDSIGNAL
  staged_t staged;
  // verilator lint_on UNUSEDSIGNAL
  assign staged = settings_i.staged;

  // ---- E0: the request that enters

  entered_t entered;
  logic calm, done2, rewind, want_op_q, op_done;
  bucket_t   mask_q;
  subject_t  head;
  delivery_t delivery1;
  always_ff @(posedge clk_i) mask_q <= ~(bucket_t'('1) << settings_i.direct.bucket_bits);

  kv_e0_admit #(
      .QueueDepth(QueueDepth)
  ) i_admit (
      .*,
      .bucket_mask_i(mask_q),
      .op_done_i(op_done),
      .open_i(!line_write_o.write && almost_full_i == '0 && job_room_i),
      .want_i(want_o.want),
      .want_op_i(want_op_q),
      .done_i(done2),
      .rewind_i(rewind),
      .entered_o(entered),
      .calm_o(calm),
      .head_o(head),
      .delivery_o(delivery1)
  );
  assign ask_o = '{slot: entered.bucket[7:0], node: entered.kv.node};
  assign lookup_o = '{read: entered.reads_line, changes: entered.changes, bucket: entered.bucket};

  // ---- the memories: read in E0, written one cycle after E3. So new data can be read five cycles after E0

  records_t records1;
  logic [Places-1:0] in_use;
  place_count_t used;
  logic [7:0] answered0;
  logic filter_again1;
  looked_t looked3_q;
  decision_t decision3;
  kv_records #(
      .Config(Config)
  ) i_records (
      .*,
      .entered_i(entered),
      .again_i(filter_again1),
      .decision_i(decision3),
      .looked_i(looked3_q),
      .clear_i(recovery_i.clear),
      .records_o(records1),
      .answered_o(answered0),
      .in_use_o(in_use),
      .used_o(used)
  );

  // ---- E1: the sender, and the check of the form

  logic   valid1_q;
  asked_t asked1_q;

  always_ff @(posedge clk_i) begin
    valid1_q <= entered.valid && !rewind;
    asked1_q <= '{
        op: entered.op ? recovery_i.op.op : OpRequest,
        flag: entered.op && recovery_i.op.flag,
        nodes: recovery_i.op.nodes,
        from_queue: entered.from_queue,
        changes: entered.changes,
        kv: entered.kv,
        hash: head.hash,
        bucket: entered.bucket,
        leader: who_i.leader,
        peer_ip: who_i.at.ip,
        peer_port: who_i.at.port,
        answered: answered0
    };
    if (rst_i) valid1_q <= 1'b0;
  end

  // The comparisons are made here to relieve the next stage.
  op_e op1;
  kv_t kv1;
  lane_t lane1;
  note_t note1;
  window_t window1;
  compared_t compared1;
  logic last_answer1;
  logic [7:0] others;
  logic member_q, alone_q;
  assign op1 = asked1_q.op;
  assign kv1 = asked1_q.kv;
  assign lane1 = records1.lane;
  assign note1 = records1.note;
  assign window1 = records1.window;
  always_ff @(posedge clk_i) begin
    others   <= staged.members & ~(8'd1 << staged.node);
    alone_q  <= (staged.members & ~(8'd1 << staged.node)) == '0;
    member_q <= staged.members[staged.node];
  end
  logic in_window1;
  assign in_window1 = in_use[kv1.detail[5:0]];
  // In groups of three bits, as in same_word.
  logic [12:0] same_note1;
  logic [ 4:0] same_lane1;
  logic noted1, in_flight1, same_candidate1;
  always_comb begin
    for (int i = 0; i < 13; i++) begin
      same_note1[i] = 3'({note1.lane, note1.way, note1.bucket} >> 3 * i)
          == 3'({kv1.client, kv1.detail[7:6], asked1_q.bucket} >> 3 * i);
    end
    for (int i = 0; i < 5; i++) same_lane1[i] = 3'(window1.lane >> 3 * i) == 3'(kv1.client >> 3 * i);
  end
  assign noted1 = all_of({same_note1, note1.valid, 10'h3ff});
  assign same_candidate1 = {window1.group, window1.bucket[9:8]} == kv1.candidate || op1 != OpRequest;
  assign in_flight1 = all_of({same_lane1, same_candidate1, in_window1, 17'h1ffff});
  assign compared1 = '{
          matches_note: noted1 && same_word(note1.version, kv1.version) && same_word(note1.request, kv1.request),
          matches_window:
          in_flight1
          &&
          same_word
          (
              window1.version, kv1.version
          ) &&
          same_word
          (
              window1.request, kv1.request
          ),
          in_window: in_window1,
          place_used: in_use[delivery1.place],
          unanswered: (others & ~asked1_q.answered) != '0
      };
  assign last_answer1 = (others & ~(asked1_q.answered | 8'd1 << kv1.node)) == '0;

  logic
      plain1, windowed1;  // what the protocol says of the request's kind is to be done; it is about the window's write
  assign plain1 = op1 == OpRequest || op1 == OpAgain;
  assign windowed1 = op1 == OpRetry || op1 == OpReplay || (plain1 && is_replicated(kv1.kind));
  // Reads the filter cell of the note that a `replicate` replaces.
  assign filter_again1 = valid1_q && plain1 && is_replicate(kv1.kind);

  // An earlier request is about to change data that this one has read.
  logic conflict1, settled1, changes2_q, changes3_q, valid3_q;
  plan_t plan3_q;
  changing_t changing3;
  assign changing3 = '{
          valid: valid3_q && changes3_q,
          kv: looked3_q.kv,
          where: filter_cell(looked3_q.bucket),
          all: (looked3_q.note.valid && is_replicate(looked3_q.kv.kind)) || (plan3_q.commit && looked3_q.leftover),
          settles: plan3_q.settle
      };
  kv_e1_conflicts #(
      .Config(Config)
  ) i_conflicts (
      .*,
      .kv_i(kv1),
      .cell_i(filter_cell(asked1_q.bucket)),
      .noted_i(note1.valid),
      .settled_o(settled1),
      .conflict_o(conflict1),
      .changing_i(changing3)
  );

  class_t class1, class2_q;
  judged_t judged1, judged2_q;
  kv_e1_classify #(
      .Config(Config)
  ) i_classify (
      .*,
      .member_i  (member_q),
      .asked_i   (asked1_q),
      .delivery_i(delivery1),
      .class_o   (class1),
      .judged_o  (judged1)
  );

  // ---- E2: the line has arrived

  logic valid2_q, again2_q, from_queue2_q, waits2_q, same_lane2_q, last_answer2_q;
  compared_t compared2_q;
  op_e op2_q;
  logic [1:0] first_way2_q;
  endpoint_t window_to2_q;
  // verilator lint_off UNUSEDSIGNAL
  looked_t looked2_q;  // but for what the line says, and what comes late
  // verilator lint_on UNUSEDSIGNAL
  kv_t named1;
  always_comb begin
    named1 = kv1;
    if (op1 == OpRetry || op1 == OpReplay) named1.key = window1.key;
  end

  // Size of the value that the request concerns.
  logic [10:0] length1;
  logic [15:0] sum1;
  logic summed1, group1, removes1;
  always_comb begin
    {length1, summed1, sum1} = {delivery1.length, delivery1.summed, delivery1.sum};
    group1 = ((asked1_q.bucket ^ bucket_t'(asked1_q.hash)) & mask_q) >> 10 != '0;
    removes1 = kv1.kind == KindRemove || kv1.kind == KindRemoveIf || kv1.kind == KindReplicateRemove;
    if (op1 == OpStore) removes1 = !kv1.detail[5];
    if (windowed1) begin
      {length1, summed1, sum1} = {window1.length, window1.summed, window1.sum};
      group1 = window1.group;
      removes1 = window1.remove;
    end
  end

  always_ff @(posedge clk_i) begin
    valid2_q <= valid1_q && !conflict1 && !rewind;
    again2_q <= valid1_q && conflict1 && !rewind;
    changes2_q <= asked1_q.changes;
    op2_q <= op1;
    from_queue2_q <= asked1_q.from_queue;
    compared2_q <= compared1;
    last_answer2_q <= last_answer1;
    first_way2_q <= first_way_of(asked1_q.hash);
    waits2_q <= records1.filter.notes != '0;
    same_lane2_q <= lane1.used && kv1.request == lane1.request;
    class2_q <= class1;
    judged2_q <= judged1;
    window_to2_q <= window1.to;
    looked2_q <= '{
        flag: asked1_q.flag,
        nodes: asked1_q.nodes,
        kv: named1,
        to: delivery1.from,
        has_place: delivery1.has_place,
        place: delivery1.place,
        length: length1,
        summed: summed1,
        value_sum: sum1,
        bucket: asked1_q.bucket,
        group: group1,
        written: op1 != OpStore || kv1.version != '0,
        leader: asked1_q.leader,
        lane: lane1,
        newer_lane: !lane1.used || newer_request(kv1.request, lane1.request),
        same_lane: 1'b0,
        note: note1,
        filter: records1.filter,
        filter_old: '0,
        answered: asked1_q.answered,
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
  // YOSYS_KEEP, because found_i.hit arrives late.
  `YOSYS_KEEP
  logic needs_line2, slow2, several2;
  logic miss2, walk2, walks_q, handed_on_q;
  kv_e2_plan i_plan (
      .*,
      .member_i     (member_q),
      .alone_i      (alone_q),
      .op_i         (op2_q),
      .class_i      (class2_q),
      .judged_i     (judged2_q),
      .compared_i   (compared2_q),
      .looked_i     (looked2_q),
      .same_lane_i  (same_lane2_q),
      .waits_i      (waits2_q),
      .last_answer_i(last_answer2_q),
      .busy_i       (group_busy_i),
      .plan_o       (plan2),
      .needs_line_o (needs_line2),
      .slow_o       (slow2)
  );

  // The key is not in its first bucket, but may be in another one.
  ways_t ways2;
  assign walk2  = (plan2.read || plan2.write) && op2_q == OpRequest && walks_q && several2 && !ways2.found;
  assign miss2  = valid2_q && needs_line2 && !slow2 && !found_i.hit;
  assign rewind = again2_q || (valid2_q && (slow2 || (needs_line2 && !found_i.hit) || walk2));
  assign done2  = valid2_q && !rewind && from_queue2_q;

  always_ff @(posedge clk_i) begin
    if (valid2_q) begin
      want_o    <= '{want: miss2, bucket: looked2_q.bucket};
      want_op_q <= op2_q != OpRequest;
    end
    handed_on_q <= valid2_q && (slow2 || (walk2 && found_i.hit));
    walks_q <= mask_q[8];
    if (rst_i) begin
      want_o.want <= 1'b0;
      handed_on_q <= 1'b0;
    end
  end

  logic refresh_q;  // a write may need one: none begins before this node has opened
  always_ff @(posedge clk_i) refresh_q <= standing_i.opened;
  kv_e2_lookup i_lookup (
      .line_i(found_i.line),
      .op_i(op2_q),
      .looked_i(looked2_q),
      .first_way_i(first_way2_q),
      .refresh_i(refresh_q),
      .several_o(several2),
      .ways_o(ways2)
  );

  // ---- E3: the decision

  logic request3_q, op3_q, second_q, refreshed_q;

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
      looked3_q.filter_old <= records1.filter;
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
      .*,
      .others_i        (others),
      .alone_i         (alone_q),
      .walked_version_i(recovery_i.walked_version),
      .refresh_i       (!standing_i.leftovers && !recovery_i.refreshing && !refreshed_q),
      .valid_i         (valid3_q),
      .second_i        (second_q),
      .plan_i          (plan3_q),
      .looked_i        (looked3_q),
      .decision_o      (decision3)
  );

  assign op_done = valid3_q && op3_q;

  // ---- effects of the decision

  logic line_put_q, settle_q, pending_q, leftover_done_q;
  lane_request_t settled_q;
  filter_cell_t  pending_cell_q;
  always_ff @(posedge clk_i) begin
    sending_o <= '{
        now: decision3.now_valid,
        later: decision3.later_valid,
        deferred: decision3.defer,
        send: decision3.send
    };
    job_valid_o <= decision3.job_valid;
    job_o <= decision3.job;

    // The line is written a cycle after the job. In that cycle no changing request reads a line, and none is in E3.
    line_put_q <= decision3.header_put;
    line_write_o.write <= line_put_q;
    if (valid3_q) begin
      line_write_o.bucket <= looked3_q.bucket;
      line_write_o.way    <= looked3_q.ways.way;
      line_write_o.header <= way_bytes(decision3.header);
    end

    free_o <= '{valid: decision3.place_free, place: decision3.place_freed};
    settle_q <= decision3.settle;
    settled_q <= '{lane: looked3_q.note.lane, request: looked3_q.note.request};
    pending_q <= valid3_q && plan3_q.pending;
    pending_cell_q <= filter_cell(looked3_q.bucket);
    leftover_done_q <= decision3.leftover_done;
    refreshed_q <= decision3.refreshes;

    events_o <= '{
        received: (valid3_q && request3_q) || handed_on_q,
        kind: looked3_q.kv.kind,
        replied: decision3.replied,
        status: decision3.status,
        dropped_epoch: valid3_q && plan3_q.dropped_epoch,
        dropped_duplicate: decision3.dropped_duplicate
    };
    if (rst_i) begin
      sending_o.now <= 1'b0;
      sending_o.later <= 1'b0;
      sending_o.deferred <= 1'b0;
      job_valid_o <= 1'b0;
      line_put_q <= 1'b0;
      line_write_o.write <= 1'b0;
      free_o.valid <= 1'b0;
      settle_q <= 1'b0;
      pending_q <= 1'b0;
      leftover_done_q <= 1'b0;
      refreshed_q <= 1'b0;
      events_o.received <= 1'b0;
      events_o.replied <= 1'b0;
      events_o.dropped_epoch <= 1'b0;
      events_o.dropped_duplicate <= 1'b0;
    end
  end

  assign recovery_o = '{
          op_done: op_done,
          seen: decision3.seen,
          handed_on: handed_on_q,
          looked_in: want_o.bucket,
          head: head,
          settle: settle_q,
          settled: settled_q,
          pending: pending_q,
          pending_cell: pending_cell_q,
          leftover_done: leftover_done_q,
          refresh: refreshed_q,
          quiet:
          !
          valid1_q
          && !
          valid2_q
          && !
          again2_q
          && !
          valid3_q
          && !
          second_q
          &&
          calm
          && !
          want_o.want
          && !
          line_put_q
          && !
          line_write_o.write,
          window: in_use,
          in_flight: used
      };

  `ASSERT_NEXT(op_kept, recovery_i.op_valid && !op_done, recovery_i.op_valid && recovery_i.op.op == $past
               (recovery_i.op.op) && recovery_i.op.kv == $past(recovery_i.op.kv),
               "an operation changed before it was done")
  `ASSERT(second_alone, !(second_q && valid3_q), "two frames for one cycle")
  `ASSERT(one_plan, !valid3_q || $countones(plan3_q[$bits(plan_t)-1-:23]) <= 1, "two things to do at once")
  `ASSERT(place_used_once,
          !(decision3.place_free && ((decision3.header_put && !decision3.job.tag[TagNobody]) || decision3.window_put)),
          "a place was freed and used")
  `ASSERT(alone_with_its_line, !line_write_o.write || !lookup_o.read, "a line was asked for while one is written")
  `ASSERT(line_was_there, !decision3.header_put || $past(found_i.hit), "a line was changed that had not come")
  `ASSERT(line_kept, !line_put_q || !valid3_q, "a line's new content is overwritten before it is written")
  `ASSERT(
      operations_alone,
      !(valid1_q && asked1_q.changes && op1 != OpRequest) || !((valid2_q && changes2_q) || (valid3_q && changes3_q)),
      "an operation is among requests that change state")

endmodule
`default_nettype wire
