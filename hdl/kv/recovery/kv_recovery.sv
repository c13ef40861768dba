// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Slow and background work: repetitions, epochs, leftovers, a node's return, clearing the table. See sections 5, 6, 8
/// and 10 of docs/design/kv-protocol.md, and docs/design/kv-core.md.
///
/// Behaviour: grants one part at a time, in this order: a lane to settle; a request that the engine handed on
/// (kv_recovery_request); a leftover to settle; a refreshed way's note; an epoch to enter or a table to clear
/// (kv_recovery_epoch). In an epoch and without a fault follow: `enter` and `entered` (kv_recovery_entered), writes in
/// flight (kv_recovery_retry), leftovers (kv_recovery_leftover_settle), notes in buckets that a client wants to read
/// (kv_recovery_retry), and fetching (kv_recovery_fetch). All work is done by operations of the engine
/// (kv_engine_pkg::op_e), each of which takes effect at once or not at all. The granted part continues when no
/// operation is in progress. An operation's cell is the only copy of its subject: OpLook stores its findings there for
/// the next operation. Requests stop only while a handed-on request is handled, an epoch is entered or the table is
/// cleared. Otherwise they run between the operations.
///
/// The timer fires every retry_cycles. A write is repeated at the second tick after it was sent, so after one to two
/// periods. A leader repeats its own leftovers one after another. A member requests all its leftovers at once. With
/// dead_i no frame is sent.
/// Latency: not guaranteed. Entering an epoch takes 92 cycles for the registers, 7 for each note's place, 2 for each
/// window place, 12 for each note and write, and 256 for the slots.
/// Reset: forgets everything.
/// Requirements: the table is cleared before the first epoch. The queue's head does not change while the handed-on
/// request is processed.
module kv_recovery
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
#(
    parameter kv_config_t  Config       = DefaultConfig,
    /// At most 2^LeftoverBits leftovers. One more is a fault.
    parameter int unsigned LeftoverBits = 10
) (
    input wire clk_i,
    input wire rst_i,

    // ---- registers
    // verilator lint_off UNUSEDSIGNAL
    input  wire kv_settings_t       settings_i,
    input  wire entering_t          entering_i,
    // verilator lint_on UNUSEDSIGNAL
    output entry_step_t             step_o,
    output logic              [7:0] slot_o,
    input  wire               [2:0] leader_i,       // in the same cycle
    input  wire                     clear_table_i,
    input  wire fetch_order_t       fetch_i,
    output fetch_left_t             fetch_left_o,
    /// The core is faulty, so no frame is sent.
    input  wire                     dead_i,
    output recovery_state_t         state_o,

    // ---- engine
    output to_engine_t        engine_o,
    // verilator lint_off UNUSEDSIGNAL
    input  wire from_engine_t engine_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic              stop_o,

    // ---- transmit and memory
    input  wire downstream_t downstream_i,
    output logic             cache_clear_o
);

  // verilator lint_off UNUSEDSIGNAL
  staged_t staged;
  // verilator lint_on UNUSEDSIGNAL
  assign staged = settings_i.staged;

  /// The part that has the turn.
  typedef enum logic [3:0] {
    Idle = 4'd0,
    Lane = 4'd1,  // one to be settled
    Handed = 4'd2,
    Epoch = 4'd3,  // or an empty table
    Say = 4'd4,  // `enter`, `entered`
    Repeat = 4'd5,
    Settle = 4'd6,
    FetchWhere = 4'd7,
    FetchLook = 4'd8,
    FetchGo = 4'd9,
    Refresh = 4'd10  // the note of a refreshed way becomes a leftover
  } state_e;

  state_e state_q;
  logic op_valid_q, slow_there_q;  // slow_there_q: the head of the queue is kv_recovery's
  logic go;  // no operation is under way: the state counts
  assign go = !op_valid_q;

  // ---- work to do

  logic [31:0] timer_q;
  logic tick_q, settle_q, clear_pending_q;
  subject_t head_q;  // that, a cycle late: the queue's output is far away
  always_ff @(posedge clk_i) head_q <= engine_i.head;
  lane_request_t settle_lane_q;

  logic [LeftoverBits:0] list_count;

  // One cycle late, in nearby registers.
  epoch_t epoch;
  logic settled_all_q;
  assign epoch.node = staged.node;
  always_ff @(posedge clk_i) begin
    epoch.here           <= staged.epoch[15:0] != '0 && staged.members[staged.node] && !dead_i;
    epoch.others         <= staged.members & ~(8'd1 << staged.node);
    epoch.alone          <= epoch.others == '0;
    epoch.serving_others <= epoch.others & staged.serving_members;
    epoch.bucket_mask    <= bucket_t'('1) << settings_i.direct.bucket_bits;
    settled_all_q        <= list_count == '0;
  end

  // ---- the operation

  order_t order, own_order, order_q;
  cell_t cell_q;  // what it is about
  cell_from_e cell_from;
  heard_t heard_q;
  refresh_t refresh;
  op_t op;
  ram_clear_t clear;
  logic [31:0] walked_version;
  assign engine_o = '{
          op_valid: op_valid_q,
          op: op,
          walked_version: walked_version,
          refreshing: refresh.under_way,
          clear: clear
      };

  // ---- the part that has the turn

  logic idle, epoch_starts, handed_starts, settler_starts, repeater_starts, refresh_starts;
  // verilator lint_off UNUSEDSIGNAL
  step_t settler, handed, repeater, roll, epoch_step;
  // verilator lint_on UNUSEDSIGNAL
  logic settler_due, settler_own_done, repeater_writes, repeater_notes;
  logic roll_due;
  question_t question;
  // A part is chosen in one cycle and begins in the next. The choice stays due until then, and each part checks again
  // whether this node takes part.
  state_e turn, turn_q;
  always_comb begin
    turn = Idle;
    if (settle_q) turn = Lane;
    else if (slow_there_q) turn = Handed;
    else if (settler_own_done) turn = Settle;
    else if (refresh.due) turn = Refresh;
    else if (entering_i.valid || clear_pending_q) turn = Epoch;
    else if (!epoch.here) turn = Idle;  // nothing is sent
    else if (roll_due) turn = Say;
    else if (repeater_writes) turn = Repeat;
    else if (settler_due) turn = Settle;
    else if (repeater_notes) turn = Repeat;
    else if (question.valid) turn = FetchWhere;
  end
  assign idle = go && state_q == Idle;
  assign handed_starts = idle && turn_q == Handed;
  assign epoch_starts = idle && turn_q == Epoch;
  assign settler_starts = idle && turn_q == Settle;
  assign refresh_starts = idle && turn_q == Refresh;
  assign repeater_starts = idle && turn_q == Repeat;
  always_ff @(posedge clk_i) begin
    turn_q <= idle && turn_q == Idle ? turn : Idle;
    if (rst_i) turn_q <= Idle;
  end

  // ---- entering an epoch, clearing the table

  epoch_state_t epoch_state;
  logic epoch_slot_valid;
  logic [7:0] epoch_slot;
  place_t epoch_place;
  logic last_bucket_q;
  // verilator lint_off UNUSEDSIGNAL
  list_ask_t epoch_list;
  // verilator lint_on UNUSEDSIGNAL
  always_ff @(posedge clk_i) last_bucket_q <= (cell_q.bucket | epoch.bucket_mask) == '1;

  // ---- a leader, a window place: requested in one cycle, known in the next

  assign slot_o = epoch_slot_valid ? epoch_slot : cell_q.bucket[7:0];
  place_t place, settler_place, settler_own_place, repeater_place;
  logic settler_own;
  logic any_q;
  assign place = state_q == Settle ? settler_place : state_q == Epoch ? epoch_place : repeater_place;
  always_ff @(posedge clk_i) begin
    heard_q.leader <= leader_i;
    heard_q.mine   <= leader_i == staged.node;
    heard_q.used   <= engine_i.window[place];
    heard_q.written <= engine_i.window[place] && !(settler_own && settler_own_place == place);
    any_q    <= engine_i.window != '0;
  end

  // ---- leftovers

  occasion_t occasion;
  assign occasion = '{tick: tick_q, entered: step_o.entered, forget: epoch_state.forget};

  // verilator lint_off UNUSEDSIGNAL
  list_ask_t settler_list, handed_list, list_ask;
  // verilator lint_on UNUSEDSIGNAL
  list_answer_t list;
  always_comb begin
    list_ask = settler_list;
    if (handed_list.find) begin
      list_ask.what = handed_list.what;
      list_ask.from = handed_list.from;
    end
    if (epoch_list.find) list_ask.what = epoch_list.what;
    list_ask.find  = settler_list.find || handed_list.find || epoch_list.find;
    list_ask.again = handed_list.again;
    list_ask.keep  = epoch_list.keep;
    list_ask.drop  = settler_list.drop || handed_list.drop;
  end
  kv_recovery_leftover_list #(
      .Bits(LeftoverBits)
  ) i_leftovers (
      .*,
      .clear_i (clear.valid),
      .ask_i   (list_ask),
      .bucket_i(cell_q.bucket),
      .cell_i  (cell_q),
      .head_i  (head_q.kv),
      .answer_o(list),
      .count_o (list_count)
  );
  assign state_o.leftovers = 12'(list_count);

  // The note of a refresh enters the list like notes at the beginning of an epoch. The walk is reset, and begins when
  // the note is in the list.
  occasion_t settler_occasion;
  always_comb begin
    settler_occasion = occasion;
    settler_occasion.entered |= refresh.done;
    settler_occasion.forget |= refresh_starts;
  end
  logic [31:0] settler_request;
  kv_recovery_leftover_settle #(
      .LeftoverBits(LeftoverBits)
  ) i_settler (
      .*,
      .turn_i         ('{start: settler_starts, go: go}),
      .step_o         (settler),
      .due_o          (settler_due),
      .own_done_o     (settler_own_done),
      .leftover_done_i(engine_i.leftover_done),
      .occasion_i     (settler_occasion),
      .clear_i        (clear.valid),
      .epoch_i        (epoch),
      .heard_i        (heard_q),
      .none_i         (settled_all_q),
      .list_o         (settler_list),
      .list_keep_i    (epoch_list.keep),
      .list_i         (list),
      .place_o        (settler_place),
      .own_o          (settler_own),
      .own_place_o    (settler_own_place),
      .request_o      (settler_request)
  );

  // ---- items to fetch

  logic fetch_mine, fetch_go, fetch_taken, fetch_own, fetch_came;
  bucket_t fetch_bucket;
  fetch_step_t fetch_step;
  assign fetch_step = '{taken: fetch_taken, own: fetch_own, came: fetch_came};
  kv_recovery_fetch #(
      .Config(Config)
  ) i_fetcher (
      .*,
      .order_i   (fetch_i),
      .left_o    (fetch_left_o),
      .epoch_i   (epoch),
      .tick_i    (tick_q),
      .restart_i (step_o.entered),
      .clear_i   (cache_clear_o),
      .question_o(question),
      .step_i    (fetch_step),
      .answer_i  (handed.cell_from == CellHead),
      .bucket_o  (fetch_bucket),
      .head_i    (head_q.kv),
      .mine_o    (fetch_mine)
  );
  assign fetch_go    = go && state_q == FetchGo && question.valid && epoch.here;
  assign fetch_taken = fetch_go && (question.lanes || !heard_q.mine);
  assign fetch_own   = fetch_go && !question.lanes && heard_q.mine;  // its own word counts

  // ---- a request that was handed on

  logic handed_ends;
  greeting_t greeting;
  bucket_t handed_bucket;
  kv_recovery_request #(
      .LeftoverBits(LeftoverBits)
  ) i_handed (
      .*,
      .turn_i          ('{start: handed_starts, go: go}),
      .step_o          (handed),
      .ends_o          (handed_ends),
      .head_i          (head_q),
      .epoch_i         (epoch),
      .heard_i         (heard_q),
      .greeting_o      (greeting),
      .mine_i          (fetch_mine),
      .bucket_i        (fetch_bucket),
      .came_o          (fetch_came),
      .list_o          (handed_list),
      .list_i          (list),
      .bucket_o        (handed_bucket),
      .walked_version_o(walked_version)
  );

  // ---- nodes that have entered

  kv_recovery_entered i_roll (
      .*,
      .occasion_i(occasion),
      .leads_i   (epoch_state.leads),
      .epoch_i   (epoch),
      .entering_i(epoch_state.entering),
      .none_i    (settled_all_q && list_count == '0),
      .greeting_i(greeting),
      .due_o     (roll_due),
      .say_i     (go && state_q == Say),
      .step_o    (roll),
      .opened_o  (state_o.opened)
  );

  // ---- repeated messages

  kv_recovery_retry i_repeater (
      .*,
      .turn_i    ('{start: repeater_starts, go: go}),
      .step_o    (repeater),
      .writes_o  (repeater_writes),
      .notes_o   (repeater_notes),
      .occasion_i(occasion),
      .here_i    (epoch.here),
      .any_i     (any_q),
      .place_o   (repeater_place),
      .cell_i    (cell_q),
      .heard_i   (heard_q)
  );

  assign stop_o = engine_i.handed_on || slow_there_q || engine_i.settle || settle_q || epoch_state.entering
      || epoch_state.clearing;
  assign state_o.clearing = clear_pending_q || epoch_state.clearing;

  // ---- the subject of the operation

  always_comb begin
    own_order = '0;
    own_order.valid = state_q == Lane || fetch_taken;
    case (state_q)
      Lane:    own_order.op = OpResolve;
      FetchGo: begin
        own_order.op       = OpSend;
        own_order.send     = 1'b1;
        own_order.location = !question.lanes;
        own_order.kind     = question.lanes ? KindLane : KindFetch;
        // A client's request has no sender's node number.
        own_order.at       = question.lanes ? '0 : {epoch.node, 6'd0};
        own_order.nodes    = 8'd1 << (question.lanes ? question.node : heard_q.leader);
      end
      default: ;
    endcase
  end
  assign order = own_order | roll.order | epoch_step.order | handed.order | settler.order | repeater.order;

  always_comb begin
    cell_from = CellKeep;
    if (go) begin
      case (state_q)
        Idle: if (turn_q == Epoch || turn_q == Say || turn_q == Refresh) cell_from = CellNone;
        Lane: cell_from = CellSettle;
        Handed: cell_from = handed.cell_from;
        Settle: cell_from = settler.cell_from;
        FetchWhere: cell_from = CellFetch;
        FetchGo: cell_from = CellAsk;
        Epoch: cell_from = epoch_step.cell_from;
        default: ;
      endcase
    end
  end

  lane_request_t asked;  // how a leftover, or what is to be fetched, is asked for
  assign asked = settler.active ?
      '{lane: '0, request: settler_request} :
      '{lane: question.lane, request: question.request};
  kv_recovery_cell i_operation (
      .*,
      .from_i        (cell_from),
      .settle_i      (settle_lane_q),
      .list_i        (list.what),
      .fetch_bucket_i(fetch_bucket),
      .fetch_way_i   (question.way),
      .ask_i         (asked),
      .head_bucket_i (handed_bucket),
      .seen_valid_i  (op_valid_q && engine_i.op_done && order_q.op == OpLook && !order_q.head),
      .seen_i        (engine_i.seen),
      .order_i       (order_q),
      .head_i        (head_q.kv),
      .cell_o        (cell_q),
      .op_o          (op)
  );

  epoch_turn_t epoch_turn;
  assign epoch_turn = '{
          enter: epoch_starts && entering_i.valid && !step_o.entered,
          clear: epoch_starts && !entering_i.valid,
          note: refresh_starts,
          go: go,
          // The previous operation may have left work to do.
          waits:
          slow_there_q
          ||
          settle_q
          ||
          settler_own_done
          ||
          refresh.due
      };
  assign state_o.overflow = epoch_state.overflow;
  kv_recovery_epoch i_epoch (
      .*,
      .turn_i       (epoch_turn),
      .step_o       (epoch_step),
      .state_o      (epoch_state),
      .refresh_o    (refresh),
      .epoch_i      (epoch),
      .copied_i     (entering_i.copied),
      .entry_o      (step_o),
      .slot_valid_o (epoch_slot_valid),
      .slot_o       (epoch_slot),
      .place_o      (epoch_place),
      .list_o       (epoch_list),
      .list_i       (list),
      .heard_i      (heard_q),
      .last_bucket_i(last_bucket_q),
      .clear_o      (clear)
  );

  always_ff @(posedge clk_i) begin
    state_o.retry <= 1'b0;

    // The timer.
    tick_q <= 1'b0;
    if (timer_q == '0 || timer_q > settings_i.direct.retry_cycles) begin
      timer_q <= settings_i.direct.retry_cycles;
      tick_q  <= 1'b1;
    end else timer_q <= timer_q - 1'b1;

    // Events reported by the engine.
    if (engine_i.handed_on) slow_there_q <= 1'b1;
    if (engine_i.settle) begin
      settle_q      <= 1'b1;
      settle_lane_q <= engine_i.settled;
    end
    if (clear_table_i) clear_pending_q <= 1'b1;
    if (clear.valid) clear_pending_q <= 1'b0;

    if (op_valid_q) begin
      if (engine_i.op_done) begin
        op_valid_q      <= 1'b0;
        heard_q.noted   <= engine_i.seen.noted;
        heard_q.same    <= engine_i.seen.same;
        heard_q.settled <= engine_i.seen.settled;
      end
    end else begin
      op_valid_q <= order.valid;
      order_q    <= order;
      case (state_q)
        Idle:       state_q <= turn_q;
        Lane: begin
          settle_q <= 1'b0;
          state_q  <= Idle;
        end
        Say:        state_q <= Idle;
        FetchWhere: state_q <= FetchLook;
        FetchLook:  state_q <= FetchGo;
        FetchGo: begin
          state_o.retry <= fetch_taken && question.again;
          state_q <= Idle;
        end
        default:    if (!epoch_step.active && !handed.active && !settler.active && !repeater.active) state_q <= Idle;
      endcase
    end
    if (handed_ends) slow_there_q <= 1'b0;
    if (repeater.again || settler.again || roll.again) state_o.retry <= 1'b1;

    if (rst_i) begin
      state_q         <= Idle;
      op_valid_q      <= 1'b0;
      slow_there_q    <= 1'b0;
      settle_q        <= 1'b0;
      clear_pending_q <= 1'b0;
      timer_q         <= '0;
      tick_q          <= 1'b0;
      state_o.retry   <= 1'b0;
    end
  end

  `ASSERT(slow_alone, !engine_i.handed_on || !slow_there_q,
          "a request was handed on before the one before was dealt with")
  `ASSERT(settle_alone, !engine_i.settle || !settle_q, "a lane was to be settled before the one before was")

endmodule
`default_nettype wire
