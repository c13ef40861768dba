// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Tracks which nodes have entered the epoch, by their messages. A part of kv_recovery; section 8 of
/// docs/design/kv-protocol.md.
///
/// Behaviour: after an epoch is entered and at each tick, a node that leads a slot (leads_i) sends `enter` to the nodes
/// that have not sent `entered` (greeting_i). A node that received `enter` (greeting_i) sends `entered` when it has no
/// leftovers. `due_o`: there is a message to send; say_i: it is sent. again: it is a repeated `enter`. `opened_o`: this
/// node leads and has had no leftovers, and all others have entered; until the next epoch.
/// Latency: 2 cycles from a change to due_o and opened_o.
/// Reset: no message is to be sent, and none has been received. Forgetting an epoch does the same.
/// Requirements: say_i comes one cycle after due_o or later. Otherwise the order is 0.
module kv_recovery_entered
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire occasion_t occasion_i,
    input wire            leads_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire epoch_t    epoch_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire            entering_i,
    input wire            none_i,      // there are no leftovers

    input wire greeting_t greeting_i,

    output logic  due_o,
    input  wire   say_i,
    output step_t step_o,
    output logic  opened_o
);

  logic [7:0] owed_q, entered_q, missing_q;  // who is owed `entered`; who has said so, and who not
  logic leads_q;  // any slot
  logic due_q, again_q;  // `enter`
  logic owed_ready_q, enter_ready_q;
  assign due_o = owed_ready_q || enter_ready_q;

  logic   again;
  order_t order;
  assign again  = say_i && !owed_ready_q && again_q;
  assign step_o = '{active: 1'b0, order: order, cell_from: CellKeep, again: again};
  always_comb begin
    order = '0;
    order.valid = say_i && epoch_i.here;
    if (say_i) begin
      order.op    = OpSend;
      order.send  = 1'b1;
      order.at    = {epoch_i.node, 6'd0};
      order.kind  = owed_ready_q ? KindEntered : KindEnter;
      order.nodes = owed_ready_q ? owed_q & epoch_i.others : missing_q;
    end
  end

  always_ff @(posedge clk_i) begin
    missing_q     <= epoch_i.others & ~entered_q;
    owed_ready_q  <= owed_q != '0 && none_i;
    enter_ready_q <= due_q && leads_q && missing_q != '0;
    // A later leftover, from a refresh, does not close this node again.
    opened_o      <= epoch_i.here && leads_q && (none_i || opened_o) && missing_q == '0 && !entering_i;

    if (occasion_i.tick) due_q <= 1'b1;
    if (say_i) begin
      if (owed_ready_q) owed_q <= '0;
      else begin
        due_q   <= 1'b0;
        again_q <= 1'b1;
      end
    end
    if (greeting_i.enter) owed_q[greeting_i.node] <= 1'b1;
    if (greeting_i.entered) entered_q[greeting_i.node] <= 1'b1;
    if (leads_i) leads_q <= 1'b1;
    if (occasion_i.entered) begin
      due_q   <= 1'b1;
      again_q <= 1'b0;
    end
    if (rst_i || occasion_i.forget) begin
      owed_q    <= '0;
      entered_q <= '0;
      leads_q   <= 1'b0;
    end
    if (rst_i) begin
      due_q    <= 1'b0;
      again_q  <= 1'b0;
      opened_o <= 1'b0;
    end
  end

endmodule
`default_nettype wire
