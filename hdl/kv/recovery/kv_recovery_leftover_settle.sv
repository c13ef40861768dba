// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The walk through the leftovers. The node asks other leaders for the outcome of their leftovers, and writes its own
/// again. A part of kv_recovery; section 8 of docs/design/kv-protocol.md.
///
/// Behaviour: a walk begins after a tick and when an epoch was entered. `due_o` is high until it reaches the end of the
/// list. start_i handles the next leftover, with active_o until that is done. Each cycle with go_i is a step, which may
/// start an operation (order_*). If another node leads the leftover's slot, it is asked for the location (request_o).
/// If this node leads it, the leftover takes a place of the window; only one leftover has a place at a time. It is sent
/// to the members that have not answered, and again at each tick. If a client's write takes the place first, the
/// leftover gets another turn. `leftover_done_i`: all have answered. `own_done_o` then stays high until start_i, and
/// the leftover leaves the list. The next walk asks no other node. `again_o`: a leftover is requested or sent again.
/// Latency: 6 cycles to ask; to take a place, 4, 2 for each used place, and 8; besides operations and the search.
/// Reset: no walk, and no leftover in the window. `forget` and clear_i have the same effect.
/// Requirements: start_i only when not active_o, and with due_o or own_done_o. `heard_i` answers place_o and the cell's
/// slot, in the next cycle.
module kv_recovery_leftover_settle
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
#(
    parameter int unsigned LeftoverBits = 10
) (
    input wire clk_i,
    input wire rst_i,

    input wire turn_t turn_i,
    output step_t step_o,
    output logic due_o,
    output logic own_done_o,
    input wire leftover_done_i,

    input wire occasion_t occasion_i,  // forget: the list is about to be filled
    input wire            clear_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire epoch_t    epoch_i,
    input wire heard_t    heard_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- leftovers
    input  wire               none_i,       // there are none
    output list_ask_t         list_o,       // the epoch looks from there, too
    input  wire               list_keep_i,
    // verilator lint_off UNUSEDSIGNAL
    input  wire list_answer_t list_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- the window
    output place_t place_o,
    output logic   own_o,       // one of this node's leftovers has this place
    output place_t own_place_o,

    // ---- operations
    output logic [31:0] request_o  // CellAsk
);

  typedef enum logic [3:0] {
    Off = 4'd0,
    Find = 4'd1,
    Look = 4'd2,
    Go = 4'd3,
    Take = 4'd4,
    TakeGo = 4'd5,
    Took = 4'd6,
    Replay = 4'd7,
    OwnDone = 4'd8
  } state_e;

  state_e state_q;
  logic walk_q, ask_q;  // there is a walk; the leaders' word is asked for
  logic asked_q;  // it was, in this epoch's first walk
  logic [LeftoverBits:0] at_q;  // one bit more than a leftover's number: a full list has an end, too
  logic own_q;  // one of this node's leftovers is in the window
  logic [LeftoverBits-1:0] own_at_q;
  place_t own_place_q;
  place_t step_q;  // places, nodes
  assign own_o = own_q;
  assign own_place_o = own_place_q;
  logic again;
  order_t order;
  cell_from_e cell_from;
  assign step_o  = '{active: state_q != Off, order: order, cell_from: cell_from, again: again};
  assign due_o   = walk_q;
  // The search begins with the last place, because clients' writes take the first places, and a write whose place is
  // used must wait.
  assign place_o = ~step_q;

  logic [LeftoverBits-1:0] list_at;
  assign list_at = list_i.at[LeftoverBits-1:0];
  assign list_o = '{
          find: turn_i.start,
          what: own_done_o ? ListShow : ListNext,
          from : ($bits(leftover_at_t) + 1)'(own_done_o ? {1'b0, own_at_q} : at_q),
          again: 1'b0,
          keep: 1'b0,
          drop: turn_i.go && state_q == OwnDone && !list_i.busy && list_i.found
      };

  logic takes, replays;  // this node leads
  assign takes = heard_i.mine && !own_q;
  assign replays = heard_i.mine && own_q && {1'b0, own_at_q} == at_q && ask_q && !epoch_i.alone;
  // A leftover that takes a place of the window is first sent without another look at the list.
  assign again = turn_i.go && state_q == Go && epoch_i.here && (replays || (!heard_i.mine && ask_q && asked_q));
  assign request_o = {TagLeftover, (22 - LeftoverBits)'(0), at_q[LeftoverBits-1:0]};

  always_comb begin
    cell_from = CellKeep;
    order = '0;
    case (state_q)
      Find:    if (turn_i.go && !list_i.busy) cell_from = CellList;
      Go: begin
        if (turn_i.go && !heard_i.mine) cell_from = CellAsk;
        order.valid    = !heard_i.mine && ask_q && epoch_i.here;
        order.op       = OpSend;
        order.send     = 1'b1;
        order.location = 1'b1;
        order.kind     = KindFetch;
        order.at       = {epoch_i.node, 6'd0};
        order.nodes    = 8'd1 << heard_i.leader;
      end
      TakeGo: begin
        order.valid = !heard_i.used;
        order.op    = OpTake;
        order.at    = 9'(place_o);
      end
      Replay: begin
        order.valid = epoch_i.others[step_q[2:0]] && epoch_i.here;
        order.op    = OpReplay;
        order.at    = 9'(own_place_q);
        order.nodes = 8'd1 << step_q[2:0];
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (occasion_i.tick && !walk_q) begin
      walk_q  <= !none_i;
      ask_q   <= 1'b1;
      asked_q <= 1'b1;
      at_q    <= '0;
    end
    if (leftover_done_i) own_done_o <= own_q;
    if (list_keep_i) at_q <= {1'b0, list_at};

    if (turn_i.go) begin
      case (state_q)
        Off: begin
          step_q <= '0;
          if (turn_i.start) state_q <= own_done_o ? OwnDone : Find;
        end
        Find:
        if (!list_i.busy) begin
          at_q    <= {1'b0, list_at};
          state_q <= list_i.found ? Look : Off;
          if (!list_i.found) walk_q <= 1'b0;
        end
        Look:    state_q <= Go;
        Go: begin
          state_q <= takes ? Take : replays ? Replay : Off;
          if (!takes && !replays) at_q <= at_q + 1'b1;
        end
        Take:    state_q <= TakeGo;
        TakeGo: begin
          step_q      <= step_q + 1'b1;
          own_place_q <= place_o;
          own_at_q    <= at_q[LeftoverBits-1:0];
          own_q       <= !heard_i.used;
          // A leader that has not opened has a free place. Another leader tries again in the next walk.
          state_q     <= !heard_i.used ? Took : step_q == '1 ? Off : Take;
        end
        Took: begin
          step_q  <= '0;
          state_q <= Replay;
          // A client's write has taken the place in the meantime.
          if (!heard_i.settled && !epoch_i.alone) begin
            own_q   <= 1'b0;
            state_q <= Off;
          end
          if (epoch_i.alone) begin
            // If this node is alone, the leftover is done or waits for the lease.
            own_q   <= heard_i.settled;
            at_q    <= at_q + 1'b1;
            state_q <= Off;
          end
        end
        Replay: begin
          step_q <= step_q + 1'b1;
          if (step_q[2:0] == '1) begin
            at_q    <= at_q + 1'b1;
            state_q <= Off;
          end
        end
        OwnDone:
        if (!list_i.busy) begin
          own_done_o <= 1'b0;
          own_q      <= 1'b0;
          if (!walk_q) begin
            walk_q <= 1'b1;
            ask_q  <= 1'b0;
            at_q   <= '0;
          end
          state_q <= Off;
        end
        default: state_q <= Off;
      endcase
    end

    if (occasion_i.entered) begin
      walk_q  <= 1'b1;
      ask_q   <= 1'b1;
      asked_q <= 1'b0;
      at_q    <= '0;
    end
    if (rst_i || occasion_i.forget || clear_i) begin
      walk_q     <= 1'b0;
      own_q      <= 1'b0;
      own_done_o <= 1'b0;
      at_q       <= '0;
    end
    if (rst_i) begin
      state_q <= Off;
      ask_q   <= 1'b0;
      asked_q <= 1'b0;
    end
  end

  `ASSERT(one_thing, !(turn_i.start && step_o.active), "a leftover was begun before the one before was dealt with")
  `ASSERT(something, !turn_i.start || due_o || own_done_o, "there is nothing to do")

endmodule
`default_nettype wire
