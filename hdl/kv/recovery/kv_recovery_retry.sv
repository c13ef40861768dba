// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Repeats messages that were not answered: this node's writes in flight, and questions for commits. A part of
/// kv_recovery; sections 5 and 6 of docs/design/kv-protocol.md.
///
/// Behaviour: a walk through the window begins after a tick, if the window is not empty, and when an epoch was entered.
/// `writes_o` is high until the walk ends. A write is sent again if the previous walk also saw it, and always after an
/// epoch was entered. A `pending` of the engine starts a walk through the notes, once per tick, with notes_o. It
/// requests the commits of all notes in that cell of the filter. `start_i` handles the next place or, after the last
/// place, the next note, with active_o until that is done. Each cycle with go_i is a step, which may start an operation
/// (order_*).
/// Latency: 2 cycles for each place or note, besides operations.
/// Reset: no walk.
/// Requirements: start_i only when not active_o, and with writes_o or notes_o. `heard_i` answers place_o, in the next
/// cycle.
module kv_recovery_retry
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire turn_t turn_i,
    output step_t step_o,
    output logic writes_o,
    output logic notes_o,

    input wire occasion_t    occasion_i,
    input wire               here_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire from_engine_t engine_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- the window
    input  wire    any_i,    // something is in it
    output place_t place_o,

    // ---- operations
    // verilator lint_off UNUSEDSIGNAL
    input wire cell_t  cell_i,  // what was seen
    input wire heard_t heard_i
    // verilator lint_on UNUSEDSIGNAL
);

  typedef enum logic [2:0] {
    Off = 3'd0,
    WriteLook = 3'd1,
    WriteGo = 3'd2,
    NoteLook = 3'd3,
    NoteGo = 3'd4
  } state_e;

  state_e state_q;
  logic walk_all_q;
  place_t place_q;
  logic ask_may_q;
  filter_cell_t asked_q;
  logic [8:0] note_q;
  logic again;
  order_t order;
  assign step_o  = '{active: state_q != Off, order: order, cell_from: CellKeep, again: again};
  assign place_o = place_q;

  // The write that the previous walk saw at each place. It is read one cycle late. The walk stays at a place during an
  // operation, and after returning to the first place it uses walk_all_q instead.
  logic [7:0] walked, walked_q;
  always_ff @(posedge clk_i) walked_q <= walked;
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_walked (
      .*,
      .write_i(turn_i.go && state_q == WriteGo),
      .write_address_i(place_q),
      .write_data_i(cell_i.request[7:0]),
      .read_address_i(place_q),
      .read_data_o(walked)
  );

  assign again = turn_i.go && order.valid && (state_q == WriteGo || state_q == NoteGo);
  always_comb begin
    order = '0;
    case (state_q)
      WriteLook: begin
        order.valid  = heard_i.written;
        order.op     = OpLook;
        order.at     = 9'(place_q);
        order.window = 1'b1;
      end
      // The write is repeated if the previous walk saw it too.
      WriteGo: begin
        order.valid = here_i && (walk_all_q || walked_q == cell_i.request[7:0]);
        order.op    = OpRetry;
        order.at    = 9'(place_q);
      end
      NoteLook: begin
        order.valid = 1'b1;
        order.op    = OpLook;
        order.at    = note_q;
      end
      NoteGo: begin
        order.valid = heard_i.noted && here_i && filter_cell(cell_i.bucket) == asked_q;
        order.op    = OpAsk;
        order.at    = note_q;
        order.nodes = 8'd1 << note_q[8:6];
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (occasion_i.tick) begin
      writes_o  <= writes_o || any_i;
      ask_may_q <= 1'b1;
    end
    if (engine_i.pending && ask_may_q && !notes_o) begin
      notes_o   <= 1'b1;
      ask_may_q <= 1'b0;
      asked_q   <= engine_i.pending_cell;
      note_q    <= '0;
    end

    if (turn_i.go) begin
      case (state_q)
        Off: if (turn_i.start) state_q <= writes_o ? WriteLook : NoteLook;
        WriteLook, WriteGo: begin
          state_q <= Off;
          if (state_q == WriteLook && heard_i.written) state_q <= WriteGo;
          else begin
            place_q <= place_q + 1'b1;
            if (place_q == '1) begin
              writes_o   <= 1'b0;
              walk_all_q <= 1'b0;
            end
          end
        end
        NoteLook: state_q <= NoteGo;
        NoteGo: begin
          state_q <= Off;
          note_q  <= note_q + 1'b1;
          if (note_q == '1) notes_o <= 1'b0;
        end
        default: state_q <= Off;
      endcase
    end

    if (occasion_i.entered) begin
      writes_o   <= 1'b1;
      walk_all_q <= 1'b1;
      place_q    <= '0;
    end
    if (occasion_i.forget) notes_o <= 1'b0;
    if (rst_i) begin
      state_q    <= Off;
      writes_o   <= 1'b0;
      walk_all_q <= 1'b0;
      place_q    <= '0;
      notes_o    <= 1'b0;
      note_q     <= '0;
      ask_may_q  <= 1'b1;
    end
  end

  `ASSERT(one_thing, !(turn_i.start && step_o.active), "a place or note was begun before the one before was dealt with")
  `ASSERT(something, !turn_i.start || writes_o || notes_o, "there is nothing to do")

endmodule
`default_nettype wire
