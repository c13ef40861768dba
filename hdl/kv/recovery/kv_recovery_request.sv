// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Handles a request that the engine handed on. A part of kv_recovery; sections 8 and 10 of
/// docs/design/kv-protocol.md.
///
/// Behaviour: start_i begins, and active_o is high until the request is done. Each cycle with go_i is a step, which may
/// start an operation (order_*). `enter` and `entered` are noted (greeting_o). A lane's record is accepted if it was
/// missing (mine_i). Two kinds of frames settle all leftovers of their location: an entry that was missing or shows a
/// leftover's outcome, and a request for a location that is leftover here. The received frame decides whether each
/// write took effect. Then the engine continues with the frame. For a client's read or write kv_walk searches the
/// candidates. All other requests have no effect.
/// Latency: at least 6 cycles, besides operations and searches.
/// Reset: nothing is in progress.
/// Requirements: start_i only when not active_o. `head_i` has been stable for a cycle, and stays so. `heard_i` answers
/// for the cell's slot, in the next cycle.
module kv_recovery_request
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
#(
    parameter int unsigned LeftoverBits = 10
) (
    input wire clk_i,
    input wire rst_i,

    input  wire turn_t        turn_i,
    output step_t             step_o,
    output logic              ends_o,     // in the last step
    // verilator lint_off UNUSEDSIGNAL
    input  wire subject_t     head_i,
    input  wire epoch_t       epoch_i,
    input  wire heard_t       heard_i,
    // verilator lint_on UNUSEDSIGNAL
    // verilator lint_off UNUSEDSIGNAL
    input  wire from_engine_t engine_i,
    // verilator lint_on UNUSEDSIGNAL
    output greeting_t         greeting_o,

    // ---- requested items
    input  wire          mine_i,
    input  wire bucket_t bucket_i,
    output logic         came_o,

    // ---- leftovers
    output list_ask_t         list_o,
    // verilator lint_off UNUSEDSIGNAL
    input  wire list_answer_t list_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- operations
    output bucket_t        bucket_o,         // CellHead
    /// The version of a key that is added after a walk.
    output logic    [31:0] walked_version_o
);

  typedef enum logic [3:0] {
    Off = 4'd0,
    Look = 4'd1,
    EntryFind = 4'd2,
    EntryLook = 4'd3,
    SearchBegin = 4'd4,
    Search = 4'd5,
    SearchEnd = 4'd6,
    Free = 4'd7,
    End = 4'd8,
    Walk = 4'd9
  } state_e;

  state_e state_q;
  logic found_q;  // a leftover of the location
  order_t order;
  cell_from_e cell_from;
  assign step_o = '{active: state_q != Off, order: order, cell_from: cell_from, again: 1'b0};
  assign ends_o = turn_i.go && state_q == End;

  // ---- the request, one cycle late

  logic entry_q, leftover_q, known_q, looks;
  bucket_t bucket_q;
  always_ff @(posedge clk_i) begin
    entry_q <= head_i.kv.kind == KindEntry;
    leftover_q <= head_i.kv.request[31:LeftoverBits] == {TagLeftover, (22 - LeftoverBits)'(0)}
        && head_i.kv.detail[4:0] == StatusOk;
    // A lane's record is known if the lane ever had a request.
    known_q <= head_i.kv.key[31:0] != '0 || head_i.kv.version != '0 || head_i.kv.detail[4:0] != '0;
    if (engine_i.handed_on) bucket_q <= engine_i.looked_in;
  end

  logic walk_start, walk_active, walk_cell, client_q;
  logic [11:0] walk_offset;
  order_t walk_order;
  always_ff @(posedge clk_i) client_q <= head_i.kv.kind[4:3] == '0;
  assign walk_start = looks && client_q;
  kv_walk i_walk (
      .*,
      .start_i(walk_start),
      .go_i(turn_i.go),
      .active_o(walk_active),
      .read_i(head_i.kv.kind == KindRead),
      .here_i(epoch_i.here),
      .hash_i(head_i.hash),
      .bucket_mask_i(epoch_i.bucket_mask),
      .seen_valid_i(engine_i.op_done),
      .seen_i(engine_i.seen),
      .cell_o(walk_cell),
      .offset_o(walk_offset),
      .order_o(walk_order),
      .version_o(walked_version_o)
  );
  assign bucket_o = entry_q ? bucket_i : bucket_q ^ {2'b0, walk_offset, 8'b0};

  logic leads;
  assign looks = turn_i.go && state_q == Look;
  assign leads = heard_i.leader == head_i.kv.node;
  assign greeting_o = '{
          enter: looks && head_i.kv.kind == KindEnter,
          entered: looks && head_i.kv.kind == KindEntered,
          node: head_i.kv.node
      };
  assign came_o = (looks && !entry_q) || (turn_i.go && state_q == SearchBegin && leads);

  // ---- leftovers

  // True if the received frame shows that the leftover's write took effect.
  logic stays;
  assign stays = list_i.newer || (list_i.equal && (entry_q ? heard_i.same : list_i.same));

  logic drops, shows;
  assign drops = turn_i.go && state_q == Search && !list_i.busy && list_i.found;
  assign shows = state_q == Look && entry_q;
  assign list_o = '{
          find: looks || (turn_i.go && state_q == SearchBegin) || drops,
          what: shows ? ListShow : ListAt,
          from : ($bits(leftover_at_t) + 1)'(head_i.kv.request[LeftoverBits-1:0] & {LeftoverBits{shows}}),
          again: state_q == Search,
          keep: 1'b0,
          drop: drops
      };

  // ---- operations

  always_comb begin
    cell_from = CellKeep;
    order     = '0;
    case (state_q)
      Look: begin
        if (turn_i.go) cell_from = CellHead;
        order.valid = head_i.kv.kind == KindLaneRecord && mine_i && known_q;
        order.op    = OpLane;
        order.head  = 1'b1;
      end
      EntryFind: if (turn_i.go && !list_i.busy) cell_from = CellList;
      // OpLook checks whether the node already has the received data.
      SearchBegin: begin
        order.valid = leads;
        order.op    = OpLook;
        order.flag  = 1'b1;
        order.head  = 1'b1;
      end
      // Settles all leftovers of the location.
      Search: begin
        if (drops) cell_from = CellList;
        order.valid = drops;
        order.op    = OpResolve;
        order.nodes[0] = 1'b1;
        order.flag  = !stays;
      end
      SearchEnd: begin
        order.valid = 1'b1;
        order.op    = !epoch_i.here ? OpFree : entry_q ? OpStore : OpAgain;
        order.flag  = found_q;
      end
      Free: begin
        order.valid = 1'b1;
        order.op    = OpFree;
      end
      Walk: begin
        if (walk_cell) cell_from = CellHead;
        order = walk_order;
      end
      default:   ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (turn_i.start) begin
      found_q <= 1'b0;
      state_q <= Look;
    end
    if (turn_i.go) begin
      case (state_q)
        Look: begin
          state_q <= Free;
          case (head_i.kv.kind)
            KindEnter, KindEntered, KindLaneRecord: ;
            KindEntry: begin
              if (leftover_q) state_q <= EntryFind;
              else if (mine_i) state_q <= EntryLook;
            end
            default: state_q <= client_q ? Walk : Search;
          endcase
        end
        // The entry answers for a leftover: find its location. If it is not in the list, it has been settled meanwhile.
        EntryFind:
        if (!list_i.busy)
          state_q <= list_i.found && list_i.valid && list_i.what.way == head_i.kv.detail[7:6] ? EntryLook : Free;
        EntryLook: state_q <= SearchBegin;
        SearchBegin: state_q <= leads ? Search : Free;
        Search:
        if (!list_i.busy) begin
          if (list_i.found) found_q <= 1'b1;
          else state_q <= SearchEnd;
        end
        SearchEnd, Free: state_q <= End;
        Walk: if (!walk_active) state_q <= End;
        End: state_q <= Off;
        default: ;
      endcase
    end
    if (rst_i) state_q <= Off;
  end

  `ASSERT(one_thing, !(turn_i.start && step_o.active), "a request was begun before the one before was dealt with")

endmodule
`default_nettype wire
