// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's third stage: what is to be done, as far as that does not depend on the line; whether the line matters; and whether it is the
/// sequencer's business. Logic alone; sections 3 to 6 of docs/kv-protocol.md.
///
/// Behaviour: see plan_t. slow_o: a request that is the sequencer's business, of which nothing else is to be done.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_plan
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
(
    input wire member_i,  // this node is one
    input wire alone_i,  // the only one
    input wire serving_i,
    input wire accept_i,
    input wire dead_i,
    input wire leftovers_i,  // there are some

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire op_e op_i,
    input wire kv_t kv_i,
    input wire has_place_i,
    input wire leads_i,
    input wire known_i,
    input wire status_e refusal_i,
    input wire lane_t lane_i,
    input wire newer_lane_i,
    input wire same_lane_i,
    input wire note_t note_i,
    input wire filter_t filter_i,
    input wire matches_note_i,  // the commit
    input wire matches_window_i,  // the answer, or OpRetry
    input wire in_window_i,
    input wire leftover_i,  // the window's
    input wire last_answer_i,
    input wire unanswered_i,  // somebody has not
    input wire busy_i,
    // verilator lint_on UNUSEDSIGNAL

    output plan_t plan_o,
    output logic  needs_line_o,
    output logic  slow_o
);

  logic [4:0] kind;
  logic plain, refused, writes, replicates, replicateds, questions;
  assign kind        = kv_i.kind;
  assign plain       = op_i == OpAgain || (op_i == OpRequest && !dead_i);
  assign refused     = refusal_i != StatusOk;
  assign writes      = plain && is_write(kind);
  assign replicates  = plain && is_replicate(kind);
  assign replicateds = plain && is_replicated(kind);
  assign questions   = plain && (kind == KindPing || kind == KindLane);

  // Between nodes, and what of it is the sequencer's.
  logic between, theirs;
  always_comb begin
    between = 1'b0;
    theirs  = 1'b0;
    case (kind)
      KindReplicate, KindReplicateRemove: begin
        between = 1'b1;
        theirs  = has_place_i && leftovers_i && filter_i.notes != '0;  // is it for a location that is leftover?
      end
      KindReplicated, KindReplicatedRemove, KindCommit, KindFetch: between = 1'b1;
      KindEntry, KindEntered, KindEnter, KindLaneRecord: begin
        between = 1'b1;
        theirs  = 1'b1;
      end
      default: begin
      end
    endcase
  end
  assign slow_o = op_i == OpRequest && !dead_i && known_i && theirs;

  // A client's write that was heard before is told again what it came to, if that is known and final. An `ok` always has a version:
  // without one, all that is known is that this request is over. With `store` not before memory has it: the first answer is on its way.
  logic heard, tells_again;
  assign heard = writes && !refused && !newer_lane_i;
  assign tells_again = same_lane_i && !lane_i.in_flight && lane_i.settled
      && (lane_i.status != StatusOk || lane_i.version != '0) && (accept_i || !busy_i);

  logic read_waits, write_waits;
  assign read_waits  = filter_i.notes != '0;
  assign write_waits = filter_i != '0 || !has_place_i;

  logic reads;
  assign reads = plain && kind == KindRead;

  always_comb begin
    plan_o = '0;
    plan_o.read = reads && !refused && !read_waits;
    plan_o.pending = reads && !refused && read_waits && !leads_i;
    plan_o.write = writes && !refused && newer_lane_i && !write_waits;
    plan_o.tell      = (reads && (refused || read_waits)) || (writes && refused)
        || (writes && !refused && newer_lane_i && write_waits) || (heard && tells_again)
        || (questions && (refused || kind == KindPing));
    plan_o.told = heard;
    plan_o.question = questions;
    plan_o.tell_lane = questions && !refused && kind == KindLane;
    plan_o.status = StatusOk;
    if (refused) plan_o.status = refusal_i;
    else if (heard) plan_o.status = status_e'(lane_i.status);
    else if (reads && read_waits) plan_o.status = leads_i ? StatusBusy : StatusPending;
    else if (writes) plan_o.status = StatusBusy;

    plan_o.replicate = replicates && known_i && has_place_i;
    plan_o.commit            = (replicateds && known_i && matches_window_i && last_answer_i)
        || (op_i == OpRetry && matches_window_i && !leftover_i && alone_i && serving_i);
    plan_o.collect = replicateds && known_i && matches_window_i && !last_answer_i;
    plan_o.again = replicateds && known_i && !matches_window_i;
    plan_o.settle = plain && kind == KindCommit && known_i && matches_note_i;
    plan_o.fetch = plain && kind == KindFetch && known_i && leads_i;
    plan_o.dropped_epoch = plain && between && (!known_i || (kind == KindFetch && !leads_i));
    plan_o.dropped_duplicate = (heard && !tells_again) || (replicates && known_i && !has_place_i);

    plan_o.send = op_i == OpSend;
    plan_o.retry = op_i == OpRetry && matches_window_i && !leftover_i && unanswered_i;
    plan_o.replay = op_i == OpReplay && in_window_i;
    plan_o.keep = op_i == OpKeep && leads_i && member_i && !leftover_i;
    plan_o.drop = op_i == OpKeep && !(leads_i && member_i && !leftover_i);
    plan_o.leave = op_i == OpLeave;
    plan_o.ask = op_i == OpAsk && note_i.valid;
    plan_o.take = op_i == OpTake && !alone_i;
    // Alone, nobody else can say that this epoch is still the last, but for the lease.
    plan_o.alone = op_i == OpTake && alone_i && serving_i;
    plan_o.resolve = op_i == OpResolve;
    plan_o.store = op_i == OpStore;
    plan_o.learn = op_i == OpLane;
    plan_o.clear = op_i == OpClear;
    plan_o.ends = op_i == OpRequest || consumes(op_i);
  end

  assign needs_line_o = plan_o.read || plan_o.write || plan_o.replicate || plan_o.commit || plan_o.fetch
      || op_i == OpLeave || op_i == OpAsk || op_i == OpTake || op_i == OpStore || op_i == OpReplay || op_i == OpLook;

endmodule
`default_nettype wire
