// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's second stage: determines the kind of a request and its sender, and checks its form. Combinational. See
/// sections 3 and 4 of docs/design/kv-protocol.md.
///
/// Behaviour: for class_o see class_t. `judged_o.refusal` is the reason to refuse a client's request before the look-up
/// of its key, or StatusOk. known: a frame between nodes has this epoch, comes from a member and its address, and
/// concerns a slot with the right leader.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_e1_classify
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    parameter kv_config_t Config = DefaultConfig
) (
    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire kv_settings_t settings_i,
    input wire standing_t standing_i,
    input wire member_i,  // this node is a member
    input wire asked_t asked_i,
    input wire delivery_t delivery_i,
    // verilator lint_on UNUSEDSIGNAL

    output class_t  class_o,
    output judged_t judged_o
);

  // verilator lint_off UNUSEDSIGNAL
  staged_t staged;
  kv_t kv;
  // verilator lint_on UNUSEDSIGNAL
  op_e op;
  logic [15:0] epoch;
  logic leads, line, known;
  status_e refusal;
  assign judged_o = '{line: line, leads: leads, known: known, refusal: refusal};
  logic [4:0] kind;
  logic right_lane;
  assign staged     = settings_i.staged;
  assign epoch      = staged.epoch[15:0];
  assign kv         = asked_i.kv;
  assign op         = asked_i.op;
  assign kind       = kv.kind;
  assign leads      = asked_i.leader == staged.node;
  assign right_lane = (kv.client >> Config.lane_bits) == '0;

  always_comb begin
    class_o = '0;
    if ((op == OpAgain || op == OpRequest) && !standing_i.dead) begin
      class_o.read = kind == KindRead;
      class_o.write = is_write(kind);
      class_o.replicate = is_replicate(kind);
      class_o.replicated = is_replicated(kind);
      class_o.commit = kind == KindCommit;
      class_o.fetch = kind == KindFetch;
      class_o.ping = kind == KindPing;
      class_o.lane = kind == KindLane;
      class_o.theirs = kind == KindEntry || kind == KindEntered || kind == KindEnter || kind == KindLaneRecord;
      class_o.between = class_o.replicate || class_o.replicated || class_o.commit || class_o.fetch || class_o.theirs;
    end
    case (op)
      OpLeave, OpAsk, OpTake, OpStore, OpReplay, OpWalk: line = 1'b1;
      OpLook: line = asked_i.flag;
      default: line = 1'b0;
    endcase
  end

  always_comb begin
    refusal = StatusOk;
    if (delivery_i.too_long) refusal = StatusTooLong;
    else if ((delivery_i.length != '0 && !may_have_value(kind)) || kv.detail != '0 || kv.node != '0)
      refusal = StatusBadFrame;
    else if ((!right_lane || kv.candidate != '0) && kind != KindRead && kind != KindPing) refusal = StatusBadLane;
    else if (!standing_i.serving) refusal = StatusNotServing;
    else if (is_write(kind)) begin
      if (kv.epoch != epoch) refusal = StatusStaleEpoch;
      else if (!leads) refusal = StatusNotLeader;
      else if (!standing_i.opened) refusal = StatusBusy;
    end
  end

  always_comb begin
    known = member_i && epoch != '0 && kv.epoch == epoch && staged.members[kv.node] && kv.node != staged.node
        && delivery_i.from.ip == asked_i.peer_ip && delivery_i.from.port == asked_i.peer_port
        && !delivery_i.too_long && (delivery_i.length == '0 || may_have_value(kind));
    if (is_replicate(kind) || kind == KindCommit) known &= asked_i.leader == kv.node && kv.version != '0;
    if (is_replicated(kind)) known &= leads;
    if (kind != KindFetch) known &= right_lane;
  end

endmodule
`default_nettype wire
