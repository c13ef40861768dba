// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's last stage: turns a plan and the line's content into actions. Combinational. See sections 4 to 6 of
/// docs/design/kv-protocol.md.
/// Behaviour: no action while valid_i is low, except in a cycle of second_i, which follows decision_o.second.
/// That cycle sends the `commit` to the other members, or tells a client to wait for a refresh. `status` is valid
/// with `replied`. Outputs share fields: a frame, a lane's record, the line and the window use the same version
/// or key.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: looked_i is stable from valid_i to second_i.
module kv_e3_decide
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input wire kv_settings_t settings_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire [7:0] others_i,  // all members except this node
    input wire alone_i,  // there are no other members
    input wire [31:0] walked_version_i,
    input wire refresh_i,  // no refresh is in progress

    input wire valid_i,
    input wire second_i,
    input wire plan_t plan_i,
    input wire looked_t looked_i,
    output decision_t decision_o
);

  // verilator lint_off UNUSEDSIGNAL
  plan_t p;
  // verilator lint_on UNUSEDSIGNAL
  kv_t kv;
  logic [1:0] way;
  way_header_t header;
  assign p      = plan_i;
  assign kv     = looked_i.kv;
  assign way    = looked_i.ways.way;
  assign header = looked_i.ways.header;

  // ---- derived conditions

  logic alone, refused, begins, commits, lands, stores, value_there, stale, remains, fewer, empties;
  logic lags, refreshes, waits;  // lags: a way's version; refreshes: renews it now; waits: then tells the client so
  logic tells, crosses;  // tells: the client gets its answer; crosses: the replaced note is in another filter cell
  assign alone = alone_i;
  assign lags = p.write && looked_i.ways.lags;
  assign refreshes = lags && refresh_i && !second_i;
  assign waits = lags && second_i;
  assign refused = p.write && !lags && (looked_i.ways.no_key || looked_i.ways.mismatch || looked_i.ways.full);
  assign begins = p.write && !lags && !refused;
  assign commits = p.commit || (begins && alone);
  assign lands = p.replicate && looked_i.ways.fresh;
  assign stores = lands || (p.store && looked_i.ways.fresh) || (begins && alone) || (p.commit && !looked_i.leftover);
  assign value_there = header.length != '0 && header.present;
  // A leftover has no client to answer. The note that `crosses` is about was of an older, committed write.
  assign tells = commits && !(p.commit && looked_i.leftover);
  assign crosses = looked_i.note.valid && filter_cell(looked_i.note.bucket) != filter_cell(looked_i.bucket);
  assign stale = p.leave && !looked_i.ways.equal;
  assign remains = p.leave && looked_i.ways.equal;
  assign empties = p.drop || (p.resolve && looked_i.flag);

  // ---- versions and keys

  function automatic logic [31:0] following(logic [31:0] version);
    following    = version + 1'b1;
    following[0] = following[0] || version == '1;  // skips 0
  endfunction
  logic [31:0] next_version, version;
  assign next_version = not_older(
      looked_i.ways.newest[0], looked_i.ways.newest[1]
  ) ? following(
      looked_i.ways.newest[0]
  ) : following(
      looked_i.ways.newest[1]
  );
  logic version_header, version_next, version_walked, version_lane, version_request;
  assign version_header = (p.read || (refused && looked_i.ways.mismatch)) ? looked_i.ways.found : p.fetch;
  assign version_next = (begins && !looked_i.flag) || refreshes;
  assign version_walked = begins && looked_i.flag;
  assign version_lane    = (p.tell && p.told) || (p.tell_lane && looked_i.lane.settled) || p.settle || p.leave
      || p.alone
      || (p.resolve && !looked_i.flag);
  assign version_request = !(p.read || p.write || p.fetch || p.tell || p.tell_lane
      || p.settle || p.leave || p.alone
      || p.resolve || p.drop);
  assign version = ({32{version_header}} & header.version) | ({32{version_next}} & next_version)
                 | ({32{version_walked}} & walked_version_i)
                 | ({32{version_lane}} & looked_i.lane.version) | ({32{version_request}} & kv.version);

  logic [63:0] key;
  logic [31:0] lane_before;  // the number of this request, or of the one before
  assign lane_before = kv.request - 32'(empties || refreshes);
  logic [31:0] lane_request;
  // While a write may still be undone, report the request before it.
  assign lane_request = looked_i.lane.request - 32'(looked_i.lane.used && !looked_i.lane.settled);
  always_comb begin
    key = kv.key;
    if (p.fetch || p.ask || p.take || refreshes) key = header.key;
    // For a `ping` or `lane`, this field is not a key, even if the frame has one.
    if (p.question) key = {32'd0, p.tell_lane ? lane_request : 32'd0};
  end

  // ---- the frame

  logic from_memory, from_pool, has_value, to_client;
  assign from_memory = value_there && ((p.read && looked_i.ways.found) || (p.fetch && looked_i.filter.notes == '0)
      || p.replay);
  assign from_pool = (begins && !alone) || p.retry;
  assign has_value = from_memory || from_pool;
  assign to_client = p.read || refused || p.tell || p.tell_lane || (commits && !second_i) || waits;

  // The value of a frame, and the status of a window write about it.
  logic header_value;
  logic [10:0] length;
  logic summed;
  logic [15:0] sum;
  assign header_value = p.read || p.fetch || p.replay || p.take || lags;
  assign length       = header_value ? header.length : looked_i.length;
  assign summed       = header_value ? header.reserved[3] : looked_i.summed;
  assign sum          = header_value ? header.sum : looked_i.value_sum;

  // `place`: the write's place in the window. For a new write it is the place of its value. `value_place`: the place of
  // the value for memory or for followers.
  place_t place, value_place;
  assign place = p.write ? looked_i.place : kv.detail[5:0];
  assign value_place = p.commit || p.retry ? kv.detail[5:0] : looked_i.place;

  // The frame names the key's candidate. A stored way records its group, because the key's hash is not known here.
  logic names, group;
  assign names = (begins && !alone) || p.retry || p.replay || p.fetch || p.ask;
  assign group = p.fetch || p.ask || p.take || lags ? header.reserved[1] : looked_i.group;

  logic [4:0] status;
  always_comb begin
    status = StatusOk;
    if (p.tell) status = p.status;
    if (p.tell_lane) status = looked_i.lane.status;
    if (p.read && !looked_i.ways.found) status = StatusNoSuchKey;
    if (p.write) begin
      if (looked_i.ways.full) status = StatusTableFull;
      if (looked_i.ways.mismatch) status = StatusVersionMismatch;
      if (looked_i.ways.no_key) status = StatusNoSuchKey;
      if (lags) status = StatusBusy;
    end
  end

  always_comb begin
    decision_o.send            = '0;
    decision_o.send.to         = looked_i.to;
    decision_o.send.kv         = kv;
    decision_o.send.kv.epoch   = settings_i.staged.epoch[15:0];
    decision_o.send.kv.version = version;
    decision_o.send.kv.key     = key;
    // Most frames are answers.
    decision_o.send.kv.kind    = kv.kind | 5'd16;
    if (p.commit) decision_o.send.kv.kind = looked_i.window_kind | 5'd16;
    if (p.send) decision_o.send.kv.kind = kv.kind;
    if (p.again || (second_i && !lags)) decision_o.send.kv.kind = KindCommit;
    if ((begins && !alone) || p.retry || p.replay)
      decision_o.send.kv.kind = looked_i.removes ? KindReplicateRemove : KindReplicate;
    if (p.ask) decision_o.send.kv.kind = header.present ? KindReplicated : KindReplicatedRemove;

    // An answer repeats the candidate of its request, except a client's answer to a write. A message about a location
    // has the candidate of the location.
    if (names) decision_o.send.kv.candidate = {group, looked_i.bucket[9:8]};
    if ((p.commit && !second_i) || (p.fetch && !header.reserved[0])) decision_o.send.kv.candidate = '0;

    decision_o.send.kv.node = to_client && !p.question ? looked_i.leader : settings_i.staged.node;
    if (p.send) decision_o.send.kv.node = kv.node;

    if (to_client) decision_o.send.kv.detail = {3'b0, status};
    if (begins && !alone) decision_o.send.kv.detail = {way, place};
    // A leader's notes are leftovers, so a `fetch` of their cell gets `busy`.
    if (p.fetch)
      decision_o.send.kv.detail = looked_i.filter.notes != '0 ? {way, 1'b0, 5'(StatusBusy)}
                                           : {way, header.present, 5'(StatusOk)};

    if (begins || (second_i && !lags)) decision_o.send.nodes = others_i;
    if (p.retry) decision_o.send.nodes = others_i & ~looked_i.answered;
    if (p.send || p.ask || p.replay) decision_o.send.nodes = looked_i.nodes;

    decision_o.send.place  = value_place;
    decision_o.send.length = has_value ? length : '0;
    decision_o.send.summed = summed || !has_value;
    decision_o.send.sum    = has_value ? sum : '0;
  end

  logic [4:0] lane_status;
  logic unanswered;
  assign unanswered = (looked_i.answered & looked_i.nodes) == '0;

  always_comb begin
    decision_o.later_valid = valid_i && (from_memory && (!p.replay || unanswered));
    decision_o.now_valid   = second_i || (valid_i && (p.tell || p.tell_lane || p.again || p.send || p.retry || p.ask
        || refused || (begins && !alone)
        || ((p.read || p.fetch) && !from_memory) || (p.replay && !from_memory && unanswered)
        || (settings_i.direct.accept && (lands || tells))
        || (p.replicate && !looked_i.ways.fresh && (settings_i.direct.accept || !looked_i.busy))));
    decision_o.defer = valid_i && (!settings_i.direct.accept && (lands || tells));
    decision_o.second = valid_i && ((p.commit && !alone) || lags);
    decision_o.replied = valid_i && (p.read || refused || p.tell || p.tell_lane || tells || lags);
    decision_o.status = status;
    // The write is already stored. While memory is still writing it, the first frame's answer is to come.
    decision_o.dropped_duplicate = valid_i && (p.dropped_duplicate
        || (p.replicate && !looked_i.ways.fresh && !(settings_i.direct.accept || !looked_i.busy)));

    // ---- the table

    decision_o.header_put = valid_i && (stores || refreshes);
    decision_o.job_valid = valid_i && (stores || refreshes || p.clear || decision_o.later_valid);
    decision_o.job = '{
        write: stores || refreshes || p.clear,
        bucket: looked_i.bucket,
        way: way,
        length: stores ? (looked_i.removes ? '0 : looked_i.length) : p.clear ? '0 : header.length,
        has_value: stores && !looked_i.removes && looked_i.length != '0,
        has_header: stores || refreshes || p.clear,
        clears: p.clear,
        place: value_place,
        tag: '0
    };
    decision_o.job.tag = job_tag_t'({decision_o.defer, p.clear || refreshes, decision_o.job.place});
    decision_o.header = '{
        key: key,
        version: version,
        present: lags ? header.present : !looked_i.removes,
        reserved: {summed, 1'b0, group, looked_i.written},
        length: looked_i.removes && !lags ? '0 : length,
        sum: sum
    };
    if (p.clear) decision_o.header = '0;

    // ---- the lane's record

    decision_o.lane_put = valid_i && ((p.write && !lags)
        || ((commits || p.settle || p.drop || p.leave || p.alone || p.resolve) && looked_i.same_lane
            && !(p.drop && looked_i.leftover))
        || ((lands || p.learn) && looked_i.newer_lane)
    // A leftover written again in this epoch stays unsettled until its commit, even if the record says settled.
    || (lands && looked_i.same_lane));
    // Status of an unsettled record. A leftover's status is busy, since it may have been committed in an epoch of which
    // the asking node was not a member.
    lane_status = StatusOk;
    if (p.learn) lane_status = kv.key[4:0];
    if (refused) lane_status = status;
    if (remains) lane_status = StatusBusy;
    decision_o.lane = '{
        // The request had no effect, so the client's next try counts as new.
        request:
        lane_before,
        version: version,
        status: lane_status,
        in_flight: begins && !alone,
        settled: !((begins && !alone) || lands || remains),
        used: 1'b1
    };

    // ---- notes, and writes in progress in the bucket

    // A refresh is noted as a write of the client's previous request, for which no client waits. This node has no other
    // notes of its own. If this node is alone, the refresh is committed at once.
    decision_o.note_put = valid_i && (lands || (refreshes && !alone) || p.settle || p.leave);
    decision_o.note_node = p.write ? settings_i.staged.node : kv.node;
    decision_o.note = '{
        valid: lands || refreshes,
        bucket: looked_i.bucket,
        way: way,
        version: version,
        lane: kv.client,
        request: lane_before
    };
    decision_o.refreshes = valid_i && refreshes && !alone;
    // A place is reused only after a commit, so settle the old note's lane, unless this frame takes its record.
    decision_o.settle = valid_i && (lands && looked_i.note.valid
        && !(looked_i.note.lane == kv.client && (looked_i.newer_lane || looked_i.same_lane)));

    fewer = p.settle || stale || p.alone || (p.resolve && looked_i.nodes[0]) || (p.commit && looked_i.leftover);
    decision_o.filter = looked_i.filter;
    decision_o.filter_put = 1'b0;
    if (begins && !alone) begin
      decision_o.filter_put   = 1'b1;
      decision_o.filter.leads = 1'b1;
    end
    if ((p.commit || p.drop) && !looked_i.leftover) begin
      decision_o.filter_put   = 1'b1;
      decision_o.filter.leads = 1'b0;
    end
    if (fewer) begin
      decision_o.filter_put   = 1'b1;
      decision_o.filter.notes = looked_i.filter.notes - 1'b1;
    end
    if ((refreshes && !alone) || (lands && (!looked_i.note.valid || crosses))) begin
      decision_o.filter_put   = 1'b1;
      decision_o.filter.notes = looked_i.filter.notes + 1'b1;
    end
    decision_o.filter_put = decision_o.filter_put && valid_i;
    decision_o.filter_old_put = valid_i && lands && crosses;
    decision_o.filter_old = looked_i.filter_old;
    decision_o.filter_old.notes = looked_i.filter_old.notes - 1'b1;

    // ---- the window

    decision_o.window_place = place;
    decision_o.window_put = valid_i && ((begins && !alone) || p.take);
    decision_o.window = '{
        to: looked_i.to,
        kind: kv.kind,
        key: key,
        lane: kv.client,
        request: kv.request,
        bucket: looked_i.bucket,
        group: group,
        way: way,
        version: version,
        remove: p.take ? !header.present : looked_i.removes,
        length: p.take && !header.present ? '0 : length,
        summed: summed,
        sum: sum,
        leftover: p.take
    };
    decision_o.window_clear = valid_i && (p.commit || p.drop);
    decision_o.answered_put = valid_i && (decision_o.window_put || p.keep || p.collect);
    decision_o.answered = p.collect ? looked_i.answered | 8'd1 << kv.node : '0;
    decision_o.leftover_done = valid_i && ((p.commit && looked_i.leftover) || p.alone);

    // ---- the request's place

    decision_o.place_free = valid_i
        && ((p.ends && looked_i.has_place && !stores && !begins) || (p.drop && !looked_i.leftover));
    decision_o.place_freed = p.drop ? kv.detail[5:0] : looked_i.place;

    decision_o.seen.noted = looked_i.note.valid;
    decision_o.seen.note = '{
        bucket: looked_i.note.bucket,
        way: looked_i.note.way,
        version: looked_i.note.version,
        lane: looked_i.note.lane,
        request: looked_i.note.request
    };
    decision_o.seen.window = looked_i.window;
    decision_o.seen.same = looked_i.ways.same;
    decision_o.seen.settled = stale || p.alone || p.take;
    decision_o.seen.found = looked_i.ways.found;
    decision_o.seen.free = looked_i.ways.free;
    decision_o.seen.next = next_version;
    decision_o.seen.noted_here = looked_i.filter.notes != '0;
    decision_o.seen.leads_here = looked_i.filter.leads;
  end

endmodule
`default_nettype wire
