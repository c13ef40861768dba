// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Work that stops all requests: entering an epoch and clearing the table. A part of kv_recovery; section 8 of
/// docs/design/kv-protocol.md.
///
/// Behaviour: `enter` or `clear` begins. `active` stays high until the work is done, or until other work must come
/// first (waits); then it must begin again. Each cycle with `go` is a step, which may start an operation (order_*).
/// Entering an epoch: the engine is drained, the registers are copied, each note becomes a leftover, each write in
/// flight is kept or dropped, and the leaders of the slots are looked up. Clearing: clears the engine's memories, the
/// lines of all buckets and the cache. After a refresh in the engine, only the note of this node's place 0 is read and
/// made a leftover (refresh_o, due until its turn). No other work waits for that.
/// Latency: see kv_recovery.
/// Reset: nothing is in progress.
/// Requirements: only one of `enter`, `clear` and `note`, and only when not active. `heard_i` answers place_o and
/// slot_o, in the next cycle.
module kv_recovery_epoch
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire epoch_turn_t turn_i,
    output step_t step_o,
    output epoch_state_t state_o,

    // ---- the note of a refresh
    output refresh_t refresh_o,

    // ---- an epoch
    // verilator lint_off UNUSEDSIGNAL
    input  wire epoch_t       epoch_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire               copied_i,
    output entry_step_t       entry_o,
    output logic              slot_valid_o,
    output logic        [7:0] slot_o,
    output place_t            place_o,

    // ---- leftovers
    output list_ask_t         list_o,  // an entry that holds nothing
    // verilator lint_off UNUSEDSIGNAL
    input  wire list_answer_t list_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- operations
    // verilator lint_off UNUSEDSIGNAL
    input wire heard_t heard_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire    last_bucket_i,

    // ---- work that must have ended
    // verilator lint_off UNUSEDSIGNAL
    input wire from_engine_t engine_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire downstream_t  downstream_i,

    // ---- clearing
    output ram_clear_t clear_o,
    output logic cache_clear_o
);

  typedef enum logic [3:0] {
    Off = 4'd0,
    Drain = 4'd1,
    Copy = 4'd2,
    NoteLook = 4'd3,
    Note = 4'd4,
    NoteLeave = 4'd5,
    NoteKeep = 4'd6,
    Window = 4'd7,
    WindowLook = 4'd8,
    WindowKeep = 4'd9,
    Leaders = 4'd10,
    ClearDrain = 4'd11,
    ClearRams = 4'd12,
    ClearLines = 4'd13,
    ClearWait = 4'd14,
    ClearCache = 4'd15
  } state_e;

  state_e state_q;
  logic [11:0] step_q;
  logic refresh_due_q, refreshed_q, next_bucket;
  logic entering_q, clearing_q, overflow_q;
  logic one_q;  // the note of a refresh
  logic [2:0] late_q;
  logic [3:0] quiet_q;  // what the engine's stages left behind has been heard of

  // Each memory job holds a credit until it is done.
  localparam int unsigned MostWrites = 127;
  typedef logic [$clog2(MostWrites+1)-1:0] credits_t;
  credits_t credits;
  logic writes_done;
  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(MostWrites)
  ) i_writes (
      .*,
      .take_i(downstream_i.job_write),
      .give_i(downstream_i.job_done),
      .available_o(),
      .count_o(credits)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign writes_done = credits == credits_t'(MostWrites);

  order_t order;
  assign step_o = '{
          active: state_q != Off,
          order: order,
          cell_from: next_bucket ? CellNext : CellKeep,
          again: 1'b0
      };
  assign refresh_o = '{due: refresh_due_q, under_way: refresh_due_q || one_q || late_q != '0, done: refreshed_q};
  assign slot_valid_o = state_q == Leaders;
  assign slot_o = step_q[7:0];
  assign place_o = step_q[5:0];
  assign list_o = '{
          find: turn_i.go && state_q == NoteLeave,
          what: ListFree,
          from : '0,
          again: 1'b0,
          keep: turn_i.go && state_q == NoteKeep && !list_i.busy && list_i.found,
          drop: 1'b0
      };
  assign next_bucket = turn_i.go && state_q == ClearLines;
  assign clear_o = '{valid: state_q == ClearRams, at: step_q};
  assign state_o = '{
          entering: entering_q,
          clearing: clearing_q,
          forget: state_q == Copy,
          leads: state_q == Leaders && epoch_i.here && heard_i.mine && step_q != '0,
          overflow: overflow_q
      };

  always_comb begin
    order = '0;
    case (state_q)
      NoteLook: begin
        order.valid = !step_q[9];
        order.op = OpLook;
        order.at = step_q[8:0];
      end
      Note: begin
        order.valid = heard_i.noted;
        order.op = OpLeave;
        order.at = step_q[8:0];
      end
      WindowLook: begin
        order.valid = heard_i.used;
        order.op = OpLook;
        order.at = 9'(place_o);
        order.window = 1'b1;
      end
      WindowKeep: begin
        order.valid = 1'b1;
        order.op = OpKeep;
        order.at = 9'(place_o);
      end
      ClearRams: begin
        order.valid = step_q == '1;
        order.op = OpClear;
      end
      ClearLines: begin
        order.valid = !last_bucket_i;
        order.op = OpClear;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    entry_o       <= '0;
    cache_clear_o <= 1'b0;
    quiet_q       <= {quiet_q[2:0], engine_i.quiet};

    refreshed_q   <= one_q && state_q == Off;
    late_q        <= {late_q[1:0], one_q};
    if (state_q == Off) one_q <= 1'b0;
    if (turn_i.note) refresh_due_q <= 1'b0;
    if (engine_i.refresh) refresh_due_q <= 1'b1;

    if (turn_i.go) begin
      case (state_q)
        Off: begin
          step_q <= '0;
          if (turn_i.enter) begin
            entering_q <= 1'b1;
            state_q    <= Drain;
          end
          if (turn_i.clear) begin
            clearing_q <= 1'b1;
            state_q    <= ClearDrain;
          end
          if (turn_i.note) begin
            one_q       <= 1'b1;
            step_q[8:6] <= epoch_i.node;
            state_q     <= NoteLook;
          end
        end

        Drain: begin
          // The previous operation may have left work to do.
          if (turn_i.waits) state_q <= Off;
          else if (&quiet_q && downstream_i.transmit_idle) begin
            entry_o.copy <= 1'b1;
            state_q <= Copy;
          end
        end
        Copy: if (copied_i) state_q <= NoteLook;

        // From now on all pending notes are leftovers, except those of older writes.
        NoteLook: begin
          if (step_q[9]) step_q <= '0;
          state_q <= step_q[9] ? Window : Note;
        end
        Note: begin
          step_q  <= step_q + 1'b1;
          state_q <= heard_i.noted ? NoteLeave : one_q ? Off : NoteLook;
        end
        NoteLeave: state_q <= !heard_i.settled ? NoteKeep : one_q ? Off : NoteLook;
        NoteKeep:
        if (!list_i.busy) begin
          overflow_q <= overflow_q || !list_i.found;
          state_q    <= one_q ? Off : NoteLook;
        end

        // Writes in flight continue if this node still leads their slot.
        Window: begin
          state_q <= WindowLook;
          if (step_q[6]) begin
            step_q  <= '0;
            state_q <= Leaders;
          end
        end
        WindowLook: begin
          if (!heard_i.used) step_q <= step_q + 1'b1;
          state_q <= heard_i.used ? WindowKeep : Window;
        end
        WindowKeep: begin
          step_q  <= step_q + 1'b1;
          state_q <= Window;
        end

        Leaders: begin
          step_q <= step_q + 1'b1;
          if (step_q[8]) begin
            entry_o.entered <= 1'b1;
            entering_q <= 1'b0;
            state_q    <= Off;
          end
        end

        ClearDrain: begin
          if (turn_i.waits) begin
            clearing_q <= 1'b0;
            state_q    <= Off;
          end else if (&quiet_q && writes_done && downstream_i.transmit_idle) state_q <= ClearRams;
        end
        ClearRams: begin
          overflow_q <= 1'b0;
          step_q     <= step_q + 1'b1;
          if (step_q == '1) state_q <= ClearLines;
        end
        ClearLines: if (last_bucket_i) state_q <= ClearWait;
        ClearWait: begin
          if (writes_done && &quiet_q) begin
            cache_clear_o <= 1'b1;
            state_q       <= ClearCache;
          end
        end
        default: begin
          if (!cache_clear_o && !downstream_i.cache_clearing) begin
            clearing_q <= 1'b0;
            state_q    <= Off;
          end
        end
      endcase
    end

    if (rst_i) begin
      state_q       <= Off;
      one_q         <= 1'b0;
      late_q        <= '0;
      refresh_due_q <= 1'b0;
      refreshed_q   <= 1'b0;
      entering_q    <= 1'b0;
      clearing_q    <= 1'b0;
      overflow_q    <= 1'b0;
      entry_o       <= '0;
      cache_clear_o <= 1'b0;
      quiet_q       <= '0;
    end
  end

  `ASSERT(one_thing, $countones({turn_i.enter, turn_i.clear, turn_i.note})
          <= 1 && !((turn_i.enter || turn_i.clear || turn_i.note) && step_o.active), "two things at once")

endmodule
`default_nettype wire
