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

  typedef enum logic [5:0] {
    Idle = 6'd0,
    // A request that was handed on.
    SlowLook = 6'd1,
    EntryFind = 6'd2,
    EntryLook = 6'd3,
    SearchBegin = 6'd4,
    Search = 6'd5,
    SearchEnd = 6'd6,
    SlowFree = 6'd7,
    SlowEnd = 6'd8,
    // An epoch.
    Drain = 6'd9,
    Copy = 6'd10,
    NoteLook = 6'd11,
    Note = 6'd12,
    NoteLeave = 6'd13,
    NoteKeep = 6'd14,
    Window = 6'd15,
    WindowLook = 6'd16,
    WindowKeep = 6'd17,
    Leaders = 6'd18,
    // An empty table.
    ClearDrain = 6'd19,
    ClearRams = 6'd20,
    ClearLines = 6'd21,
    ClearWait = 6'd22,
    ClearCache = 6'd23,
    // In the background.
    Retry = 6'd24,
    RetryGo = 6'd25,
    ListFind = 6'd26,
    ListLook = 6'd27,
    ListGo = 6'd28,
    ListTake = 6'd29,
    ListTakeGo = 6'd30,
    ListTook = 6'd31,
    ListReplay = 6'd32,
    OwnDone = 6'd33,
    AskGo = 6'd34,
    FetchWhere = 6'd35,
    FetchLook = 6'd36,
    FetchGo = 6'd37
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
  logic entering_q, clear_pending_q, clearing_q;
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
  logic [11:0] step_q;  // of what is done to many, one after another
  logic [3:0] quiet_q;  // what the engine's stages left behind has been heard of
  logic [6:0] writes_q;  // jobs that memory has not done
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
  cell_t cell_q;  // what it is about; of OpLook it becomes what was seen
  logic from_head_q;  // it is about the frame at the queue's head
  logic from_window_q;
  logic send_q, fetch_q;  // a frame of this node's; `fetch`, for the cell's location
  logic noted_q, same_q, settled_q;

  assign op_valid_o = op_valid_q;
  always_comb begin
    op_o            = '0;
    op_o.op         = op_q;
    op_o.flag       = flag_q;
    op_o.nodes      = nodes_q;
    op_o.bucket     = cell_q.bucket;
    op_o.kv.kind    = kind_q;
    op_o.kv.node    = at_q[8:6];
    op_o.kv.detail  = {cell_q.way & {2{!send_q}}, at_q[5:0]};
    op_o.kv.client  = cell_q.lane;
    op_o.kv.request = cell_q.request;
    op_o.kv.version = cell_q.version;
    op_o.kv.key     = fetch_q ? 64'({cell_q.bucket, cell_q.way}) : '0;
    if (from_head_q) begin
      op_o.kv.detail  = head_i.kv.detail;
      op_o.kv.client  = head_i.kv.client;
      op_o.kv.version = head_i.kv.version;
      op_o.kv.key     = head_i.kv.key;
      // A lane's record has its status elsewhere.
      if (op_q == OpLane) op_o.kv.key[4:0] = head_i.kv.detail[4:0];
    end
  end

  // ---- the request that the engine told of, a cycle late

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

  assign slot_o = state_q == Leaders ? step_q[7:0] : cell_q.bucket[7:0];
  logic [2:0] leader_q;
  logic mine_q, head_leads;
  always_ff @(posedge clk_i) begin
    leader_q <= leader_i;
    mine_q   <= leader_i == node_i;
  end
  assign head_leads = leader_q == head_i.kv.node;

  // ---- leftovers

  logic list_find, list_again, list_busy, list_found, list_valid, list_keep, list_drop;
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
      .keep_i  (list_keep),
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
      NoteLeave: begin
        list_find = 1'b1;
        list_what = ListFree;
      end
      default: ;
    endcase
    if (!go) list_find = 1'b0;
    list_keep = go && state_q == NoteKeep && !list_busy && list_found;
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
      .answer_i        (slow_there_q),
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
  assign place = state_q == Idle ? walk_place_q : step_q[5:0];
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

  assign stop_o = slow_valid_i || slow_there_q || settle_valid_i || settle_q || entering_q || clearing_q;
  assign clearing_o = clear_pending_q || clearing_q;
  assign clear_o = state_q == ClearRams;
  assign clear_at_o = step_q;

  // ---- what the operation is about

  typedef enum logic [2:0] {
    CellKeep,
    CellNone,
    CellSettle,
    CellList,
    CellFetch,  // where it is
    CellAsk,  // how it is asked for
    CellHead,
    CellNext  // the next bucket
  } cell_from_e;
  cell_from_e cell_from;
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
        ClearLines: cell_from = CellNext;
        default: ;
      endcase
    end
  end

  logic last_bucket_q;
  always_ff @(posedge clk_i) last_bucket_q <= (cell_q.bucket | mask) == '1;

  always_ff @(posedge clk_i) begin
    case (cell_from)
      CellNone: cell_q <= '0;
      CellSettle: begin
        cell_q.lane    <= settle_lane_q;
        cell_q.request <= settle_request_q;
      end
      CellList: cell_q <= list_cell;
      CellFetch: begin
        cell_q.bucket <= fetch_bucket;
        cell_q.way    <= fetch_way;
      end
      CellAsk: begin
        cell_q.version <= '0;
        cell_q.lane    <= state_q == ListGo ? '0 : fetch_lane;
        cell_q.request <= state_q == ListGo ? {TagList, (22 - LeftoverBits)'(0), list_at_q} : fetch_request;
      end
      CellHead: begin
        cell_q.bucket  <= head_entry_q ? fetch_bucket : head_bucket_q;
        cell_q.request <= head_i.kv.key[31:0];
      end
      CellNext: cell_q.bucket <= cell_q.bucket + 1'b1;
      default:  ;
    endcase
    if (op_valid_q && op_done_i && op_q == OpLook && !from_head_q) begin
      cell_q <= from_window_q ? seen_i.window : seen_i.note;
    end
  end

  always_ff @(posedge clk_i) begin
    enter_copy_o  <= 1'b0;
    entered_o     <= 1'b0;
    cache_clear_o <= 1'b0;
    retry_o       <= 1'b0;

    // The timer.
    tick_q        <= 1'b0;
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
    quiet_q  <= {quiet_q[2:0], quiet_i};
    writes_q <= writes_q + 7'(job_write_i) - 7'(done_i);
    opened_o <= here && leads_any_q && settled_all_q && list_count == '0 && missing_entered == '0 && !entering_q;

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
          end else if (enter_valid_i && !entered_o) begin
            entering_q <= 1'b1;
            state_q    <= Drain;
          end else if (clear_pending_q) begin
            clearing_q <= 1'b1;
            state_q    <= ClearDrain;
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

        // ---- an epoch

        Drain: begin
          // What was under way may have left something to do.
          if (slow_there_q || settle_q || own_done_q) state_q <= Idle;
          else if (&quiet_q && transmit_idle_i) begin
            enter_copy_o <= 1'b1;
            state_q      <= Copy;
          end
        end
        Copy: begin
          list_at_q   <= '0;
          own_q       <= 1'b0;
          ask_q       <= 1'b0;
          owed_q      <= '0;
          entered_q   <= '0;
          leads_any_q <= 1'b0;
          list_walk_q <= 1'b0;
          own_done_q  <= 1'b0;
          if (copied_i) state_q <= NoteLook;
        end

        // All that is pending is leftover from now on, but for what an older write's note says.
        NoteLook: begin
          op_q <= OpLook;
          at_q <= step_q[8:0];
          if (step_q[9]) begin
            step_q  <= '0;
            state_q <= Window;
          end else begin
            op_valid_q <= 1'b1;
            step_q     <= step_q + 1'b1;
            state_q    <= Note;
          end
        end
        Note: begin
          op_q       <= OpLeave;
          op_valid_q <= noted_q;
          state_q    <= noted_q ? NoteLeave : NoteLook;
        end
        NoteLeave: state_q <= settled_q ? NoteLook : NoteKeep;
        NoteKeep:
        if (!list_busy) begin
          list_at_q  <= list_shown;
          overflow_o <= overflow_o || !list_found;
          state_q    <= NoteLook;
        end

        // Writes in flight go on where this node still leads.
        Window: begin
          state_q <= WindowLook;
          if (step_q[6]) begin
            step_q  <= '0;
            state_q <= Leaders;
          end
        end
        WindowLook: begin
          from_window_q <= 1'b1;
          op_valid_q    <= used_q;
          op_q          <= OpLook;
          at_q          <= 9'(step_q[5:0]);
          step_q        <= step_q + 1'b1;
          state_q       <= used_q ? WindowKeep : Window;
        end
        WindowKeep: begin
          op_valid_q <= 1'b1;
          op_q       <= OpKeep;
          state_q    <= Window;
        end

        Leaders: begin
          step_q <= step_q + 1'b1;
          if (here && mine_q && step_q != '0) leads_any_q <= 1'b1;
          if (step_q[8]) begin
            entered_o     <= 1'b1;
            entering_q    <= 1'b0;
            walk_q        <= 1'b1;
            walk_all_q    <= 1'b1;
            walk_place_q  <= '0;
            enter_due_q   <= 1'b1;
            enter_again_q <= 1'b0;
            list_walk_q   <= 1'b1;
            list_ask_q    <= 1'b1;
            list_at_q     <= '0;
            state_q       <= Idle;
          end
        end

        // ---- an empty table

        ClearDrain: begin
          if (slow_there_q || settle_q || own_done_q) begin
            clearing_q <= 1'b0;
            state_q    <= Idle;
          end else if (&quiet_q && writes_q == '0 && transmit_idle_i) begin
            clear_pending_q <= 1'b0;
            state_q         <= ClearRams;
          end
        end
        ClearRams: begin
          step_q      <= step_q + 1'b1;
          own_q       <= 1'b0;
          list_walk_q <= 1'b0;
          overflow_o  <= 1'b0;
          op_q        <= OpClear;
          if (step_q == '1) begin
            op_valid_q <= 1'b1;
            state_q    <= ClearLines;
          end
        end
        ClearLines: begin
          op_valid_q <= !last_bucket_q;
          if (last_bucket_q) state_q <= ClearWait;
        end
        ClearWait: begin
          if (writes_q == '0 && &quiet_q) begin
            cache_clear_o <= 1'b1;
            state_q       <= ClearCache;
          end
        end
        ClearCache: begin
          if (!cache_clear_o && !cache_clearing_i) begin
            clearing_q <= 1'b0;
            state_q    <= Idle;
          end
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
          own_place_q <= step_q[5:0];
          own_at_q    <= list_at_q;
          op_q        <= OpTake;
          at_q        <= 9'(step_q[5:0]);
          op_valid_q  <= !used_q;
          own_q       <= !used_q;
          // There is a place: until the leftovers are done, nobody else takes one.
          state_q     <= !used_q ? ListTook : step_q[6] ? Idle : ListTake;
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

    if (rst_i) begin
      state_q         <= Idle;
      op_valid_q      <= 1'b0;
      slow_there_q    <= 1'b0;
      settle_q        <= 1'b0;
      clear_pending_q <= 1'b0;
      clearing_q      <= 1'b0;
      entering_q      <= 1'b0;
      timer_q         <= '0;
      tick_q          <= 1'b0;
      quiet_q         <= '0;
      writes_q        <= '0;
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
      overflow_o      <= 1'b0;
      opened_o        <= 1'b0;
      enter_copy_o    <= 1'b0;
      entered_o       <= 1'b0;
      cache_clear_o   <= 1'b0;
      retry_o         <= 1'b0;
    end
  end

  `ASSERT(slow_alone, !slow_valid_i || !slow_there_q, "a request was handed on before the one before was dealt with")
  `ASSERT(settle_alone, !settle_valid_i || !settle_q, "a lane was to be settled before the one before was")

endmodule
`default_nettype wire
