// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's last stage: from a request and all that is known of it to what is to be done. Logic alone; sections 4
/// to 6 of docs/kv-protocol.md are here.
///
/// Behaviour: while valid_i is low nothing is to be done. status goes with replied.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_decide
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
(
    input wire [2:0] node_i,
    input wire [7:0] others_i,  // members but for this node
    input wire member_i,  // this node is one
    input wire serving_i,
    input wire accept_i,
    input wire leftovers_i,  // there are some
    input wire [15:0] epoch_i,
    input wire [Places-1:0] window_i,  // places in flight

    input wire valid_i,
    input wire looked_t looked_i,
    output decision_t decision_o
);

  logic [4:0] kind;
  op_e op;
  kv_t kv;
  assign kv   = looked_i.request.kv;
  assign kind = kv.kind;
  assign op   = looked_i.op;

  // Where the key is, or would go.
  logic found;
  logic [1:0] found_way, first_way, new_way, way;
  way_header_t header;  // of way
  logic [31:0] newest, next_version;
  assign found     = looked_i.match != '0;
  assign found_way = {looked_i.match[3] | looked_i.match[2], looked_i.match[3] | looked_i.match[1]};
  assign first_way = first_way_of(looked_i.request.hash);
  always_comb begin
    new_way = first_way;
    if (!looked_i.free[first_way]) begin
      for (int i = 3; i >= 0; i--) if (looked_i.free[i]) new_way = 2'(i);
    end
    if (op == OpRetry) way = looked_i.window.way;
    else if (is_replicate(kind) || op != OpRequest) way = kv.detail[7:6];
    else if (kind == KindFetch) way = kv.key[1:0];
    else if (is_replicated(kind)) way = looked_i.window.way;
    else way = found ? found_way : new_way;
  end
  assign header       = way_of(looked_i.line, way);
  assign newest       = newer(looked_i.newest[0], looked_i.newest[1]) ? looked_i.newest[0] : looked_i.newest[1];
  assign next_version = newest == '1 ? 32'd1 : newest + 1'b1;

  // How a client's write ends, if it does not go on to the followers.
  logic conditional, removes;
  status_e outcome;
  logic [31:0] outcome_version;
  assign conditional = kind == KindWriteIf || kind == KindRemoveIf;
  assign removes     = kind == KindRemove || kind == KindRemoveIf;
  always_comb begin
    outcome = StatusOk;
    outcome_version = '0;
    if (removes && !found) outcome = StatusNoSuchKey;
    else if (conditional && kv.version != (found ? header.version : '0)) begin
      outcome = StatusVersionMismatch;
      outcome_version = found ? header.version : '0;
    end else if (!found && looked_i.free == '0) outcome = StatusTableFull;
  end

  // Frames.
  function automatic kv_t answer(kv_t request, logic [2:0] leader, logic [15:0] epoch, logic [4:0] status,
                                 logic [31:0] version);
    answer         = request;
    answer.kind    = request.kind | 5'd16;
    answer.node    = leader;
    answer.detail  = {3'b0, status};
    answer.epoch   = epoch;
    answer.version = version;
  endfunction
  function automatic send_t frame(endpoint_t to, kv_t what);
    frame        = '0;
    frame.to     = to;
    frame.kv     = what;
    frame.source = ValueNone;
    frame.summed = 1'b1;
  endfunction

  logic commits, commits_alone, stores, empties, lasting_notes;
  logic [7:0] fewer_notes;
  assign fewer_notes   = looked_i.filter.notes - 1'b1;
  assign lasting_notes = looked_i.filter.notes == '1;  // it may be more
  way_header_t new_header;
  logic fresh, leaves_note;  // a replicate that is not there yet; the note at its place is of another cell
  assign fresh       = newer(kv.version, header.version) || looked_i.flag;
  assign leaves_note = looked_i.note.valid && looked_i.note.bucket[11:0] != looked_i.bucket[11:0];

  always_comb begin
    decision_o = '0;
    commits = 1'b0;
    commits_alone = 1'b0;
    stores = 1'b0;
    empties = 1'b0;
    decision_o.status = StatusOk;
    decision_o.now = frame(looked_i.request.from, kv);
    decision_o.second = frame(looked_i.request.from, kv);
    decision_o.later = frame(looked_i.request.from, kv);
    decision_o.later.source = ValueMemory;
    decision_o.later.length = header.length;
    decision_o.later.sum = header.sum;
    decision_o.later.summed = header.reserved[3];
    decision_o.job.bucket = looked_i.bucket;
    decision_o.job.way = way;
    decision_o.job.place = looked_i.request.place;
    decision_o.place_freed = looked_i.request.place;
    new_header = header;
    decision_o.lane = looked_i.lane;
    decision_o.note = looked_i.note;
    decision_o.filter = looked_i.filter;
    decision_o.filter_old = looked_i.filter_old;
    decision_o.window = looked_i.window;
    decision_o.answered = looked_i.answered;
    decision_o.window_in_use = window_i;
    decision_o.window_place = looked_i.request.place;

    decision_o.seen.noted = looked_i.note.valid;
    decision_o.seen.note = '{
        bucket: looked_i.note.bucket,
        way: looked_i.note.way,
        version: looked_i.note.version,
        lane: looked_i.note.lane,
        request: looked_i.note.request
    };
    decision_o.seen.window = '{
        bucket: looked_i.window.bucket,
        way: looked_i.window.way,
        version: looked_i.window.version,
        lane: looked_i.window.reply.client,
        request: looked_i.window.reply.request
    };
    decision_o.seen.same = kv.detail[5] ? looked_i.match[way] : looked_i.free[way];

    if (valid_i && looked_i.dead) begin
      decision_o.place_free = looked_i.request.has_place;
    end else if (valid_i && op != OpRequest && op != OpAgain) begin
      // For the sequencer.
      decision_o.window_place = looked_i.place;
      case (op)
        OpSend: begin
          decision_o.now_valid = 1'b1;
          decision_o.now.nodes = looked_i.nodes;
        end

        OpRetry, OpReplay: begin
          decision_o.now.kv         = looked_i.window.reply;
          decision_o.now.kv.kind    = looked_i.window.remove ? KindReplicateRemove : KindReplicate;
          decision_o.now.kv.node    = node_i;
          decision_o.now.kv.detail  = {looked_i.window.way, looked_i.place};
          decision_o.now.kv.epoch   = epoch_i;
          decision_o.now.kv.version = looked_i.window.version;
          decision_o.now.source     = ValuePool;
          decision_o.now.place      = looked_i.place;
          decision_o.now.length     = looked_i.window.length;
          decision_o.now.summed     = looked_i.window.summed;
          decision_o.now.sum        = looked_i.window.sum;
          if (op == OpRetry) begin
            // Again, to those who have not answered; if there is nobody else, it is committed.
            decision_o.now.nodes = others_i & ~looked_i.answered;
            decision_o.now_valid = looked_i.matches_window && !looked_i.window.leftover && decision_o.now.nodes != '0;
            commits = looked_i.matches_window && !looked_i.window.leftover && others_i == '0 && serving_i;
          end else begin
            decision_o.now.nodes = 8'd1 << kv.node;
            decision_o.later = decision_o.now;
            decision_o.later.source = ValueMemory;
            decision_o.later_valid  = window_i[looked_i.place] && !looked_i.answered[kv.node]
                && looked_i.window.length != '0;
            decision_o.now_valid    = window_i[looked_i.place] && !looked_i.answered[kv.node]
                && looked_i.window.length == '0;
            decision_o.job_valid = decision_o.later_valid;
            decision_o.job.length = looked_i.window.length;
          end
        end

        OpKeep: begin
          decision_o.answered = '0;
          decision_o.answered_put = 1'b1;
          if (!looked_i.leads || !member_i || looked_i.window.leftover) begin
            decision_o.window_in_use[looked_i.place] = 1'b0;
            decision_o.place_free                    = !looked_i.window.leftover;
            decision_o.place_freed                   = looked_i.place;
            decision_o.filter_put                    = !looked_i.window.leftover;
            decision_o.filter.leads                  = 1'b0;
            decision_o.lane_put                      = looked_i.same_lane && !looked_i.window.leftover;
            empties                                  = 1'b1;
          end
        end

        OpLeave: begin
          // Of several notes of one location only that with the stored version counts: the older ones were committed.
          decision_o.seen.settled = header.version != looked_i.note.version;
          decision_o.note_put     = 1'b1;
          decision_o.note.valid   = 1'b0;
          decision_o.filter_put   = decision_o.seen.settled && !lasting_notes;
          decision_o.filter.notes = fewer_notes;
          decision_o.lane_put     = decision_o.seen.settled && looked_i.same_lane;
          decision_o.lane.settled = 1'b1;
        end

        OpAsk: begin
          decision_o.now_valid      = looked_i.note.valid;
          decision_o.now.nodes      = 8'd1 << kv.node;
          decision_o.now.kv.kind    = header.present ? KindReplicated : KindReplicatedRemove;
          decision_o.now.kv.node    = node_i;
          decision_o.now.kv.epoch   = epoch_i;
          decision_o.now.kv.client  = looked_i.note.lane;
          decision_o.now.kv.request = looked_i.note.request;
          decision_o.now.kv.version = looked_i.note.version;
          decision_o.now.kv.key     = header.key;
        end

        OpTake: begin
          decision_o.window.reply         = kv;
          decision_o.window.reply.version = kv.version;
          decision_o.window.reply.key     = header.key;
          decision_o.window.way           = way;
          decision_o.window.version       = kv.version;
          decision_o.window.remove        = !header.present;
          decision_o.window.length        = header.present ? header.length : '0;
          decision_o.window.summed        = header.reserved[3];
          decision_o.window.sum           = header.sum;
          decision_o.window.bucket        = looked_i.bucket;
          decision_o.window.leftover      = 1'b1;
          decision_o.answered             = '0;
          if (others_i != '0) begin
            decision_o.window_put                    = 1'b1;
            decision_o.answered_put                  = 1'b1;
            decision_o.window_in_use[looked_i.place] = 1'b1;
          end else begin
            // Alone, nobody else can say that this epoch is still the last.
            decision_o.seen.settled  = serving_i;
            decision_o.leftover_done = serving_i;
            decision_o.filter_put    = serving_i && !lasting_notes;
            decision_o.filter.notes  = fewer_notes;
            decision_o.lane_put      = serving_i && looked_i.same_lane;
            decision_o.lane.settled  = 1'b1;
          end
        end

        OpResolve: begin
          decision_o.filter_put   = looked_i.nodes[0] && !lasting_notes;
          decision_o.filter.notes = fewer_notes;
          decision_o.lane_put     = looked_i.same_lane;
          decision_o.lane.settled = 1'b1;
          empties                 = looked_i.flag;
        end

        OpStore: begin
          stores = fresh;
          decision_o.place_free = looked_i.request.has_place && !fresh;
          new_header = '{
              key: kv.key,
              version: kv.version,
              present: kv.detail[5],
              reserved: {looked_i.request.summed, 3'b0},
              length: kv.detail[5] ? looked_i.request.length : '0,
              sum: looked_i.request.sum
          };
        end

        OpLane: begin
          decision_o.lane_put = looked_i.newer_lane;
          decision_o.lane = '{
              request: kv.request,
              version: kv.version,
              status: kv.key[4:0],
              in_flight: 1'b0,
              settled: 1'b1,
              used: 1'b1
          };
        end

        OpFree: decision_o.place_free = looked_i.request.has_place;

        OpClear: decision_o.job_valid = 1'b1;

        default: begin
        end
      endcase

      // The request had no effect: the client's next try is new.
      if (empties) begin
        decision_o.lane = '{
            request: kv.request - 1'b1,
            version: '0,
            status: StatusOk,
            in_flight: 1'b0,
            settled: 1'b1,
            used: 1'b1
        };
      end
    end else if (valid_i) begin
      decision_o.place_free = looked_i.request.has_place;
      case (kind)
        KindPing, KindLane: begin
          decision_o.now_valid = 1'b1;
          decision_o.replied = 1'b1;
          decision_o.status = looked_i.refusal;
          decision_o.now.kv = answer(kv, node_i, epoch_i, decision_o.status, '0);
          if (kind == KindLane && decision_o.status == StatusOk) begin
            // Of a write that may yet be taken back, the request before it.
            decision_o.now.kv.key = {32'd0, looked_i.lane.request - 32'(looked_i.lane.used && !looked_i.lane.settled)};
            decision_o.now.kv.version = looked_i.lane.settled ? looked_i.lane.version : '0;
            decision_o.now.kv.detail = {3'b0, looked_i.lane.settled ? looked_i.lane.status : 5'(StatusOk)};
          end
        end

        KindRead: begin
          decision_o.replied = 1'b1;
          decision_o.status = looked_i.refusal != StatusOk ? looked_i.refusal
                  : looked_i.filter.notes != '0 ? (looked_i.leads ? StatusBusy : StatusPending)
                  : found ? StatusOk : StatusNoSuchKey;
          decision_o.now.kv = answer(kv, looked_i.leader, epoch_i, decision_o.status,
                                     decision_o.status == StatusOk ? header.version : '0);
          decision_o.later.kv = decision_o.now.kv;
          decision_o.later_valid = decision_o.status == StatusOk && header.length != '0;
          decision_o.now_valid = !decision_o.later_valid;
          decision_o.job_valid = decision_o.later_valid;
          decision_o.job.length = header.length;
          decision_o.pending = decision_o.status == StatusPending;
        end

        KindWrite, KindWriteIf, KindRemove, KindRemoveIf: begin
          if (looked_i.refusal != StatusOk) decision_o.status = looked_i.refusal;
          else if (!looked_i.newer_lane) decision_o.status = looked_i.lane.status;
          else if (looked_i.filter != '0 || !looked_i.request.has_place) decision_o.status = StatusBusy;
          else decision_o.status = outcome;
          decision_o.now.kv = answer(kv, looked_i.leader, epoch_i, decision_o.status, '0);
          if (looked_i.refusal == StatusOk && !looked_i.newer_lane) begin
            // Heard before: told again what it came to, if that is known and final.
            // With `store` not before memory has it: the first answer is on its way.
            // An `ok` always has a version: without one, all that is known is that this request is over.
            decision_o.replied           = looked_i.same_lane && !looked_i.lane.in_flight && looked_i.lane.settled
                && (looked_i.lane.status != StatusOk || looked_i.lane.version != '0) && (accept_i || !looked_i.busy);
            decision_o.dropped_duplicate = !decision_o.replied;
            decision_o.now.kv.version = looked_i.lane.version;
            decision_o.now_valid = decision_o.replied;
          end else if (decision_o.status != StatusOk) begin
            decision_o.now_valid = 1'b1;
            decision_o.replied   = 1'b1;
            if (looked_i.refusal == StatusOk && decision_o.status == outcome) begin
              decision_o.lane_put = 1'b1;
              decision_o.lane = '{
                  request: kv.request,
                  version: outcome_version,
                  status: outcome,
                  in_flight: 1'b0,
                  settled: 1'b1,
                  used: 1'b1
              };
              decision_o.now.kv.version = outcome_version;
            end
          end else begin
            // The write begins.
            decision_o.place_free = 1'b0;
            decision_o.lane_put = 1'b1;
            decision_o.lane = '{
                request: kv.request,
                version: next_version,
                status: StatusOk,
                in_flight: 1'b1,
                settled: 1'b0,
                used: 1'b1
            };
            decision_o.window_put = 1'b1;
            decision_o.window.to = looked_i.request.from;
            decision_o.window.reply = kv;
            decision_o.window.reply.version = next_version;
            decision_o.window.way = way;
            decision_o.window.version = next_version;
            decision_o.window.remove = removes;
            decision_o.window.length = looked_i.request.length;
            decision_o.window.summed = looked_i.request.summed;
            decision_o.window.sum = looked_i.request.sum;
            decision_o.window.bucket = looked_i.bucket;
            decision_o.window.leftover = 1'b0;
            decision_o.answered_put = 1'b1;
            decision_o.answered = '0;
            commits_alone = others_i == '0;
            if (!commits_alone) begin
              decision_o.window_in_use[looked_i.request.place] = 1'b1;
              decision_o.filter_put                            = 1'b1;
              decision_o.filter.leads                          = 1'b1;
              decision_o.now_valid                             = 1'b1;
              decision_o.now.nodes                             = others_i;
              decision_o.now.kv.kind                           = removes ? KindReplicateRemove : KindReplicate;
              decision_o.now.kv.node                           = node_i;
              decision_o.now.kv.detail                         = {way, looked_i.request.place};
              decision_o.now.kv.version                        = next_version;
              decision_o.now.source                            = ValuePool;
              decision_o.now.place                             = looked_i.request.place;
              decision_o.now.length                            = looked_i.request.length;
              decision_o.now.summed                            = looked_i.request.summed;
              decision_o.now.sum                               = looked_i.request.sum;
            end
          end
        end

        KindReplicate, KindReplicateRemove: begin
          decision_o.now.kv      = kv;
          decision_o.now.kv.kind = kind | 5'd16;
          decision_o.now.kv.node = node_i;
          if (!looked_i.known) decision_o.dropped_epoch = 1'b1;
          else if (!looked_i.request.has_place) decision_o.dropped_duplicate = 1'b1;
          else if (op == OpRequest && leftovers_i && looked_i.filter.notes != '0) begin
            decision_o.slow       = 1'b1;  // is it for a location that is leftover?
            decision_o.place_free = 1'b0;
          end else if (fresh) begin
            new_header = '{
                key: kv.key,
                version: kv.version,
                present: kind == KindReplicate,
                reserved: {looked_i.request.summed, 3'b0},
                length: looked_i.request.length,
                sum: looked_i.request.sum
            };
            stores = 1'b1;
            decision_o.place_free = 1'b0;
            decision_o.note_put = 1'b1;
            decision_o.note = '{
                valid: 1'b1,
                bucket: looked_i.bucket,
                way: way,
                version: kv.version,
                lane: kv.client,
                request: kv.request
            };
            decision_o.lane_put = looked_i.newer_lane;
            decision_o.lane = '{
                request: kv.request,
                version: kv.version,
                status: StatusOk,
                in_flight: 1'b0,
                settled: 1'b0,
                used: 1'b1
            };
            decision_o.filter_put = !looked_i.note.valid || leaves_note;
            decision_o.filter.notes = looked_i.filter.notes + 8'(looked_i.filter.notes != '1);
            decision_o.filter_old_put = leaves_note && looked_i.filter_old.notes != '1;
            decision_o.filter_old.notes = looked_i.filter_old.notes - 1'b1;
            // The leader uses a place again after a commit only.
            decision_o.settle = looked_i.note.valid && looked_i.note.lane != kv.client;
            decision_o.now_valid = accept_i;
            decision_o.defer = !accept_i;
          end else begin
            // It is here already. While memory is still at it, the first one's answer will come.
            decision_o.now_valid = accept_i || !looked_i.busy;
            decision_o.dropped_duplicate = !decision_o.now_valid;
          end
        end

        KindReplicated, KindReplicatedRemove: begin
          decision_o.window_place = looked_i.place;
          if (!looked_i.known) decision_o.dropped_epoch = 1'b1;
          else if (!looked_i.matches_window) begin
            // Committed before: tell this one again.
            decision_o.now_valid   = 1'b1;
            decision_o.now.kv.kind = KindCommit;
            decision_o.now.kv.node = node_i;
          end else begin
            decision_o.answered_put = 1'b1;
            decision_o.answered     = looked_i.answered | 8'd1 << kv.node;
            commits                 = looked_i.last_answer;
          end
        end

        KindCommit: begin
          if (!looked_i.known) decision_o.dropped_epoch = 1'b1;
          else if (looked_i.note.valid && looked_i.note.version == kv.version && looked_i.note.bucket == looked_i.bucket
                   && looked_i.note.lane == kv.client && looked_i.note.request == kv.request) begin
            decision_o.note_put     = 1'b1;
            decision_o.note.valid   = 1'b0;
            decision_o.filter_put   = !lasting_notes;
            decision_o.filter.notes = fewer_notes;
            decision_o.lane_put     = looked_i.same_lane;
            decision_o.lane.settled = 1'b1;
          end
        end

        KindFetch: begin
          if (!looked_i.known || !looked_i.leads) decision_o.dropped_epoch = 1'b1;
          else begin
            decision_o.now.kv         = kv;
            decision_o.now.kv.kind    = KindEntry;
            decision_o.now.kv.node    = node_i;
            decision_o.now.kv.key     = header.key;
            decision_o.now.kv.version = header.version;
            decision_o.now.kv.detail  = {way, header.present, 5'(StatusOk)};
            decision_o.later.kv       = decision_o.now.kv;
            decision_o.later_valid    = header.present && header.length != '0 && looked_i.filter.notes == '0;
            decision_o.now_valid      = !decision_o.later_valid;
            decision_o.job_valid      = decision_o.later_valid;
            decision_o.job.length     = header.length;
            // What this node leads it has no notes of, but of former epochs.
            if (looked_i.filter.notes != '0) decision_o.now.kv.detail = {way, 1'b0, 5'(StatusBusy)};
          end
        end

        KindEntry, KindEntered, KindEnter, KindLaneRecord: begin
          decision_o.slow          = looked_i.known;
          decision_o.dropped_epoch = !looked_i.known;
          decision_o.place_free    = looked_i.request.has_place && !looked_i.known;
        end

        default: begin
        end
      endcase
    end

    if (commits || commits_alone) begin
      // Every member has it: it takes effect. A leftover did so long ago.
      new_header = '{
          key: decision_o.window.reply.key,
          version: decision_o.window.version,
          present: !decision_o.window.remove,
          reserved: {decision_o.window.summed, 3'b0},
          length: decision_o.window.remove ? '0 : decision_o.window.length,
          sum: decision_o.window.sum
      };
      stores = !decision_o.window.leftover;
      decision_o.job.place = decision_o.window_place;
      decision_o.lane_put = commits_alone || looked_i.same_lane;
      decision_o.lane = '{
          request: decision_o.window.reply.request,
          version: decision_o.window.version,
          status: StatusOk,
          in_flight: 1'b0,
          settled: 1'b1,
          used: 1'b1
      };
      decision_o.window_put = 1'b0;
      decision_o.window_in_use[decision_o.window_place] = 1'b0;
      decision_o.filter_put = commits && !(decision_o.window.leftover && lasting_notes);
      if (decision_o.window.leftover) decision_o.filter.notes = fewer_notes;
      else decision_o.filter.leads = 1'b0;
      decision_o.now = frame(decision_o.window.to,
                             answer(decision_o.window.reply, node_i, epoch_i, StatusOk, decision_o.window.version));
      decision_o.now_valid = accept_i && stores;
      decision_o.defer = !accept_i && stores;
      decision_o.replied = stores;
      decision_o.status = StatusOk;
      decision_o.second_valid = commits && others_i != '0;
      decision_o.second.nodes = others_i;
      decision_o.second.kv = kv;
      decision_o.second.kv.kind = KindCommit;
      decision_o.second.kv.node = node_i;
      decision_o.leftover_done = decision_o.window.leftover;
    end

    decision_o.line_put = stores;
    if (stores) begin
      decision_o.job_valid  = 1'b1;
      decision_o.job.length = new_header.present ? new_header.length : '0;
    end
    decision_o.job.write          = stores || op == OpClear;
    decision_o.job.has_line       = stores || op == OpClear;
    decision_o.job.has_value      = stores && new_header.present && new_header.length != '0;
    decision_o.job.tag            = job_tag_t'({op == OpClear, decision_o.job.place});
    decision_o.line               = looked_i.line;
    decision_o.line[128*way+:128] = way_bytes(new_header);
    if (op == OpClear) decision_o.line = '0;
  end

endmodule
`default_nettype wire
