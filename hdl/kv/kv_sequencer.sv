// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What is slow or done in the background: repetition, epochs, leftovers, a node's return, an empty table. docs/kv-protocol.md,
/// sections 5, 6, 8 and 10; docs/kv-core.md.
///
/// Behaviour: one thing at a time, in this order: what is settled; a request that the engine handed on; an epoch to enter;
/// a table to clear; then, in an epoch and with nothing wrong, what the timer asks for: writes in flight, leftovers (kv_leftovers),
/// `enter`, notes that somebody wants to read, fetching (kv_fetcher). All of it is operations of the engine (kv_core_pkg::op_e), each of
/// which takes effect at once or not at all; the state goes on when there is none. An operation's cell is the only copy of what it is
/// about: OpLook puts there what was seen, for the next one. Requests are stopped while one that was handed on is dealt with, an epoch is
/// entered or the table is cleared, and else go on between the operations.
///
/// The timer goes off each retry_cycles; a write is repeated when it has seen the timer go off twice, so after one to two of them.
/// A leader's own leftovers are repeated one after another, a member's are all asked for at once. With dead_i no frame is sent.
/// Latency: none promised. Entering an epoch: 92 cycles for the registers, 7 for each note's place, 2 for each place of the window, 12 for
/// each note and write, 256 for the slots.
/// Reset: forgets everything.
/// Requirements: the table is cleared before the first epoch. head_i stays while what was handed on is dealt with.
module kv_sequencer
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
    output logic                       op_valid_o,
    output op_t                        op_o,
    input  wire                        op_done_i,
    input  wire seen_t                 seen_i,
    input  wire                        slow_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  wire request_t              head_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire                        settle_valid_i,
    input  wire           [      15:0] settle_lane_i,
    input  wire           [      31:0] settle_request_i,
    input  wire                        pending_i,
    input  wire           [      11:0] pending_bucket_i,
    input  wire                        leftover_done_i,
    output logic                       stop_o,
    input  wire                        quiet_i,
    output logic                       clear_o,
    output logic          [      11:0] clear_at_o,
    input  wire           [Places-1:0] window_i,

    // ---- transmit and memory
    input  wire  transmit_idle_i,
    /// A write's job was given to memory; memory has done one.
    input  wire  job_write_i,
    input  wire  done_i,
    output logic cache_clear_o,
    input  wire  cache_clearing_i
);

  typedef enum logic [4:0] {
    Idle = 5'd0,
    // A request that was handed on.
    SlowLook = 5'd1,
    EntryFind = 5'd2,
    EntryLook = 5'd3,
    SearchBegin = 5'd4,
    Search = 5'd5,
    SearchEnd = 5'd6,
    SlowFree = 5'd7,
    SlowEnd = 5'd8,
    // An epoch, or an empty table.
    Epoch = 5'd9,
    // In the background.
    Retry = 5'd10,
    RetryGo = 5'd11,
    ListFind = 5'd12,
    ListLook = 5'd13,
    ListGo = 5'd14,
    ListTake = 5'd15,
    ListTakeGo = 5'd16,
    ListTook = 5'd17,
    ListReplay = 5'd18,
    OwnDone = 5'd19,
    AskGo = 5'd20,
    FetchWhere = 5'd21,
    FetchLook = 5'd22,
    FetchGo = 5'd23
  } state_e;

  state_e state_q;
  logic   op_valid_q;
  logic   go;  // no operation is under way: the state counts
  assign go = !op_valid_q;

  // ---- what has to be done

  logic [31:0] timer_q;
  logic tick_q;
  logic slow_there_q;  // the queue's head is the sequencer's
  logic settle_q;
  logic [15:0] settle_lane_q;
  logic [31:0] settle_request_q;
  logic own_done_q;
  logic clear_pending_q;
  logic [7:0] owed_q, entered_q;  // who is owed `entered`; who has said so
  logic leads_any_q;
  logic enter_due_q, enter_again_q;
  logic walk_q, walk_all_q;  // through the writes in flight; all of them at once
  place_t walk_place_q;
  logic list_walk_q, list_ask_q;  // through the leftovers; the leaders' word is asked for
  logic [LeftoverBits-1:0] list_at_q;
  logic own_q;  // one of this node's leftovers is in the window
  logic [LeftoverBits-1:0] own_at_q;
  place_t own_place_q;
  logic ask_q, ask_may_q;  // for commits of what is noted in this bucket
  logic [11:0] ask_bucket_q;
  logic [8:0] ask_note_q;
  logic [5:0] step_q;  // places, nodes: of what is done one after another
  logic found_q;  // a leftover of the location

  logic [LeftoverBits:0] list_count;

  // A cycle late, and so near.
  logic here;  // in an epoch, and alive
  logic [7:0] others, serving_others, missing_entered;
  logic owed_ready_q, enter_ready_q, alone_q, settled_all_q;
  bucket_t mask;  // the bits that a bucket's number does not have
  always_ff @(posedge clk_i) begin
    here            <= epoch_i != '0 && members_i[node_i] && !dead_i;
    others          <= members_i & ~(8'd1 << node_i);
    alone_q         <= others == '0;
    missing_entered <= others & ~entered_q;
    serving_others  <= others & serving_members_i;
    settled_all_q   <= list_count == '0;
    owed_ready_q    <= owed_q != '0 && settled_all_q && list_count == '0;
    enter_ready_q   <= enter_due_q && leads_any_q && missing_entered != '0;
    mask            <= bucket_t'('1) << bucket_bits_i;
  end

  // ---- the operation

  logic flag_q;
  op_e op_q;
  logic [7:0] nodes_q;
  logic [4:0] kind_q;
  logic [8:0] at_q;  // {node, place}
  cell_t cell_q;  // what it is about
  logic from_head_q;  // it is about the frame at the queue's head
  logic from_window_q;
  logic send_q, fetch_q;  // a frame of this node's; `fetch`, for the cell's location
  logic noted_q, same_q, settled_q;

  assign op_valid_o = op_valid_q;
  cell_from_e cell_from;

  // ---- an epoch, an empty table

  logic epoch_enter, epoch_clear, epoch_active, entering, clearing, epoch_forget, epoch_leads;
  logic epoch_slot_valid;
  logic [7:0] epoch_slot;
  place_t epoch_place;
  logic epoch_find, epoch_keep, epoch_op_valid, epoch_window, epoch_next_bucket;
  op_e epoch_op;
  logic [8:0] epoch_at;
  logic last_bucket_q;
  always_ff @(posedge clk_i) last_bucket_q <= (cell_q.bucket | mask) == '1;

  // ---- the request that the engine told of, a cycle late

  logic list_asks;
  assign list_asks = state_q == ListGo;

  // Questions about leftovers have numbers that begin so, and end with the leftover's.
  localparam logic [9:0] TagList = 10'h155;

  logic head_entry_q, head_list_q, head_known_q;
  bucket_t head_bucket_q;
  always_ff @(posedge clk_i) begin
    head_entry_q <= head_i.kv.kind == KindEntry;
    head_list_q   <= head_i.kv.request[31:LeftoverBits] == {TagList, (22 - LeftoverBits)'(0)}
        && head_i.kv.detail[4:0] == StatusOk;
    // A lane's record: of which something was heard ever.
    head_known_q <= head_i.kv.key[31:0] != '0 || head_i.kv.version != '0 || head_i.kv.detail[4:0] != '0;
    head_bucket_q <= bucket_t'(head_i.hash) & ~mask;
  end

  // ---- a leader: asked for in one cycle, known in the next

  assign slot_o = epoch_slot_valid ? epoch_slot : cell_q.bucket[7:0];
  logic [2:0] leader_q;
  logic mine_q, head_leads;
  always_ff @(posedge clk_i) begin
    leader_q <= leader_i;
    mine_q   <= leader_i == node_i;
  end
  assign head_leads = leader_q == head_i.kv.node;

  // ---- leftovers

  logic list_find, list_again, list_busy, list_found, list_valid, list_drop;
  list_find_e list_what;
  logic [LeftoverBits-1:0] list_from, list_shown;
  cell_t list_cell;
  logic list_newer, list_equal, list_same;
  kv_leftovers #(
      .Bits(LeftoverBits)
  ) i_leftovers (
      .clk_i,
      .rst_i,
      .clear_i (clear_o),
      .find_i  (list_find),
      .what_i  (list_what),
      .from_i  (list_from),
      .again_i (list_again),
      .bucket_i(cell_q.bucket),
      .busy_o  (list_busy),
      .found_o (list_found),
      .at_o    (list_shown),
      .valid_o (list_valid),
      .cell_o  (list_cell),
      .keep_i  (epoch_keep),
      .drop_i  (list_drop),
      .cell_i  (cell_q),
      .head_i  (head_i.kv),
      .newer_o (list_newer),
      .equal_o (list_equal),
      .same_o  (list_same),
      .count_o (list_count)
  );
  assign leftovers_o = 12'(list_count);

  // The write of the leftover took effect, by what came.
  logic stays;
  assign stays = list_newer || (list_equal && (head_entry_q ? same_q : list_same));

  always_comb begin
    list_find  = 1'b0;
    list_what  = ListNext;
    list_from  = list_at_q;
    list_again = 1'b0;
    case (state_q)
      Idle: begin
        // It matters only where the walk goes on or one is done, and harms nowhere.
        list_find = 1'b1;
        if (own_done_q) begin
          list_what = ListShow;
          list_from = own_at_q;
        end
      end
      SlowLook: begin
        list_find = 1'b1;
        list_what = head_entry_q ? ListShow : ListAt;
        list_from = head_entry_q ? head_i.kv.request[LeftoverBits-1:0] : '0;
      end
      SearchBegin: begin
        list_find = 1'b1;
        list_what = ListAt;
        list_from = '0;
      end
      Search: begin
        list_find  = !list_busy && list_found;
        list_what  = ListAt;
        list_again = 1'b1;
      end
      Epoch: begin
        list_find = epoch_find;
        list_what = ListFree;
      end
      default: ;
    endcase
    if (!go) list_find = 1'b0;
    list_drop = go && (state_q == Search || state_q == OwnDone) && !list_busy && list_found;
  end

  // ---- what is to be fetched

  logic fetch_valid, fetch_lanes, fetch_again, fetch_mine;
  logic [31:0] fetch_request;
  logic [1:0] fetch_way;
  logic [15:0] fetch_lane;
  logic [2:0] fetch_node;
  bucket_t fetch_bucket;
  logic fetch_taken, fetch_own, fetch_came;
  kv_fetcher #(
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
      .answer_i        (state_q == SlowLook),
      .bucket_o        (fetch_bucket),
      .head_i          (head_i.kv),
      .mine_o          (fetch_mine),
      .came_i          (fetch_came)
  );
  logic fetch_go;
  assign fetch_go    = go && state_q == FetchGo && fetch_valid && here;
  assign fetch_taken = fetch_go && (fetch_lanes || !mine_q);
  assign fetch_own   = fetch_go && !fetch_lanes && mine_q;  // its own word counts
  assign fetch_came  = go && ((state_q == SlowLook && !head_entry_q) || (state_q == SearchBegin && head_leads));

  // ---- a place of the window, likewise

  place_t place;
  logic   used_q;
  assign place = state_q == Idle ? walk_place_q : state_q == Epoch ? epoch_place : step_q;
  always_ff @(posedge clk_i) used_q <= window_i[place];

  // Which write was at each place when the walk was there the last time.
  logic [7:0] walked;
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_walked (
      .clk_i,
      .write_i(go && state_q == RetryGo),
      .write_address_i(walk_place_q),
      .write_data_i(cell_q.request[7:0]),
      .read_address_i(walk_place_q),
      .read_data_o(walked)
  );

  assign stop_o = slow_valid_i || slow_there_q || settle_valid_i || settle_q || entering || clearing;
  assign clearing_o = clear_pending_q || clearing;

  // ---- what the operation is about

  logic first;  // nothing else has to be done before
  assign first       = go && state_q == Idle && !settle_q && !slow_there_q && !own_done_q;
  assign epoch_enter = first && enter_valid_i && !entered_o;
  assign epoch_clear = first && !enter_valid_i && clear_pending_q;
  always_comb begin
    cell_from = CellKeep;
    if (go) begin
      case (state_q)
        Idle: begin
          if (owed_ready_q || enter_ready_q) cell_from = CellNone;
          if (enter_valid_i || clear_pending_q) cell_from = CellNone;
          if (settle_q) cell_from = CellSettle;
        end
        SlowLook: cell_from = CellHead;
        EntryFind, ListFind: if (!list_busy) cell_from = CellList;
        Search: if (!list_busy && list_found) cell_from = CellList;
        FetchWhere: cell_from = CellFetch;
        ListGo: if (!mine_q) cell_from = CellAsk;
        FetchGo: cell_from = CellAsk;
        Epoch: if (epoch_next_bucket) cell_from = CellNext;
        default: ;
      endcase
    end
  end

  kv_operation i_operation (
      .clk_i,
      .from_i          (cell_from),
      .settle_lane_i   (settle_lane_q),
      .settle_request_i(settle_request_q),
      .list_i          (list_cell),
      .fetch_bucket_i  (fetch_bucket),
      .fetch_way_i     (fetch_way),
      .ask_lane_i      (list_asks ? '0 : fetch_lane),
      .ask_request_i   (list_asks ? {TagList, (22 - LeftoverBits)'(0), list_at_q} : fetch_request),
      .head_bucket_i   (head_entry_q ? fetch_bucket : head_bucket_q),
      .seen_valid_i    (op_valid_q && op_done_i && op_q == OpLook && !from_head_q),
      .seen_i,
      .window_i        (from_window_q),
      .op_i            (op_q),
      .nodes_i         (nodes_q),
      .kind_i          (kind_q),
      .at_i            (at_q),
      .flag_i          (flag_q),
      .send_i          (send_q),
      .location_i      (fetch_q),
      .head_valid_i    (from_head_q),
      .head_i          (head_i.kv),
      .cell_o          (cell_q),
      .op_o
  );

  kv_epoch i_epoch (
      .clk_i,
      .rst_i,
      .enter_i      (epoch_enter),
      .clear_i      (epoch_clear),
      .go_i         (go),
      // What was under way may have left something to do.
      .waits_i      (slow_there_q || settle_q || own_done_q),
      .active_o     (epoch_active),
      .entering_o   (entering),
      .clearing_o   (clearing),
      .copy_o       (enter_copy_o),
      .copied_i,
      .forget_o     (epoch_forget),
      .leads_o      (epoch_leads),
      .entered_o,
      .overflow_o,
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
      .op_valid_o   (epoch_op_valid),
      .op_o         (epoch_op),
      .at_o         (epoch_at),
      .window_o     (epoch_window),
      .noted_i      (noted_q),
      .settled_i    (settled_q),
      .next_bucket_o(epoch_next_bucket),
      .last_bucket_i(last_bucket_q),
      .quiet_i,
      .transmit_idle_i,
      .job_write_i,
      .done_i,
      .clear_o,
      .clear_at_o,
      .cache_clear_o,
      .cache_clearing_i
  );

  always_ff @(posedge clk_i) begin
    retry_o <= 1'b0;

    // The timer.
    tick_q  <= 1'b0;
    if (timer_q == '0 || timer_q > retry_cycles_i) begin
      timer_q <= retry_cycles_i;
      tick_q  <= 1'b1;
    end else timer_q <= timer_q - 1'b1;

    if (tick_q) begin
      walk_q      <= 1'b1;
      ask_may_q   <= 1'b1;
      enter_due_q <= 1'b1;
      if (!list_walk_q) begin
        list_walk_q <= !settled_all_q;
        list_ask_q  <= 1'b1;
        list_at_q   <= '0;
      end
    end

    // What others say.
    if (slow_valid_i) slow_there_q <= 1'b1;
    if (settle_valid_i) begin
      settle_q         <= 1'b1;
      settle_lane_q    <= settle_lane_i;
      settle_request_q <= settle_request_i;
    end
    if (clear_table_i) clear_pending_q <= 1'b1;
    if (leftover_done_i) own_done_q <= own_q;
    if (pending_i && ask_may_q && !ask_q) begin
      ask_q        <= 1'b1;
      ask_may_q    <= 1'b0;
      ask_bucket_q <= pending_bucket_i;
      ask_note_q   <= '0;
    end
    opened_o <= here && leads_any_q && settled_all_q && list_count == '0 && missing_entered == '0 && !entering;

    if (op_valid_q) begin
      if (op_done_i) begin
        op_valid_q <= 1'b0;
        noted_q    <= seen_i.noted;
        same_q     <= seen_i.same;
        settled_q  <= seen_i.settled;
      end
    end else begin
      flag_q        <= 1'b0;
      from_window_q <= 1'b0;
      from_head_q   <= 1'b0;
      send_q        <= 1'b0;
      fetch_q       <= 1'b0;
      kind_q        <= '0;
      case (state_q)
        Idle: begin
          nodes_q <= '0;
          at_q    <= '0;
          step_q  <= '0;
          found_q <= 1'b0;
          if (settle_q) begin
            settle_q   <= 1'b0;
            op_valid_q <= 1'b1;
            op_q       <= OpResolve;
          end else if (slow_there_q) begin
            state_q <= SlowLook;
          end else if (own_done_q) begin
            state_q <= OwnDone;
          end else if (epoch_enter || epoch_clear) begin
            state_q <= Epoch;
          end else if (!here) begin
            // Nothing is sent.
          end else if (owed_ready_q || enter_ready_q) begin
            op_valid_q <= 1'b1;
            op_q       <= OpSend;
            send_q     <= 1'b1;
            at_q       <= {node_i, 6'd0};
            if (owed_ready_q) begin
              kind_q  <= KindEntered;
              nodes_q <= owed_q & others;
              owed_q  <= '0;
            end else begin
              kind_q        <= KindEnter;
              nodes_q       <= missing_entered;
              enter_due_q   <= 1'b0;
              enter_again_q <= 1'b1;
              retry_o       <= enter_again_q;
            end
          end else if (walk_q) begin
            state_q <= Retry;
          end else if (list_walk_q) begin
            state_q <= ListFind;
          end else if (ask_q) begin
            op_valid_q <= 1'b1;
            op_q       <= OpLook;
            at_q       <= ask_note_q;
            state_q    <= AskGo;
          end else if (fetch_valid) begin
            state_q <= FetchWhere;
          end
        end

        // ---- a request that was handed on

        SlowLook: begin
          state_q <= SlowFree;
          case (head_i.kv.kind)
            KindEnter:   owed_q[head_i.kv.node] <= 1'b1;
            KindEntered: entered_q[head_i.kv.node] <= 1'b1;
            KindLaneRecord: begin
              op_q        <= OpLane;
              from_head_q <= 1'b1;
              op_valid_q  <= fetch_mine && head_known_q;
            end
            KindEntry: begin
              if (head_list_q) state_q <= EntryFind;
              else if (fetch_mine) state_q <= EntryLook;
            end
            default:     state_q <= Search;
          endcase
        end
        SlowFree: begin
          op_valid_q <= 1'b1;
          op_q       <= OpFree;
          state_q    <= SlowEnd;
        end
        SlowEnd: begin
          slow_there_q <= 1'b0;
          state_q      <= Idle;
        end

        // An entry for a leftover: of which location? Else it was settled meanwhile.
        EntryFind:
        if (!list_busy)
          state_q <= list_found && list_valid && list_cell.way == head_i.kv.detail[7:6] ? EntryLook : SlowFree;
        EntryLook: state_q <= SearchBegin;
        // Is what the node has what came?
        SearchBegin: begin
          op_q        <= OpLook;
          flag_q      <= 1'b1;
          from_head_q <= 1'b1;
          op_valid_q  <= head_leads;
          state_q     <= head_leads ? Search : SlowFree;
        end
        // All leftovers of the location are settled.
        Search:
        if (!list_busy) begin
          nodes_q <= 8'd1;
          op_q    <= OpResolve;
          flag_q  <= !stays;
          if (list_found) begin
            found_q    <= 1'b1;
            op_valid_q <= 1'b1;
          end else state_q <= SearchEnd;
        end
        SearchEnd: begin
          op_valid_q <= 1'b1;
          op_q       <= !here ? OpFree : head_entry_q ? OpStore : OpAgain;
          flag_q     <= found_q;
          state_q    <= SlowEnd;
        end

        // ---- an epoch, an empty table

        Epoch: begin
          op_valid_q <= epoch_op_valid;
          op_q       <= epoch_op;
          if (epoch_op == OpLook) at_q <= epoch_at;
          from_window_q <= epoch_window;
          if (epoch_keep) list_at_q <= list_shown;
          if (!epoch_active) state_q <= Idle;
        end

        // ---- in the background

        Retry: begin
          from_window_q <= 1'b1;
          op_q          <= OpLook;
          at_q          <= 9'(walk_place_q);
          op_valid_q    <= used_q;
          state_q       <= used_q ? RetryGo : Idle;
          if (!used_q) walk_place_q <= walk_place_q + 1'b1;
          if (!used_q && walk_place_q == '1) begin
            walk_q     <= 1'b0;
            walk_all_q <= 1'b0;
          end
        end
        RetryGo: begin
          // Again, if it is the one that was here the last time.
          op_valid_q   <= here && (walk_all_q || walked == cell_q.request[7:0]);
          retry_o      <= here && (walk_all_q || walked == cell_q.request[7:0]);
          op_q         <= OpRetry;
          walk_place_q <= walk_place_q + 1'b1;
          state_q      <= Idle;
          if (walk_place_q == '1) begin
            walk_q     <= 1'b0;
            walk_all_q <= 1'b0;
          end
        end

        // A leftover: the leader's word is asked for, or this node's own counts.
        ListFind:
        if (!list_busy) begin
          list_at_q <= list_shown;
          if (list_found) state_q <= ListLook;
          else begin
            list_walk_q <= 1'b0;
            state_q     <= Idle;
          end
        end
        ListLook: state_q <= ListGo;
        ListGo: begin
          op_q    <= OpSend;
          send_q  <= 1'b1;
          fetch_q <= 1'b1;
          kind_q  <= KindFetch;
          at_q    <= {node_i, 6'd0};
          nodes_q <= 8'd1 << leader_q;
          if (mine_q && !own_q) state_q <= ListTake;
          else if (mine_q && own_at_q == list_at_q && list_ask_q && !alone_q) begin
            at_q    <= 9'(own_place_q);
            state_q <= ListReplay;
          end else begin
            op_valid_q <= !mine_q && list_ask_q && here;
            list_at_q  <= list_at_q + 1'b1;
            state_q    <= Idle;
          end
        end
        ListTake: state_q <= ListTakeGo;
        ListTakeGo: begin
          step_q      <= step_q + 1'b1;
          own_place_q <= step_q;
          own_at_q    <= list_at_q;
          op_q        <= OpTake;
          at_q        <= 9'(step_q);
          op_valid_q  <= !used_q;
          own_q       <= !used_q;
          // There is a place: until the leftovers are done, nobody else takes one.
          state_q     <= !used_q ? ListTook : step_q == '1 ? Idle : ListTake;
        end
        ListTook: begin
          step_q  <= '0;
          state_q <= ListReplay;
          if (alone_q) begin
            // Alone: it is done, or has to wait for the lease.
            own_q     <= settled_q;
            list_at_q <= list_at_q + 1'b1;
            state_q   <= Idle;
          end
        end
        ListReplay: begin
          op_q       <= OpReplay;
          nodes_q    <= 8'd1 << step_q[2:0];
          op_valid_q <= others[step_q[2:0]] && here;
          step_q     <= step_q + 1'b1;
          if (step_q[2:0] == '1) begin
            list_at_q <= list_at_q + 1'b1;
            state_q   <= Idle;
          end
        end
        OwnDone:
        if (!list_busy) begin
          own_done_q <= 1'b0;
          own_q      <= 1'b0;
          if (!list_walk_q) begin
            list_walk_q <= 1'b1;
            list_ask_q  <= 1'b0;
            list_at_q   <= '0;
          end
          state_q <= Idle;
        end

        AskGo: begin
          ask_note_q <= ask_note_q + 1'b1;
          if (ask_note_q == '1) ask_q <= 1'b0;
          op_q    <= OpAsk;
          nodes_q <= 8'd1 << ask_note_q[8:6];
          if (noted_q && here && cell_q.bucket[11:0] == ask_bucket_q) begin
            op_valid_q <= 1'b1;
            retry_o    <= 1'b1;
          end
          state_q <= Idle;
        end

        FetchWhere: state_q <= FetchLook;
        FetchLook:  state_q <= FetchGo;
        FetchGo: begin
          op_valid_q <= fetch_taken;
          op_q       <= OpSend;
          send_q     <= 1'b1;
          retry_o    <= fetch_taken && fetch_again;
          fetch_q    <= !fetch_lanes;
          kind_q     <= fetch_lanes ? KindLane : KindFetch;
          // A client's request says nothing of the sender.
          at_q       <= fetch_lanes ? '0 : {node_i, 6'd0};
          nodes_q    <= 8'd1 << (fetch_lanes ? fetch_node : leader_q);
          state_q    <= Idle;
        end

        default: state_q <= Idle;
      endcase
    end

    // What belongs to an epoch.
    if (epoch_leads) leads_any_q <= 1'b1;
    if (epoch_forget) begin
      list_at_q   <= '0;
      own_q       <= 1'b0;
      own_done_q  <= 1'b0;
      ask_q       <= 1'b0;
      owed_q      <= '0;
      entered_q   <= '0;
      leads_any_q <= 1'b0;
      list_walk_q <= 1'b0;
    end
    if (entered_o) begin
      walk_q        <= 1'b1;
      walk_all_q    <= 1'b1;
      walk_place_q  <= '0;
      enter_due_q   <= 1'b1;
      enter_again_q <= 1'b0;
      list_walk_q   <= 1'b1;
      list_ask_q    <= 1'b1;
      list_at_q     <= '0;
    end
    if (clear_o) begin
      own_q           <= 1'b0;
      list_walk_q     <= 1'b0;
      clear_pending_q <= 1'b0;
    end

    if (rst_i) begin
      state_q         <= Idle;
      op_valid_q      <= 1'b0;
      slow_there_q    <= 1'b0;
      settle_q        <= 1'b0;
      clear_pending_q <= 1'b0;
      timer_q         <= '0;
      tick_q          <= 1'b0;
      own_q           <= 1'b0;
      own_done_q      <= 1'b0;
      owed_q          <= '0;
      entered_q       <= '0;
      leads_any_q     <= 1'b0;
      enter_due_q     <= 1'b0;
      walk_q          <= 1'b0;
      walk_all_q      <= 1'b0;
      walk_place_q    <= '0;
      list_walk_q     <= 1'b0;
      ask_q           <= 1'b0;
      ask_may_q       <= 1'b1;
      opened_o        <= 1'b0;
      retry_o         <= 1'b0;
    end
  end

  `ASSERT(slow_alone, !slow_valid_i || !slow_there_q, "a request was handed on before the one before was dealt with")
  `ASSERT(settle_alone, !settle_valid_i || !settle_q, "a lane was to be settled before the one before was")

endmodule
`default_nettype wire
