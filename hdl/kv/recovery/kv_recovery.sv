// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What is slow or done in the background: repetition, epochs, leftovers, a node's return, an empty table. docs/kv-protocol.md,
/// sections 5, 6, 8 and 10; docs/kv-core.md.
///
/// Behaviour: the arbiter of its parts; one thing at a time, in this order: a lane that is settled; a request that the engine handed on
/// (kv_recovery_request); a leftover that is settled; a refreshed way's note; an epoch to enter or a table to clear (kv_recovery_epoch); then, in an epoch and with nothing wrong,
/// `enter` and `entered` (kv_recovery_entered), writes in flight (kv_recovery_retry), leftovers (kv_recovery_leftover_settle), notes that somebody wants to read (kv_recovery_retry),
/// fetching (kv_recovery_fetch). All of it is operations of the engine (kv_core_pkg::op_e), each of which takes effect at once or not at all; the
/// part whose turn it is goes on when there is none. An operation's cell is the only copy of what it is
/// about: OpLook puts there what was seen, for the next one. Requests are stopped while one that was handed on is dealt with, an epoch is
/// entered or the table is cleared, and else go on between the operations.
///
/// The timer goes off each retry_cycles; a write is repeated when it has seen the timer go off twice, so after one to two of them.
/// A leader's own leftovers are repeated one after another, a member's are all asked for at once. With dead_i no frame is sent.
/// Latency: none promised. Entering an epoch: 92 cycles for the registers, 7 for each note's place, 2 for each place of the window, 12 for
/// each note and write, 256 for the slots.
/// Reset: forgets everything.
/// Requirements: the table is cleared before the first epoch. head_i stays while what was handed on is dealt with.
module kv_recovery
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter int unsigned LaneBits     = 12,
    /// 2^n leftovers at most; one more is a fault.
    parameter int unsigned LeftoverBits = 10
) (
    input wire clk_i,
    input wire rst_i,

    // ---- registers
    input  wire         enter_valid_i,
    output logic        enter_copy_o,
    input  wire         copied_i,
    output logic        entered_o,
    input  wire  [15:0] epoch_i,
    input  wire  [ 2:0] node_i,
    input  wire  [ 7:0] members_i,
    input  wire  [ 7:0] serving_members_i,
    input  wire  [31:0] retry_cycles_i,
    input  wire  [ 5:0] bucket_bits_i,
    output logic [ 7:0] slot_o,
    input  wire  [ 2:0] leader_i,            // in the same cycle
    input  wire         clear_table_i,
    output logic        clearing_o,
    input  wire         sync_count_write_i,
    input  wire         sync_lanes_write_i,
    input  wire  [31:0] sync_data_i,
    input  wire  [31:0] sync_from_i,
    output logic [31:0] sync_count_o,
    output logic [16:0] sync_lanes_o,
    /// The core is faulty: nothing is sent.
    input  wire         dead_i,
    output logic        opened_o,
    /// There were more leftovers than there is room for.
    output logic        overflow_o,
    output logic [11:0] leftovers_o,
    output logic        retry_o,

    // ---- engine
    output logic                           op_valid_o,
    output op_t                            op_o,
    input  wire                            op_done_i,
    input  wire seen_t                     seen_i,
    output logic              [      31:0] walked_version_o,
    input  wire                            slow_valid_i,
    input  wire bucket_t                   slow_bucket_i,
    // verilator lint_off UNUSEDSIGNAL
    input  wire subject_t                  head_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire                            settle_valid_i,
    input  wire lane_number_t              settle_lane_i,
    input  wire               [      31:0] settle_request_i,
    input  wire                            pending_i,
    input  wire filter_cell_t              pending_cell_i,
    input  wire                            leftover_done_i,
    input  wire                            refresh_i,
    output logic                           refreshing_o,
    output logic                           stop_o,
    input  wire                            quiet_i,
    output logic                           clear_o,
    output logic              [      11:0] clear_at_o,
    input  wire               [Places-1:0] window_i,

    // ---- transmit and memory
    input  wire  transmit_idle_i,
    /// A write's job was given to memory; memory has done one.
    input  wire  job_write_i,
    input  wire  done_i,
    output logic cache_clear_o,
    input  wire  cache_clearing_i
);

  /// Whose turn it is.
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
  logic op_valid_q, slow_there_q;  // slow_there_q: the head of the queue is the sequencer's
  logic go;  // no operation is under way: the state counts
  assign go = !op_valid_q;

  // ---- what has to be done

  logic [31:0] timer_q;
  logic tick_q, settle_q, clear_pending_q;
  subject_t head_q;  // that, a cycle late: the queue's output is far away
  always_ff @(posedge clk_i) head_q <= head_i;
  lane_number_t settle_lane_q;
  logic [31:0] settle_request_q;

  logic [LeftoverBits:0] list_count;

  // A cycle late, and so near.
  logic here;  // in an epoch, and alive
  logic [7:0] others, serving_others;
  logic alone_q, settled_all_q;
  bucket_t mask;  // the bits that a bucket's number does not have
  always_ff @(posedge clk_i) begin
    here           <= epoch_i != '0 && members_i[node_i] && !dead_i;
    others         <= members_i & ~(8'd1 << node_i);
    alone_q        <= others == '0;
    serving_others <= others & serving_members_i;
    settled_all_q  <= list_count == '0;
    mask           <= bucket_t'('1) << bucket_bits_i;
  end

  // ---- the operation

  logic order_valid;
  order_t order, own_order, order_q;
  cell_t cell_q;  // what it is about
  cell_from_e cell_from, settler_cell, handed_cell;
  logic noted_q, same_q, settled_q;
  assign op_valid_o = op_valid_q;

  // ---- whose turn it is

  logic idle, epoch_starts, handed_starts, settler_starts, repeater_starts, refresh_starts, refresh_due, refreshed;
  logic epoch_active, handed_active, settler_active, repeater_active;
  logic settler_due, settler_own_done, repeater_writes, repeater_notes;
  logic roll_due, fetch_valid;
  // Chosen in one cycle, begun in the next: what is chosen stays due until then, and whether this node is there is asked again by each.
  state_e turn, turn_q;
  always_comb begin
    turn = Idle;
    if (settle_q) turn = Lane;
    else if (slow_there_q) turn = Handed;
    else if (settler_own_done) turn = Settle;
    else if (refresh_due) turn = Refresh;
    else if (enter_valid_i || clear_pending_q) turn = Epoch;
    else if (!here) turn = Idle;  // nothing is sent
    else if (roll_due) turn = Say;
    else if (repeater_writes) turn = Repeat;
    else if (settler_due) turn = Settle;
    else if (repeater_notes) turn = Repeat;
    else if (fetch_valid) turn = FetchWhere;
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

  // ---- an epoch, an empty table

  logic entering, clearing, epoch_forget, epoch_leads, epoch_slot_valid;
  logic [7:0] epoch_slot;
  place_t epoch_place;
  logic epoch_find, epoch_keep, epoch_next_bucket, epoch_order_valid;
  order_t epoch_order;
  logic   last_bucket_q;
  always_ff @(posedge clk_i) last_bucket_q <= (cell_q.bucket | mask) == '1;

  // ---- a leader, a place of the window: asked for in one cycle, known in the next

  assign slot_o = epoch_slot_valid ? epoch_slot : cell_q.bucket[7:0];
  logic [2:0] leader_q;
  logic mine_q;
  place_t place, settler_place, settler_own_place, repeater_place;
  logic settler_own;
  logic used_q, any_q, written_q;  // written_q: used, by a client's write
  assign place = state_q == Settle ? settler_place : state_q == Epoch ? epoch_place : repeater_place;
  always_ff @(posedge clk_i) begin
    leader_q <= leader_i;
    mine_q   <= leader_i == node_i;
    used_q   <= window_i[place];
    written_q <= window_i[place] && !(settler_own && settler_own_place == place);
    any_q    <= window_i != '0;
  end

  // ---- leftovers

  logic list_busy, list_found, list_valid, list_newer, list_equal, list_same;
  logic [LeftoverBits-1:0] list_shown;
  cell_t list_cell;
  logic settler_find, settler_drop, handed_find, handed_again, handed_drop;
  list_find_e settler_what, handed_what;
  logic [  LeftoverBits:0] settler_from;
  logic [LeftoverBits-1:0] handed_from;
  kv_recovery_leftover_list #(
      .Bits(LeftoverBits)
  ) i_leftovers (
      .clk_i,
      .rst_i,
      .clear_i (clear_o),
      .find_i  (settler_find || handed_find || epoch_find),
      .what_i  (epoch_find ? ListFree : handed_find ? handed_what : settler_what),
      .from_i  (handed_find ? {1'b0, handed_from} : settler_from),
      .again_i (handed_again),
      .bucket_i(cell_q.bucket),
      .busy_o  (list_busy),
      .found_o (list_found),
      .at_o    (list_shown),
      .valid_o (list_valid),
      .cell_o  (list_cell),
      .keep_i  (epoch_keep),
      .drop_i  (settler_drop || handed_drop),
      .cell_i  (cell_q),
      .head_i  (head_q.kv),
      .newer_o (list_newer),
      .equal_o (list_equal),
      .same_o  (list_same),
      .count_o (list_count)
  );
  assign leftovers_o = 12'(list_count);

  logic [31:0] settler_request;
  logic settler_order_valid, settler_again;
  order_t settler_order;
  kv_recovery_leftover_settle #(
      .LeftoverBits(LeftoverBits)
  ) i_settler (
      .clk_i,
      .rst_i,
      .start_i      (settler_starts),
      .go_i         (go),
      .active_o     (settler_active),
      .due_o        (settler_due),
      .own_done_o   (settler_own_done),
      .leftover_done_i,
      .tick_i       (tick_q),
      .entered_i    (entered_o || refreshed),
      .forget_i     (epoch_forget || refresh_starts),  // there are no leftovers
      .clear_i      (clear_o),
      .here_i       (here),
      .node_i,
      .others_i     (others),
      .alone_i      (alone_q),
      .leader_i     (leader_q),
      .mine_i       (mine_q),
      .none_i       (settled_all_q),
      .list_find_o  (settler_find),
      .list_what_o  (settler_what),
      .list_from_o  (settler_from),
      .list_drop_o  (settler_drop),
      .list_keep_i  (epoch_keep),
      .list_busy_i  (list_busy),
      .list_found_i (list_found),
      .list_at_i    (list_shown),
      .place_o      (settler_place),
      .used_i       (used_q),
      .own_o        (settler_own),
      .own_place_o  (settler_own_place),
      .cell_from_o  (settler_cell),
      .request_o    (settler_request),
      .order_valid_o(settler_order_valid),
      .order_o      (settler_order),
      .settled_i    (settled_q),
      .again_o      (settler_again)
  );

  // ---- what is to be fetched

  logic fetch_lanes, fetch_again, fetch_mine, fetch_go, fetch_taken, fetch_own, fetch_came;
  logic [31:0] fetch_request;
  logic [1:0] fetch_way;
  lane_number_t fetch_lane;
  logic [2:0] fetch_node;
  bucket_t fetch_bucket;
  kv_recovery_fetch #(
      .LaneBits(LaneBits)
  ) i_fetcher (
      .clk_i,
      .rst_i,
      .count_write_i   (sync_count_write_i),
      .lanes_write_i   (sync_lanes_write_i),
      .data_i          (sync_data_i),
      .from_i          (sync_from_i),
      .count_o         (sync_count_o),
      .lanes_o         (sync_lanes_o),
      .bucket_mask_i   (mask),
      .here_i          (here),
      .serving_others_i(serving_others),
      .tick_i          (tick_q),
      .restart_i       (entered_o),
      .clear_i         (cache_clear_o),
      .ask_valid_o     (fetch_valid),
      .ask_lanes_o     (fetch_lanes),
      .ask_again_o     (fetch_again),
      .ask_request_o   (fetch_request),
      .ask_way_o       (fetch_way),
      .ask_lane_o      (fetch_lane),
      .ask_node_o      (fetch_node),
      .taken_i         (fetch_taken),
      .own_i           (fetch_own),
      .answer_i        (handed_cell == CellHead),
      .bucket_o        (fetch_bucket),
      .head_i          (head_q.kv),
      .mine_o          (fetch_mine),
      .came_i          (fetch_came)
  );
  assign fetch_go    = go && state_q == FetchGo && fetch_valid && here;
  assign fetch_taken = fetch_go && (fetch_lanes || !mine_q);
  assign fetch_own   = fetch_go && !fetch_lanes && mine_q;  // its own word counts

  // ---- a request that was handed on

  logic handed_ends, enter_heard, entered_heard;
  bucket_t handed_bucket;
  logic handed_order_valid;
  order_t handed_order;
  kv_recovery_request #(
      .LeftoverBits(LeftoverBits)
  ) i_handed (
      .clk_i,
      .rst_i,
      .start_i      (handed_starts),
      .go_i         (go),
      .active_o     (handed_active),
      .ends_o       (handed_ends),
      .head_i       (head_q),
      .here_i       (here),
      .bucket_mask_i(mask),
      .leader_i     (leader_q),
      .slow_i       (slow_valid_i),
      .slow_bucket_i,
      .enter_o      (enter_heard),
      .entered_o    (entered_heard),
      .mine_i       (fetch_mine),
      .bucket_i     (fetch_bucket),
      .came_o       (fetch_came),
      .list_find_o  (handed_find),
      .list_what_o  (handed_what),
      .list_from_o  (handed_from),
      .list_again_o (handed_again),
      .list_drop_o  (handed_drop),
      .list_busy_i  (list_busy),
      .list_found_i (list_found),
      .list_valid_i (list_valid),
      .list_way_i   (list_cell.way),
      .list_newer_i (list_newer),
      .list_equal_i (list_equal),
      .list_same_i  (list_same),
      .cell_from_o  (handed_cell),
      .bucket_o     (handed_bucket),
      .order_valid_o(handed_order_valid),
      .order_o      (handed_order),
      .same_i       (same_q),
      .seen_valid_i (op_valid_q && op_done_i),
      .seen_i,
      .walked_version_o
  );

  // ---- who has entered

  logic roll_order_valid, roll_again;
  order_t roll_order;
  kv_recovery_entered i_roll (
      .clk_i,
      .rst_i,
      .tick_i         (tick_q),
      .entered_i      (entered_o),
      .forget_i       (epoch_forget),
      .leads_i        (epoch_leads),
      .here_i         (here),
      .entering_i     (entering),
      .node_i,
      .others_i       (others),
      .none_i         (settled_all_q && list_count == '0),
      .heard_enter_i  (enter_heard),
      .heard_entered_i(entered_heard),
      .heard_node_i   (head_q.kv.node),
      .due_o          (roll_due),
      .say_i          (go && state_q == Say),
      .order_valid_o  (roll_order_valid),
      .order_o        (roll_order),
      .again_o        (roll_again),
      .opened_o
  );

  // ---- what is said again

  logic repeater_order_valid, repeater_again;
  order_t repeater_order;
  kv_recovery_retry i_repeater (
      .clk_i,
      .rst_i,
      .start_i      (repeater_starts),
      .go_i         (go),
      .active_o     (repeater_active),
      .writes_o     (repeater_writes),
      .notes_o      (repeater_notes),
      .tick_i       (tick_q),
      .entered_i    (entered_o),
      .forget_i     (epoch_forget),
      .here_i       (here),
      .pending_i,
      .pending_cell_i,
      .any_i        (any_q),
      .place_o      (repeater_place),
      .used_i       (written_q),
      .cell_i       (cell_q),
      .noted_i      (noted_q),
      .order_valid_o(repeater_order_valid),
      .order_o      (repeater_order),
      .again_o      (repeater_again)
  );

  assign stop_o = slow_valid_i || slow_there_q || settle_valid_i || settle_q || entering || clearing;
  assign clearing_o = clear_pending_q || clearing;

  // ---- what the operation is about

  always_comb begin
    own_order = '0;
    case (state_q)
      Lane:    own_order.op = OpResolve;
      FetchGo: begin
        own_order.op       = OpSend;
        own_order.send     = 1'b1;
        own_order.location = !fetch_lanes;
        own_order.kind     = fetch_lanes ? KindLane : KindFetch;
        // A client's request says nothing of the sender.
        own_order.at       = fetch_lanes ? '0 : {node_i, 6'd0};
        own_order.nodes    = 8'd1 << (fetch_lanes ? fetch_node : leader_q);
      end
      default: ;
    endcase
  end
  assign order = own_order | roll_order | epoch_order | handed_order | settler_order | repeater_order;
  assign order_valid = (state_q == Lane) || roll_order_valid || fetch_taken || epoch_order_valid
      || handed_order_valid || settler_order_valid || repeater_order_valid;

  always_comb begin
    cell_from = CellKeep;
    if (go) begin
      case (state_q)
        Idle: if (turn_q == Epoch || turn_q == Say || turn_q == Refresh) cell_from = CellNone;
        Lane: cell_from = CellSettle;
        Handed: cell_from = handed_cell;
        Settle: cell_from = settler_cell;
        FetchWhere: cell_from = CellFetch;
        FetchGo: cell_from = CellAsk;
        Epoch: if (epoch_next_bucket) cell_from = CellNext;
        default: ;
      endcase
    end
  end

  kv_recovery_cell i_operation (
      .clk_i,
      .from_i          (cell_from),
      .settle_lane_i   (settle_lane_q),
      .settle_request_i(settle_request_q),
      .list_i          (list_cell),
      .fetch_bucket_i  (fetch_bucket),
      .fetch_way_i     (fetch_way),
      .ask_lane_i      (settler_active ? '0 : fetch_lane),
      .ask_request_i   (settler_active ? settler_request : fetch_request),
      .head_bucket_i   (handed_bucket),
      .seen_valid_i    (op_valid_q && op_done_i && order_q.op == OpLook && !order_q.head),
      .seen_i,
      .order_i         (order_q),
      .head_i          (head_q.kv),
      .cell_o          (cell_q),
      .op_o
  );

  kv_recovery_epoch i_epoch (
      .*,
      .enter_i      (epoch_starts && enter_valid_i && !entered_o),
      .clear_i      (epoch_starts && !enter_valid_i),
      .note_i       (refresh_starts),
      .refresh_due_o(refresh_due),
      .refreshed_o  (refreshed),
      .go_i         (go),
      // What was under way may have left something to do.
      .waits_i      (slow_there_q || settle_q || settler_own_done || refresh_due),
      .active_o     (epoch_active),
      .entering_o   (entering),
      .clearing_o   (clearing),
      .copy_o       (enter_copy_o),
      .forget_o     (epoch_forget),
      .leads_o      (epoch_leads),
      .here_i       (here),
      .slot_valid_o (epoch_slot_valid),
      .slot_o       (epoch_slot),
      .mine_i       (mine_q),
      .place_o      (epoch_place),
      .used_i       (used_q),
      .list_find_o  (epoch_find),
      .list_keep_o  (epoch_keep),
      .list_busy_i  (list_busy),
      .list_found_i (list_found),
      .order_valid_o(epoch_order_valid),
      .order_o      (epoch_order),
      .noted_i      (noted_q),
      .settled_i    (settled_q),
      .next_bucket_o(epoch_next_bucket),
      .last_bucket_i(last_bucket_q)
  );

  always_ff @(posedge clk_i) begin
    retry_o <= 1'b0;

    // The timer.
    tick_q  <= 1'b0;
    if (timer_q == '0 || timer_q > retry_cycles_i) begin
      timer_q <= retry_cycles_i;
      tick_q  <= 1'b1;
    end else timer_q <= timer_q - 1'b1;

    // What others say.
    if (slow_valid_i) slow_there_q <= 1'b1;
    if (settle_valid_i) begin
      settle_q         <= 1'b1;
      settle_lane_q    <= settle_lane_i;
      settle_request_q <= settle_request_i;
    end
    if (clear_table_i) clear_pending_q <= 1'b1;
    if (clear_o) clear_pending_q <= 1'b0;

    if (op_valid_q) begin
      if (op_done_i) begin
        op_valid_q <= 1'b0;
        noted_q    <= seen_i.noted;
        same_q     <= seen_i.same;
        settled_q  <= seen_i.settled;
      end
    end else begin
      op_valid_q <= order_valid;
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
          retry_o <= fetch_taken && fetch_again;
          state_q <= Idle;
        end
        default:    if (!epoch_active && !handed_active && !settler_active && !repeater_active) state_q <= Idle;
      endcase
    end
    if (handed_ends) slow_there_q <= 1'b0;
    if (repeater_again || settler_again || roll_again) retry_o <= 1'b1;

    if (rst_i) begin
      state_q         <= Idle;
      op_valid_q      <= 1'b0;
      slow_there_q    <= 1'b0;
      settle_q        <= 1'b0;
      clear_pending_q <= 1'b0;
      timer_q         <= '0;
      tick_q          <= 1'b0;
      retry_o         <= 1'b0;
    end
  end

  `ASSERT(slow_alone, !slow_valid_i || !slow_there_q, "a request was handed on before the one before was dealt with")
  `ASSERT(settle_alone, !settle_valid_i || !settle_q, "a lane was to be settled before the one before was")

endmodule
`default_nettype wire
