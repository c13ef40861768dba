// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's third stage: decides the action as far as it does not depend on the line, whether the line
/// matters, and whether kv_recovery handles the request. Combinational. Sections 3 to 6 of
/// docs/design/kv-protocol.md.
/// Behaviour: see plan_t. `slow_o`: kv_recovery handles the request, and nothing else is done here.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_e2_plan
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
(
    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire kv_settings_t settings_i,
    input wire standing_t standing_i,
    input wire member_i,  // this node is a member
    input wire alone_i,  // it is the only member

    input wire op_e op_i,
    input wire class_t class_i,
    input wire judged_t judged_i,
    input wire compared_t compared_i,
    input wire looked_t looked_i,  // without the line's results and late signals
    // verilator lint_on UNUSEDSIGNAL
    input wire same_lane_i,
    input wire waits_i,  // the bucket has notes
    input wire last_answer_i,
    input wire busy_i,

    output plan_t plan_o,
    output logic  needs_line_o,
    output logic  slow_o
);

  class_t c;
  logic   refused;
  assign c = class_i;
  assign refused = judged_i.refusal != StatusOk;
  // kv_recovery also handles a `replicate` whose location may be leftover.
  assign slow_o = judged_i.known
      && (c.theirs || (c.replicate && op_i == OpRequest && looked_i.has_place && standing_i.leftovers && waits_i));

  // A client's repeated write gets its recorded outcome again, if that is known and final. An `ok` always has a
  // version; without one, only the end of the request is known. With `store` there is no answer until memory has the
  // value, because the first answer is still to come.
  logic heard, tells_again;
  assign heard = c.write && !refused && !looked_i.newer_lane;
  assign tells_again = same_lane_i && !looked_i.lane.in_flight && looked_i.lane.settled
      && (looked_i.lane.status != StatusOk || looked_i.lane.version != '0) && (settings_i.direct.accept || !busy_i);

  logic write_waits;
  assign write_waits = waits_i || looked_i.filter.leads || !looked_i.has_place || compared_i.place_used;

  always_comb begin
    plan_o = '0;
    plan_o.read = c.read && !refused && !waits_i;
    plan_o.pending = c.read && !refused && waits_i && !judged_i.leads;
    plan_o.write = c.write && !refused && looked_i.newer_lane && !write_waits;
    plan_o.tell      = (c.read && (refused || waits_i)) || (c.write && refused)
        || (c.write && !refused && looked_i.newer_lane && write_waits) || (heard && tells_again)
        || c.ping || (c.lane && refused);
    plan_o.told = heard;
    plan_o.question = c.ping || c.lane;
    plan_o.tell_lane = c.lane && !refused;
    plan_o.status = StatusOk;
    if (refused) plan_o.status = judged_i.refusal;
    else if (heard) plan_o.status = status_e'(looked_i.lane.status);
    else if (c.read && waits_i) plan_o.status = judged_i.leads ? StatusBusy : StatusPending;
    else if (c.write) plan_o.status = StatusBusy;

    plan_o.replicate = c.replicate && judged_i.known && looked_i.has_place;
    plan_o.commit            = (c.replicated && judged_i.known && compared_i.matches_window && last_answer_i)
        || (op_i == OpRetry && compared_i.matches_window && !looked_i.leftover && alone_i && standing_i.serving);
    plan_o.collect = c.replicated && judged_i.known && compared_i.matches_window && !last_answer_i;
    plan_o.again = c.replicated && judged_i.known && !compared_i.matches_window;
    plan_o.settle = c.commit && judged_i.known && compared_i.matches_note;
    plan_o.fetch = c.fetch && judged_i.known && judged_i.leads;
    plan_o.dropped_epoch = c.between && (!judged_i.known || (c.fetch && !judged_i.leads));
    plan_o.dropped_duplicate = (heard && !tells_again) || (c.replicate && judged_i.known && !looked_i.has_place);

    plan_o.send = op_i == OpSend;
    plan_o.retry = op_i == OpRetry && compared_i.matches_window && !looked_i.leftover && compared_i.unanswered;
    plan_o.replay = op_i == OpReplay && compared_i.in_window;
    plan_o.keep = op_i == OpKeep && judged_i.leads && member_i && !looked_i.leftover;
    plan_o.drop = op_i == OpKeep && !(judged_i.leads && member_i && !looked_i.leftover);
    plan_o.leave = op_i == OpLeave;
    plan_o.ask = op_i == OpAsk && looked_i.note.valid;
    plan_o.take = op_i == OpTake && !alone_i && !compared_i.in_window;
    // In a cluster of one node, only the lease shows that this epoch is still the latest.
    plan_o.alone = op_i == OpTake && alone_i && standing_i.serving;
    plan_o.resolve = op_i == OpResolve;
    plan_o.store = op_i == OpStore;
    plan_o.learn = op_i == OpLane;
    plan_o.clear = op_i == OpClear;
    plan_o.ends = op_i == OpRequest || consumes(op_i);
  end

  // The same conditions as in the plan, computed from fewer and earlier signals.
  assign needs_line_o = (c.read && !refused && !waits_i) || (c.write && !refused && looked_i.newer_lane && !write_waits)
      || (c.replicate && judged_i.known && looked_i.has_place) || plan_o.commit
      || (c.fetch && judged_i.known && judged_i.leads) || judged_i.line;

endmodule
`default_nettype wire
