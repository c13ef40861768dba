// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's second stage: what a request is, who sent it, and whether its form is right. Logic alone; sections 3 and 4 of
/// docs/kv-protocol.md.
///
/// Behaviour: class_o: see class_t. refusal_o: why a client's request is refused before anybody looks for the key; StatusOk: not yet. known_o: a
/// frame between nodes is of this epoch, of a member, from where that is, and about a slot that the right one leads.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: peer_* are those of kv_i.node, leader_i is that of the slot.
module kv_e1_classify
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter int unsigned LaneBits = 12
) (
    input wire [2:0] node_i,
    input wire member_i,  // this node is one
    input wire [7:0] members_i,
    input wire serving_i,
    input wire opened_i,
    input wire [15:0] epoch_i,  // 0: none
    input wire dead_i,

    input wire op_e op_i,
    input wire flag_i,
    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire kv_t kv_i,
    input wire delivery_t delivery_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire [2:0] leader_i,
    input wire [31:0] peer_ip_i,
    input wire [15:0] peer_port_i,

    output class_t class_o,
    output logic line_o,  // an operation that needs the line
    output logic leads_o,
    output status_e refusal_o,
    output logic known_o
);

  logic [4:0] kind;
  logic right_lane;
  assign kind       = kv_i.kind;
  assign leads_o    = leader_i == node_i;
  assign right_lane = (kv_i.client >> LaneBits) == '0;

  always_comb begin
    class_o = '0;
    if ((op_i == OpAgain || op_i == OpRequest) && !dead_i) begin
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
    case (op_i)
      OpLeave, OpAsk, OpTake, OpStore, OpReplay, OpWalk: line_o = 1'b1;
      OpLook: line_o = flag_i;
      default: line_o = 1'b0;
    endcase
  end

  always_comb begin
    refusal_o = StatusOk;
    if (delivery_i.too_long) refusal_o = StatusTooLong;
    else if ((delivery_i.length != '0 && !may_have_value(kind)) || kv_i.detail != '0 || kv_i.node != '0)
      refusal_o = StatusBadFrame;
    else if ((!right_lane || kv_i.candidate != '0) && kind != KindRead && kind != KindPing) refusal_o = StatusBadLane;
    else if (!serving_i) refusal_o = StatusNotServing;
    else if (is_write(kind)) begin
      if (kv_i.epoch != epoch_i) refusal_o = StatusStaleEpoch;
      else if (!leads_o) refusal_o = StatusNotLeader;
      else if (!opened_i) refusal_o = StatusBusy;
    end
  end

  always_comb begin
    known_o = member_i && epoch_i != '0 && kv_i.epoch == epoch_i && members_i[kv_i.node] && kv_i.node != node_i
        && delivery_i.from.ip == peer_ip_i && delivery_i.from.port == peer_port_i
        && !delivery_i.too_long && (delivery_i.length == '0 || may_have_value(kind));
    if (is_replicate(kind) || kind == KindCommit) known_o &= leader_i == kv_i.node && kv_i.version != '0;
    if (is_replicated(kind)) known_o &= leads_o;
    if (kind != KindFetch) known_o &= right_lane;
  end

endmodule
`default_nettype wire
