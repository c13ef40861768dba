// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What is slow or done in the background: repetition, epochs, leftovers, a node's return, an empty table. docs/kv-protocol.md,
/// sections 5, 6, 8 and 10; docs/kv-core.md.
///
/// Behaviour: one thing at a time, in this order: what is settled; a request that the engine handed on; an epoch to enter;
/// a table to clear; then in turn what the timer asks for: writes in flight, leftovers, `enter`, fetching, notes that somebody wants to
/// read. All of it is operations of the engine (kv_core_pkg::op_e), each of which takes effect at once or not at all. Requests are stopped
/// while one that was handed on is dealt with, an epoch is entered or the table is cleared, and else go on between the operations.
///
/// The timer goes off each retry_cycles; a write is repeated when it has seen the timer go off twice, so after one to two of them.
/// A leader's own leftovers are repeated one after another, a member's are all asked for at once. Buckets are fetched eight at a
/// time, lanes four at a time.
/// Latency: none promised. Entering an epoch: 92 cycles for the registers, 7 for each note's place, 12 for each note and write, 256 for the slots.
/// Reset: forgets everything.
/// Requirements: the table is cleared before the first epoch.
module kv_sequencer
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter  int unsigned LaneBits     = 12,
    /// 2^n leftovers at most; one more is a fault.
    parameter  int unsigned LeftoverBits = 10,
    localparam int unsigned CountBits    = LeftoverBits + 1
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

  if (LeftoverBits < 1 || LeftoverBits > 11) begin : gen_check_leftovers
    $fatal(1, "LeftoverBits must be 1 to 11 in %m");
  end
  if (LaneBits < 2 || LaneBits > 12) begin : gen_check_lanes
    $fatal(1, "LaneBits must be 2 to 12 in %m");
  end

  typedef enum logic [4:0] {
    Idle = 5'd0,
    SlowEnd = 5'd1,
    EntryFind = 5'd2,
    SearchBegin = 5'd3,
    Search = 5'd4,
    SearchEnd = 5'd5,
    Drain = 5'd6,
    Copy = 5'd7,
    Note = 5'd8,
    NoteLeave = 5'd9,
    NoteKeep = 5'd10,
    Window = 5'd11,
    WindowKeep = 5'd12,
    LookSlots = 5'd13,
    ClearDrain = 5'd14,
    ClearRams = 5'd15,
    ClearLines = 5'd16,
    ClearWait = 5'd17,
    ClearCache = 5'd18,
    RetryGo = 5'd19,
    ListGo = 5'd20,
    ListTake = 5'd21,
    ListTook = 5'd22,
    ListReplay = 5'd23,
    OwnDone = 5'd24,
    AskGo = 5'd25,
    SlowFree = 5'd26,
    ListLook = 5'd27
  } state_e;

  state_e state_q;

  // ---- operations: one is under way, or the state is looked at

  logic op_valid_q;
  op_e op_q;
  logic flag_q;
  logic [7:0] nodes_q;
  kv_t kv_q;
  bucket_t bucket_q;
  logic slow_there_q;  // the queue's head is the sequencer's
  logic noted_q, same_q, settled_q, from_window_q;
  cell_t seen_q;

  assign op_valid_o = op_valid_q;
  always_comb begin
    op_o.op     = op_q;
    op_o.flag   = flag_q;
    op_o.nodes  = nodes_q;
    op_o.kv     = kv_q;
    op_o.bucket = bucket_q;
  end

  // ---- leftovers

  typedef struct packed {
    logic  valid;
    cell_t what;
  } leftover_t;

  logic [LeftoverBits-1:0] list_at;
  logic list_write, list_valid;
  leftover_t list;
  simple_dual_port_ram #(
      .Width($bits(leftover_t)),
      .Depth(2 ** LeftoverBits)
  ) i_list (
      .clk_i,
      .write_i(list_write),
      .write_address_i(list_at),
      .write_data_i({list_valid, seen_q}),
      .read_i(1'b1),
      .read_address_i(list_at),
      .read_data_o(list)
  );

  logic [CountBits-1:0] count_q, high_q;  // leftovers; entries that may be used
  logic [CountBits-1:0] at_q, walk_at_q;  // where a search is, and the walk through all
  logic there_q;  // what is read there is in `list`
  logic own_q;  // one of this node's is in the window
  logic [LeftoverBits-1:0] own_at_q;
  place_t own_place_q;
  logic [2:0] replay_q;
  logic own_done_q;

  logic walk_ends_q;  // known when the entry is
  always_ff @(posedge clk_i) walk_ends_q <= walk_at_q == high_q;

  assign leftovers_o = 12'(count_q);

  // ---- what has to be done

  logic [31:0] timer_q;
  logic tick_q;
  logic clear_pending_q, entering_q;
  logic settle_q;
  logic [15:0] settle_lane_q;
  logic [31:0] settle_request_q;
  logic [7:0] owed_q, entered_q;
  logic leads_any_q;
  logic enter_due_q, enter_again_q;
  logic walk_q, walk_all_q;  // through the writes in flight; all of them at once
  place_t place_q, walk_at_place_q;
  logic list_walk_q, list_ask_q;
  logic ask_q, ask_may_q;
  logic [11:0] ask_bucket_q;
  logic [ 8:0] note_q;
  logic [11:0] count12_q;  // of slots, or of what is cleared
  logic [ 3:0] quiet_q;  // what the engine's stages left behind has been heard of
  logic [ 6:0] writes_q;  // jobs that memory has not done

  logic [7:0] others, missing_entered;
  logic here;  // in an epoch

  // A cycle late, and so near.
  logic [7:0] serving_others;
  logic owed_ready_q, enter_ready_q, alone_q, any_serving_q;
  always_ff @(posedge clk_i) begin
    here            <= epoch_i != '0 && members_i[node_i] && !dead_i;
    others          <= members_i & ~(8'd1 << node_i);
    alone_q         <= others == '0;
    missing_entered <= others & ~entered_q;
    serving_others  <= others & serving_members_i;
    any_serving_q   <= serving_others != '0;
    owed_ready_q    <= owed_q != '0 && count_q == '0 && here;
    enter_ready_q   <= enter_due_q && here && leads_any_q && missing_entered != '0;
  end

  // Fetching: a batch of 8 buckets with 4 ways each, or of 4 lanes of 8 nodes each.
  localparam int unsigned CountBuckets = $bits(bucket_t) + 1;
  logic [CountBuckets-1:0] buckets_left_q;  // not begun
  logic [LaneBits:0] lanes_left_q;
  bucket_t next_bucket_q, batch_bucket_q;
  logic [15:0] next_lane_q, batch_lane_q;
  logic batch_q, batch_lanes_q;
  logic [ 3:0] batch_size_q;
  logic [31:0] batch_missing_q;
  logic [ 4:0] batch_at_q;
  logic batch_walk_q, batch_again_q, batch_looked_q;
  logic [16:0] batch_tag_q;
  logic [CountBuckets-1:0] count_incomplete_q;
  logic [LaneBits:0] lanes_incomplete_q;

  assign sync_count_o = 32'(count_incomplete_q);
  assign sync_lanes_o = 17'(lanes_incomplete_q);

  // Tags of what is asked: a leftover's place in the list, or a batch and the place in it.
  localparam logic [9:0] TagList = 10'h155, TagBatch = 10'h2aa;
  function automatic logic [31:0] batch_tag(logic [16:0] batch, logic [4:0] at);
    return {TagBatch, batch, at};
  endfunction

  // ---- the request that the engine told of

  kv_t slow;
  assign slow = head_i.kv;

  logic slow_is_entry, slow_is_batch, slow_is_list;
  bucket_t slow_bucket;  // of an entry of the batch
  assign slow_is_entry = slow.kind == KindEntry;
  assign slow_is_batch = slow.request[31:5] == {TagBatch, batch_tag_q} && batch_q;
  assign slow_is_list  = slow.request[31:LeftoverBits] == (32 - LeftoverBits)'(TagList);
  assign slow_bucket   = batch_bucket_q + bucket_t'(slow.request[4:2]);

  // Where what came is about, and what it is.
  logic  found_q;
  cell_t target_q;
  logic  stays;  // the leftover in `list` was of a write that took effect
  assign stays = newer(
      target_q.version, list.what.version
  ) || (target_q.version == list.what.version &&
        (slow_is_entry ? same_q : list.what.lane == target_q.lane && list.what.request == target_q.request));

  // ---- lookups of leaders: asked in one cycle, known in the next

  logic [2:0] leader_q;
  logic mine_q;
  always_ff @(posedge clk_i) begin
    leader_q <= leader_i;
    mine_q   <= leader_i == node_i;
  end

  always_comb begin
    case (state_q)
      LookSlots: slot_o = count12_q[7:0];
      EntryFind, ListLook: slot_o = list.what.bucket[7:0];
      default: slot_o = slow_there_q ? slow_bucket[7:0] : batch_bucket_q[7:0] + 8'(batch_at_q[4:2]);
    endcase
  end

  // ---- list's port

  logic list_match;
  assign list_match = list.valid && list.what.bucket == target_q.bucket && list.what.way == target_q.way;

  logic list_drop, list_keep;
  assign list_drop  = !op_valid_q && ((state_q == Search && there_q && list_match) || state_q == OwnDone);
  assign list_keep  = !op_valid_q && state_q == NoteKeep && there_q && !list.valid && !at_q[LeftoverBits];
  assign list_write = list_drop || list_keep || clear_o;
  assign list_valid = list_keep;
  always_comb begin
    case (state_q)
      EntryFind, Search, NoteKeep: list_at = at_q[LeftoverBits-1:0];
      OwnDone: list_at = own_at_q;
      default: list_at = walk_at_q[LeftoverBits-1:0];
    endcase
    if (clear_o) list_at = LeftoverBits'(clear_at_o);
  end

  // ---- which write was at each place when the walk was there the last time

  logic [7:0] walked;
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_walked (
      .clk_i,
      .write_i(!op_valid_q && state_q == RetryGo),
      .write_address_i(walk_at_place_q),
      .write_data_i(seen_q.request[7:0]),
      .read_address_i(walk_at_place_q),
      .read_data_o(walked)
  );

  // ---- what has to be done for whom

  logic [3:0] buckets_next, lanes_next;  // in the next batch
  assign buckets_next = buckets_left_q >= 8 ? 4'd8 : 4'(buckets_left_q);
  assign lanes_next   = lanes_left_q >= 4 ? 4'd4 : 4'(lanes_left_q);
  logic batch_send;  // is missing, and somebody else leads it
  always_ff @(posedge clk_i) batch_send <= batch_missing_q[batch_at_q];

  assign stop_o     = slow_valid_i || slow_there_q || settle_valid_i || settle_q || entering_q || clear_o
                    || (state_q >= ClearDrain && state_q <= ClearCache);
  assign clearing_o = clear_pending_q || (state_q >= ClearDrain && state_q <= ClearCache);
  assign clear_o = state_q == ClearRams;
  assign clear_at_o = count12_q;

  logic [CountBuckets-1:0] bucket_count;
  bucket_t mask;  // the bits that a bucket's number does not have
  always_ff @(posedge clk_i) begin
    bucket_count <= CountBuckets'(1) << bucket_bits_i;
    mask         <= bucket_t'('1) << bucket_bits_i;
  end

  // As many as there are.
  logic [CountBuckets-1:0] sync_room, sync_all;
  logic [LaneBits:0] lanes_all;
  assign sync_room = sync_from_i[31:CountBuckets-1] != '0 || bucket_t'(sync_from_i) > ~mask ? '0
                   : bucket_count - CountBuckets'(sync_from_i);
  assign sync_all = sync_data_i < 32'(sync_room) ? CountBuckets'(sync_data_i) : sync_room;
  assign lanes_all = sync_data_i < 32'(2 ** LaneBits) ? (LaneBits + 1)'(sync_data_i) : (LaneBits + 1)'(2 ** LaneBits);

  // A frame of this node's to others.
  function automatic kv_t between(kind_e kind, logic [2:0] sender, logic [15:0] present);
    between       = '0;
    between.kind  = kind;
    between.node  = sender;
    between.epoch = present;
  endfunction
  // What an operation needs to know of a cell.
  // verilator lint_off UNUSEDSIGNAL
  function automatic kv_t about(cell_t what, logic [2:0] sender, place_t at);
    about         = '0;
    about.node    = sender;
    about.detail  = {what.way, at};
    about.client  = what.lane;
    about.request = what.request;
    about.version = what.version;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

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
      walk_q        <= 1'b1;
      ask_may_q     <= 1'b1;
      enter_due_q   <= 1'b1;
      batch_walk_q  <= 1'b1;
      batch_again_q <= 1'b1;
      if (!list_walk_q) begin
        list_walk_q <= count_q != '0;
        list_ask_q  <= 1'b1;
        walk_at_q   <= '0;
        there_q     <= 1'b0;
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
      note_q       <= '0;
    end
    quiet_q  <= {quiet_q[2:0], quiet_i};
    writes_q <= writes_q + 7'(job_write_i) - 7'(done_i);
    opened_o <= here && leads_any_q && count_q == '0 && missing_entered == '0 && !entering_q;

    if (op_valid_q) begin
      if (op_done_i) begin
        op_valid_q <= 1'b0;
        noted_q    <= seen_i.noted;
        same_q     <= seen_i.same;
        settled_q  <= seen_i.settled;
        seen_q     <= from_window_q ? seen_i.window : seen_i.note;
      end
    end else begin
      flag_q         <= 1'b0;
      from_window_q  <= 1'b0;
      batch_looked_q <= 1'b0;
      case (state_q)
        Idle: begin
          nodes_q <= '0;
          if (settle_q) begin
            settle_q <= 1'b0;
            op_valid_q <= 1'b1;
            op_q <= OpResolve;
            kv_q <= about(
                '{bucket: '0, way: '0, version: '0, lane: settle_lane_q, request: settle_request_q}, '0, '0
            );
          end else if (slow_there_q) begin
            state_q          <= SlowFree;
            target_q.version <= slow.version;
            target_q.lane    <= slow.client;
            target_q.request <= slow.request;
            target_q.way     <= slow.detail[7:6];
            target_q.bucket  <= bucket_t'(head_i.hash) & ~mask;
            kv_q             <= slow;
            found_q          <= 1'b0;
            at_q             <= '0;
            there_q          <= 1'b0;
            case (slow.kind)
              KindEnter:   owed_q[slow.node] <= 1'b1;
              KindEntered: entered_q[slow.node] <= 1'b1;
              KindLaneRecord: begin
                // For {lane of the batch, sender}.
                op_q         <= OpLane;
                kv_q.request <= slow.key[31:0];
                kv_q.key     <= 64'(slow.detail[4:0]);
                if (slow_is_batch && batch_lanes_q && batch_missing_q[{slow.request[1:0], slow.node}]
                    && slow.detail[4:0] < StatusBadLane) begin
                  batch_missing_q[{slow.request[1:0], slow.node}] <= 1'b0;
                  // Unless nothing was ever heard of the lane.
                  op_valid_q <= slow.key[31:0] != '0 || slow.version != '0 || slow.detail[4:0] != '0;
                end
              end
              KindEntry: begin
                if (slow.detail[4:0] == StatusOk && slow_is_list) begin
                  at_q    <= CountBits'(slow.request[LeftoverBits-1:0]);
                  state_q <= EntryFind;
                end
                if (slow.detail[4:0] == StatusOk && slow_is_batch && !batch_lanes_q
                    && batch_missing_q[slow.request[4:0]] && slow.request[1:0] == slow.detail[7:6]) begin
                  target_q.bucket <= slow_bucket;
                  state_q         <= SearchBegin;
                end
              end
              default:     state_q <= Search;
            endcase
          end else if (own_done_q) begin
            state_q <= OwnDone;
          end else if (enter_valid_i && !entered_o) begin
            entering_q <= 1'b1;
            state_q    <= Drain;
          end else if (clear_pending_q) begin
            state_q <= ClearDrain;
          end else if (owed_ready_q) begin
            op_valid_q <= 1'b1;
            op_q       <= OpSend;
            nodes_q    <= owed_q & others;
            kv_q       <= between(KindEntered, node_i, epoch_i);
            owed_q     <= '0;
          end else if (enter_ready_q) begin
            op_valid_q    <= 1'b1;
            op_q          <= OpSend;
            nodes_q       <= missing_entered;
            kv_q          <= between(KindEnter, node_i, epoch_i);
            enter_due_q   <= 1'b0;
            enter_again_q <= 1'b1;
            retry_o       <= enter_again_q;
          end else if (walk_q && here) begin
            if (window_i[walk_at_place_q]) begin
              from_window_q <= 1'b1;
              op_valid_q    <= 1'b1;
              op_q          <= OpLook;
              kv_q          <= about(seen_q, '0, walk_at_place_q);
              state_q       <= RetryGo;
            end else begin
              walk_at_place_q <= walk_at_place_q + 1'b1;
              if (walk_at_place_q == '1) begin
                walk_q     <= 1'b0;
                walk_all_q <= 1'b0;
              end
            end
          end else if (list_walk_q && here) begin
            there_q <= 1'b1;
            if (there_q) begin
              there_q <= 1'b0;
              if (walk_ends_q) list_walk_q <= 1'b0;
              else if (list.valid) state_q <= ListLook;
              else walk_at_q <= walk_at_q + 1'b1;
            end
          end else if (ask_q) begin
            op_valid_q <= 1'b1;
            op_q       <= OpLook;
            kv_q       <= about(seen_q, note_q[8:6], note_q[5:0]);
            state_q    <= AskGo;
          end else if (batch_q) begin
            // The batch is complete, or what is missing has to be asked for.
            batch_looked_q <= !batch_looked_q;
            if (!batch_walk_q) batch_at_q <= '0;
            else if (batch_looked_q) batch_at_q <= batch_at_q + 1'b1;
            if (batch_looked_q && batch_at_q == '1) begin
              batch_walk_q  <= 1'b0;
              batch_again_q <= 1'b0;
            end
            if (batch_missing_q == '0 && (!batch_lanes_q || any_serving_q)) begin
              batch_q <= 1'b0;
              if (batch_lanes_q) lanes_incomplete_q <= lanes_incomplete_q - (LaneBits + 1)'(batch_size_q);
              else count_incomplete_q <= count_incomplete_q - CountBuckets'(batch_size_q);
            end else if (batch_looked_q && batch_walk_q && here && batch_send) begin
              op_q         <= OpSend;
              kv_q         <= between(KindFetch, node_i, epoch_i);
              kv_q.key     <= 64'({batch_bucket_q + bucket_t'(batch_at_q[4:2]), batch_at_q[1:0]});
              kv_q.request <= batch_tag(batch_tag_q, batch_at_q);
              nodes_q      <= 8'd1 << leader_q;
              if (batch_lanes_q) begin
                // A client's request: it says nothing of the sender.
                kv_q         <= between(KindLane, '0, epoch_i);
                kv_q.client  <= batch_lane_q + 16'(batch_at_q[4:3]);
                kv_q.request <= batch_tag(batch_tag_q, 5'(batch_at_q[4:3]));
                nodes_q      <= 8'd1 << batch_at_q[2:0];
              end
              if (batch_lanes_q || !mine_q) begin
                op_valid_q <= 1'b1;
                retry_o    <= batch_again_q;
              end else batch_missing_q[batch_at_q] <= 1'b0;  // its own word counts
            end
          end else if (buckets_left_q != '0 && here) begin
            batch_q        <= 1'b1;
            batch_lanes_q  <= 1'b0;
            batch_bucket_q <= next_bucket_q;
            batch_walk_q   <= 1'b1;
            batch_again_q  <= 1'b0;
            batch_at_q     <= '0;
            batch_tag_q    <= batch_tag_q + 1'b1;
            batch_size_q   <= buckets_next;
            next_bucket_q  <= next_bucket_q + bucket_t'(8);
            buckets_left_q <= buckets_left_q - CountBuckets'(buckets_next);
            for (int i = 0; i < 32; i++) batch_missing_q[i] <= buckets_next > 4'(i / 4);
          end else if (lanes_left_q != '0 && here && any_serving_q) begin
            batch_q       <= 1'b1;
            batch_lanes_q <= 1'b1;
            batch_lane_q  <= next_lane_q;
            batch_walk_q  <= 1'b1;
            batch_again_q <= 1'b0;
            batch_at_q    <= '0;
            batch_tag_q   <= batch_tag_q + 1'b1;
            batch_size_q  <= lanes_next;
            next_lane_q   <= next_lane_q + 16'd4;
            lanes_left_q  <= lanes_left_q - (LaneBits + 1)'(lanes_next);
            for (int i = 0; i < 32; i++) begin
              batch_missing_q[i] <= lanes_next > 4'(i / 8) && serving_others[i%8];
            end
          end
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

        // An entry for a leftover: of which location?
        EntryFind: begin
          there_q <= 1'b1;
          if (there_q) begin
            there_q <= 1'b0;
            at_q <= '0;
            target_q.bucket <= list.what.bucket;
            // Else it was settled meanwhile.
            state_q <= list.valid && list.what.way == target_q.way && at_q < high_q ? SearchBegin : SlowFree;
          end
        end

        // Is what the node has what came?
        SearchBegin: begin
          op_q     <= OpLook;
          flag_q   <= 1'b1;
          bucket_q <= target_q.bucket;
          if (leader_q == slow.node) begin
            op_valid_q <= 1'b1;
            state_q    <= Search;
            if (slow_is_batch) batch_missing_q[slow.request[4:0]] <= 1'b0;
          end else state_q <= SlowFree;
        end

        // All leftovers of the location are settled.
        Search: begin
          nodes_q <= 8'd1;
          there_q <= 1'b1;
          if (at_q == high_q) state_q <= SearchEnd;
          else if (there_q) begin
            there_q <= 1'b0;
            at_q    <= at_q + 1'b1;
            if (list_match) begin
              found_q    <= 1'b1;
              count_q    <= count_q - 1'b1;
              op_valid_q <= 1'b1;
              op_q       <= OpResolve;
              flag_q     <= !stays;
              kv_q       <= about(list.what, '0, '0);
              bucket_q   <= list.what.bucket;
            end
          end
        end

        SearchEnd: begin
          op_valid_q <= 1'b1;
          op_q       <= slow_is_entry ? OpStore : OpAgain;
          flag_q     <= found_q;
          kv_q       <= slow;
          bucket_q   <= target_q.bucket;
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
          note_q  <= '0;
          at_q    <= '0;
          there_q <= 1'b0;
          own_q   <= 1'b0;
          ask_q   <= 1'b0;
          place_q <= '0;
          owed_q  <= '0;
          entered_q <= '0;
          leads_any_q <= 1'b0;
          list_walk_q <= 1'b0;
          own_done_q <= 1'b0;
          if (copied_i) begin
            op_valid_q <= 1'b1;
            op_q       <= OpLook;
            kv_q       <= about(seen_q, '0, '0);
            state_q    <= Note;
          end
        end

        // All that is pending is leftover from now on, but for what an older write's note says.
        Note: begin
          kv_q     <= about(seen_q, note_q[8:6], note_q[5:0]);
          bucket_q <= seen_q.bucket;
          op_q     <= OpLeave;
          if (noted_q) begin
            op_valid_q <= 1'b1;
            state_q    <= NoteLeave;
          end else begin
            settled_q <= 1'b1;
            state_q   <= NoteLeave;
          end
        end
        NoteLeave: begin
          there_q <= 1'b0;
          if (settled_q) begin
            note_q <= note_q + 1'b1;
            if (note_q == '1) begin
              count12_q <= '0;
              state_q   <= Window;
            end else begin
              op_valid_q                    <= 1'b1;
              op_q                          <= OpLook;
              kv_q                          <= about(seen_q, note_q[8:6], note_q[5:0]);
              {kv_q.node, kv_q.detail[5:0]} <= note_q + 1'b1;
              state_q                       <= Note;
            end
          end else state_q <= NoteKeep;
        end
        NoteKeep: begin
          there_q <= 1'b1;
          if (at_q[LeftoverBits]) begin
            overflow_o <= 1'b1;
            settled_q  <= 1'b1;
            state_q    <= NoteLeave;
          end else if (there_q) begin
            there_q <= 1'b0;
            at_q    <= at_q + 1'b1;
            if (!list.valid) begin
              count_q <= count_q + 1'b1;
              if (at_q >= high_q) high_q <= at_q + 1'b1;
              settled_q <= 1'b1;
              state_q   <= NoteLeave;
            end
          end
        end

        // Writes in flight go on where this node still leads.
        Window: begin
          if (window_i[place_q]) begin
            from_window_q <= 1'b1;
            op_valid_q    <= 1'b1;
            op_q          <= OpLook;
            kv_q          <= about(seen_q, '0, place_q);
            state_q       <= WindowKeep;
          end else begin
            place_q <= place_q + 1'b1;
            if (place_q == '1) state_q <= LookSlots;
          end
        end
        WindowKeep: begin
          op_valid_q <= 1'b1;
          op_q       <= OpKeep;
          kv_q       <= about(seen_q, '0, place_q);
          bucket_q   <= seen_q.bucket;
          place_q    <= place_q + 1'b1;
          state_q    <= place_q == '1 ? LookSlots : Window;
        end

        LookSlots: begin
          count12_q <= count12_q + 1'b1;
          if (here && mine_q && count12_q != '0) leads_any_q <= 1'b1;
          if (count12_q[8]) begin
            entered_o       <= 1'b1;
            entering_q      <= 1'b0;
            walk_q          <= 1'b1;
            walk_all_q      <= 1'b1;
            walk_at_place_q <= '0;
            enter_due_q     <= 1'b1;
            enter_again_q   <= 1'b0;
            list_walk_q     <= 1'b1;
            list_ask_q      <= 1'b1;
            walk_at_q       <= '0;
            there_q         <= 1'b0;
            batch_walk_q    <= 1'b1;
            batch_again_q   <= 1'b0;
            batch_at_q      <= '0;
            batch_tag_q     <= batch_tag_q + 1'b1;
            if (batch_lanes_q) begin
              for (int i = 0; i < 32; i++) begin
                batch_missing_q[i] <= batch_size_q > 4'(i / 8) && serving_others[i%8];
              end
            end
            state_q <= Idle;
          end
        end

        // ---- an empty table

        ClearDrain: begin
          count12_q <= '0;
          if (slow_there_q || settle_q || own_done_q) state_q <= Idle;
          else if (&quiet_q && writes_q == '0 && transmit_idle_i) begin
            clear_pending_q <= 1'b0;
            state_q         <= ClearRams;
          end
        end
        ClearRams: begin
          count12_q <= count12_q + 1'b1;
          bucket_q  <= '0;
          op_q      <= OpClear;
          kv_q      <= '0;
          if (count12_q == '1) begin
            op_valid_q <= 1'b1;
            state_q    <= ClearLines;
          end
        end
        ClearLines: begin
          bucket_q <= bucket_q + 1'b1;
          if ((bucket_q | mask) == '1) state_q <= ClearWait;
          else op_valid_q <= 1'b1;
        end
        ClearWait: begin
          if (writes_q == '0 && &quiet_q) begin
            cache_clear_o <= 1'b1;
            state_q       <= ClearCache;
          end
        end
        ClearCache: begin
          count_q            <= '0;
          high_q             <= '0;
          overflow_o         <= 1'b0;
          own_q              <= 1'b0;
          batch_q            <= 1'b0;
          buckets_left_q     <= '0;
          lanes_left_q       <= '0;
          count_incomplete_q <= '0;
          lanes_incomplete_q <= '0;
          if (!cache_clear_o && !cache_clearing_i) state_q <= Idle;
        end

        // ---- in the background

        RetryGo: begin
          // Again, if it is the one that was here the last time.
          op_valid_q      <= walk_all_q || walked == seen_q.request[7:0];
          retry_o         <= walk_all_q || walked == seen_q.request[7:0];
          op_q            <= OpRetry;
          kv_q            <= about(seen_q, '0, walk_at_place_q);
          bucket_q        <= seen_q.bucket;
          walk_at_place_q <= walk_at_place_q + 1'b1;
          state_q         <= Idle;
          if (walk_at_place_q == '1) begin
            walk_q     <= 1'b0;
            walk_all_q <= 1'b0;
          end
        end

        // A leftover: the leader's word is asked for, or this node's own counts.
        ListLook: state_q <= ListGo;
        ListGo: begin
          op_q         <= OpSend;
          kv_q         <= between(KindFetch, node_i, epoch_i);
          kv_q.key     <= 64'({list.what.bucket, list.what.way});
          kv_q.request <= {(32 - LeftoverBits)'(TagList), walk_at_q[LeftoverBits-1:0]};
          nodes_q      <= 8'd1 << leader_q;
          place_q      <= '0;
          replay_q     <= '0;
          if (mine_q && !own_q) state_q <= ListTake;
          else if (mine_q && own_at_q == walk_at_q[LeftoverBits-1:0] && list_ask_q && !alone_q) state_q <= ListReplay;
          else begin
            op_valid_q <= !mine_q && list_ask_q;
            walk_at_q  <= walk_at_q + 1'b1;
            state_q    <= Idle;
          end
        end
        ListTake: begin
          place_q <= place_q + 1'b1;
          if (!window_i[place_q]) begin
            own_place_q <= place_q;
            op_valid_q  <= 1'b1;
            op_q        <= OpTake;
            kv_q        <= about(list.what, '0, place_q);
            bucket_q    <= list.what.bucket;
            own_q       <= 1'b1;
            own_at_q    <= walk_at_q[LeftoverBits-1:0];
            state_q     <= ListTook;
          end
        end
        ListTook: begin
          state_q <= ListReplay;
          if (alone_q) begin
            // Alone: it is done, or has to wait for the lease.
            own_q     <= settled_q;
            walk_at_q <= walk_at_q + 1'b1;
            state_q   <= Idle;
          end
        end
        ListReplay: begin
          op_q       <= OpReplay;
          bucket_q   <= list.what.bucket;
          kv_q       <= about(list.what, '0, own_place_q);
          nodes_q    <= 8'd1 << replay_q;
          op_valid_q <= others[replay_q];
          replay_q   <= replay_q + 1'b1;
          if (replay_q == '1) begin
            walk_at_q <= walk_at_q + 1'b1;
            state_q   <= Idle;
          end
        end
        OwnDone: begin
          own_done_q <= 1'b0;
          own_q      <= 1'b0;
          count_q    <= count_q - 1'b1;
          if (!list_walk_q) begin
            list_walk_q <= 1'b1;
            list_ask_q  <= 1'b0;
            walk_at_q   <= '0;
          end
          there_q <= 1'b0;
          state_q <= Idle;
        end

        AskGo: begin
          note_q <= note_q + 1'b1;
          if (note_q == '1) ask_q <= 1'b0;
          op_q     <= OpAsk;
          nodes_q  <= 8'd1 << note_q[8:6];
          bucket_q <= seen_q.bucket;
          kv_q     <= about(seen_q, note_q[8:6], note_q[5:0]);
          if (noted_q && seen_q.bucket[11:0] == ask_bucket_q) begin
            op_valid_q <= 1'b1;
            retry_o    <= 1'b1;
          end
          state_q <= Idle;
        end

        default: state_q <= Idle;
      endcase
    end

    if (sync_count_write_i) begin
      next_bucket_q      <= bucket_t'(sync_from_i);
      buckets_left_q     <= sync_all;
      count_incomplete_q <= sync_all;
      if (!batch_lanes_q) batch_q <= 1'b0;
    end
    if (sync_lanes_write_i) begin
      next_lane_q        <= '0;
      lanes_left_q       <= lanes_all;
      lanes_incomplete_q <= lanes_all;
      if (batch_lanes_q) batch_q <= 1'b0;
    end

    if (rst_i) begin
      state_q            <= Idle;
      op_valid_q         <= 1'b0;
      slow_there_q       <= 1'b0;
      settle_q           <= 1'b0;
      clear_pending_q    <= 1'b0;
      entering_q         <= 1'b0;
      timer_q            <= '0;
      tick_q             <= 1'b0;
      quiet_q            <= '0;
      writes_q           <= '0;
      count_q            <= '0;
      high_q             <= '0;
      own_q              <= 1'b0;
      own_done_q         <= 1'b0;
      owed_q             <= '0;
      entered_q          <= '0;
      leads_any_q        <= 1'b0;
      enter_due_q        <= 1'b0;
      walk_q             <= 1'b0;
      walk_all_q         <= 1'b0;
      walk_at_place_q    <= '0;
      place_q            <= '0;
      list_walk_q        <= 1'b0;
      there_q            <= 1'b0;
      ask_q              <= 1'b0;
      ask_may_q          <= 1'b1;
      batch_q            <= 1'b0;
      batch_lanes_q      <= 1'b0;
      batch_walk_q       <= 1'b0;
      buckets_left_q     <= '0;
      lanes_left_q       <= '0;
      count_incomplete_q <= '0;
      lanes_incomplete_q <= '0;
      overflow_o         <= 1'b0;
      opened_o           <= 1'b0;
      enter_copy_o       <= 1'b0;
      entered_o          <= 1'b0;
      cache_clear_o      <= 1'b0;
      retry_o            <= 1'b0;
    end
  end

  `ASSERT(slow_alone, !slow_valid_i || !slow_there_q, "a request was handed on before the one before was dealt with")
  `ASSERT(settle_alone, !settle_valid_i || !settle_q, "a lane was to be settled before the one before was")
  `ASSERT(count_right, count_q <= high_q, "more leftovers than entries")

endmodule
`default_nettype wire
