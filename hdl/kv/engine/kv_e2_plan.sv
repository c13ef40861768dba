// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's third stage: what is to be done, as far as that does not depend on the line; whether the line matters; and whether it is the
/// sequencer's business. Logic alone; sections 3 to 6 of docs/kv-protocol.md.
///
/// Behaviour: see plan_t. slow_o: a request that is the sequencer's business, of which nothing else is to be done.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_e2_plan
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
(
    input wire member_i,  // this node is one
    input wire alone_i,  // the only one
    input wire serving_i,
    input wire accept_i,
    input wire leftovers_i,  // there are some

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire op_e op_i,
    input wire line_i,  // an operation that needs the line
    input wire class_t class_i,
    input wire has_place_i,
    input wire leads_i,
    input wire known_i,
    input wire status_e refusal_i,
    input wire lane_t lane_i,
    input wire newer_lane_i,
    input wire same_lane_i,
    input wire noted_i,
    input wire waits_i,  // the bucket has notes
    input wire filter_leads_i,  // or a write that this node leads
    input wire matches_note_i,  // the commit
    input wire matches_window_i,  // the answer, or OpRetry
    input wire in_window_i,  // at the operation's place
    input wire place_used_i,  // at the request's, by a leftover
    input wire leftover_i,  // the window's
    input wire last_answer_i,
    input wire unanswered_i,  // somebody has not
    input wire busy_i,
    // verilator lint_on UNUSEDSIGNAL

    output plan_t plan_o,
    output logic  needs_line_o,
    output logic  slow_o
);

  class_t c;
  logic   refused;
  assign c       = class_i;
  assign refused = refusal_i != StatusOk;
  // Of a replicate: is it for a location that is leftover?
  assign slow_o  = known_i && (c.theirs || (c.replicate && op_i == OpRequest && has_place_i && leftovers_i && waits_i));

  // A client's write that was heard before is told again what it came to, if that is known and final. An `ok` always has a version:
  // without one, all that is known is that this request is over. With `store` not before memory has it: the first answer is on its way.
  logic heard, tells_again;
  assign heard = c.write && !refused && !newer_lane_i;
  assign tells_again = same_lane_i && !lane_i.in_flight && lane_i.settled
      && (lane_i.status != StatusOk || lane_i.version != '0) && (accept_i || !busy_i);

  logic write_waits;
  assign write_waits = waits_i || filter_leads_i || !has_place_i || place_used_i;

  always_comb begin
    plan_o = '0;
    plan_o.read = c.read && !refused && !waits_i;
    plan_o.pending = c.read && !refused && waits_i && !leads_i;
    plan_o.write = c.write && !refused && newer_lane_i && !write_waits;
    plan_o.tell      = (c.read && (refused || waits_i)) || (c.write && refused)
        || (c.write && !refused && newer_lane_i && write_waits) || (heard && tells_again)
        || c.ping || (c.lane && refused);
    plan_o.told = heard;
    plan_o.question = c.ping || c.lane;
    plan_o.tell_lane = c.lane && !refused;
    plan_o.status = StatusOk;
    if (refused) plan_o.status = refusal_i;
    else if (heard) plan_o.status = status_e'(lane_i.status);
    else if (c.read && waits_i) plan_o.status = leads_i ? StatusBusy : StatusPending;
    else if (c.write) plan_o.status = StatusBusy;

    plan_o.replicate = c.replicate && known_i && has_place_i;
    plan_o.commit            = (c.replicated && known_i && matches_window_i && last_answer_i)
        || (op_i == OpRetry && matches_window_i && !leftover_i && alone_i && serving_i);
    plan_o.collect = c.replicated && known_i && matches_window_i && !last_answer_i;
    plan_o.again = c.replicated && known_i && !matches_window_i;
    plan_o.settle = c.commit && known_i && matches_note_i;
    plan_o.fetch = c.fetch && known_i && leads_i;
    plan_o.dropped_epoch = c.between && (!known_i || (c.fetch && !leads_i));
    plan_o.dropped_duplicate = (heard && !tells_again) || (c.replicate && known_i && !has_place_i);

    plan_o.send = op_i == OpSend;
    plan_o.retry = op_i == OpRetry && matches_window_i && !leftover_i && unanswered_i;
    plan_o.replay = op_i == OpReplay && in_window_i;
    plan_o.keep = op_i == OpKeep && leads_i && member_i && !leftover_i;
    plan_o.drop = op_i == OpKeep && !(leads_i && member_i && !leftover_i);
    plan_o.leave = op_i == OpLeave;
    plan_o.ask = op_i == OpAsk && noted_i;
    plan_o.take = op_i == OpTake && !alone_i && !in_window_i;
    // Alone, nobody else can say that this epoch is still the last, but for the lease.
    plan_o.alone = op_i == OpTake && alone_i && serving_i;
    plan_o.resolve = op_i == OpResolve;
    plan_o.store = op_i == OpStore;
    plan_o.learn = op_i == OpLane;
    plan_o.clear = op_i == OpClear;
    plan_o.ends = op_i == OpRequest || consumes(op_i);
  end

  // As in the plan, but with less before it.
  assign needs_line_o = (c.read && !refused && !waits_i) || (c.write && !refused && newer_lane_i && !write_waits)
      || (c.replicate && known_i && has_place_i) || plan_o.commit || (c.fetch && known_i && leads_i) || line_i;

endmodule
`default_nettype wire
