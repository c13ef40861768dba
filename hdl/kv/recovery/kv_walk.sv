// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The walk through a key's candidates, for a read or write that did not find the key in the first one. A part of
/// kv_recovery_request; sections 2, 5 and 6 of docs/design/kv-protocol.md.
///
/// Behaviour: start_i begins, and active_o is high until the walk is done. Each cycle with go_i is a step, which may
/// start an operation (order_*). It searches the candidates in order (a read from the second one on) up to the first
/// with the key or a write in progress. There the engine continues the request. If there is none, a read continues in
/// the last one, also without the key. A write continues in the bucket for a new key, with version_o. `cell_o` sets the
/// operation's bucket: the first candidate, with bits [19:8] XORed by offset_o (0 outside a walk).
/// Latency: 2 cycles and 2 per candidate, besides operations; a write that finds no key: 2 and 1 per candidate more.
/// Reset: no walk.
/// Requirements: start_i only when not active_o and with more than one candidate. `read_i`, hash_i and bucket_mask_i
/// (ones above a bucket's number) are stable from two cycles before. `seen_valid_i` ends an operation; until then go_i
/// is low.
module kv_walk
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire  start_i,
    input  wire  go_i,
    output logic active_o,

    // verilator lint_off UNUSEDSIGNAL
    input wire                 read_i,
    input wire                 here_i,
    input wire          [31:0] hash_i,
    input wire bucket_t        bucket_mask_i,
    input wire                 seen_valid_i,
    input wire seen_t          seen_i,
    // verilator lint_on UNUSEDSIGNAL

    output logic          cell_o,
    output logic   [11:0] offset_o,
    output order_t        order_o,
    output logic   [31:0] version_o
);

  typedef enum logic [2:0] {
    Off = 3'd0,
    Aim = 3'd1,  // the first one that is looked into
    Look = 3'd2,
    See = 3'd3,
    Choose = 3'd4,
    Base = 3'd5,
    Compare = 3'd6,
    Go = 3'd7
  } state_e;

  state_e state_q;
  logic [2:0]
      index_q, at_q, last_q;  // the next candidate, in the order of looking; the one that was looked into; the last one
  logic [9:0] second_q;  // what the second group differs by
  assign active_o = state_q != Off;
  assign offset_o = {second_q & {10{index_q[2]}}, index_q[1:0]};

  logic [9:0] cut;
  assign cut = hash_i[31:22] & ~bucket_mask_i[19:10];
  always_ff @(posedge clk_i) begin
    second_q <= cut == '0 ? 10'd1 : cut;
    last_q   <= {!bucket_mask_i[10], !bucket_mask_i[9], 1'b1};
  end

  // ---- findings

  logic here_q, under_way_q, few_q;  // the key; a write; the first bucket has room for a new one
  logic [1:0][4:0] keys_q;  // of the groups
  logic [1:0][1:0] free_at_q;  // the first with a free way
  logic [1:0] free_q;
  logic [2:0] chosen;
  logic group, second_chosen;
  assign group         = at_q[2];
  assign second_chosen = last_q[2] && keys_q[1] < keys_q[0];
  assign chosen        = few_q ? '0 : second_chosen ? {1'b1, free_at_q[1]} : {1'b0, free_at_q[0]};

  logic [31:0] next;  // version in the candidate of index_q
  lutram #(
      .Width(32),
      .Depth(8)
  ) i_next (
      .*,
      .write_i(seen_valid_i && state_q == See),
      .write_address_i(at_q),
      .write_data_i(seen_i.next),
      .read_address_i(index_q),
      .read_data_o(next)
  );

  // ---- the version: the newest among those that are ahead of the chosen bucket's version by at most 2^28

  logic [31:0] base_q, best_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] ahead;  // by one more than this
  // verilator lint_on UNUSEDSIGNAL
  logic counts;
  assign ahead     = next + ~base_q;
  assign counts    = ahead[31:28] == '0 && newer_request(next, best_q);
  assign version_o = best_q;

  // ---- steps

  logic ends, adds_q;  // the key is here, or something is under way, or this was the last one
  assign ends = here_q || under_way_q || at_q == last_q;
  always_comb begin
    order_o = '0;
    order_o.valid = state_q == Look || state_q == Go;
    order_o.op    = state_q == Look ? OpWalk : here_i ? OpAgain : OpFree;
    order_o.flag  = state_q != Look && adds_q;
    order_o.head  = state_q == Look;
    if (!order_o.valid) order_o = '0;
    cell_o = go_i && (state_q == Aim || state_q == Base || (state_q == See && !ends));
  end

  always_ff @(posedge clk_i) begin
    if (seen_valid_i && state_q == See) begin
      here_q      <= seen_i.found;
      under_way_q <= seen_i.noted_here || (seen_i.leads_here && !read_i);
      if (at_q == '0) few_q <= $countones(seen_i.free) > 2;
      keys_q[group] <= keys_q[group] + 5'($countones(~seen_i.free));
      if (!free_q[group]) begin
        free_q[group]    <= seen_i.free != '0;
        free_at_q[group] <= at_q[1:0];
      end
    end
    if (start_i) begin
      state_q <= Aim;
      index_q <= {2'd0, read_i};
      few_q   <= 1'b0;
      adds_q  <= 1'b0;
      keys_q  <= '0;
      free_q  <= '0;
    end
    if (go_i) begin
      case (state_q)
        Aim: state_q <= Look;
        Look: begin
          at_q    <= index_q;
          index_q <= index_q + 1'b1;
          state_q <= See;
        end
        See: state_q <= !ends ? Look : here_q || under_way_q || read_i ? Go : Choose;
        Choose: begin
          index_q <= chosen;
          adds_q  <= 1'b1;
          state_q <= Base;
        end
        Base: begin
          base_q  <= next;
          best_q  <= next;
          index_q <= '0;
          state_q <= Compare;
        end
        Compare: begin
          if (counts) best_q <= next;
          index_q <= index_q + 1'b1;
          if (index_q == last_q) state_q <= Go;
        end
        Go: begin
          index_q <= '0;
          state_q <= Off;
        end
        default: ;
      endcase
    end
    if (rst_i) begin
      state_q <= Off;
      index_q <= '0;
    end
  end

  `ASSERT(one_thing, !(start_i && active_o), "a walk was begun before the one before was done")

endmodule
`default_nettype wire
