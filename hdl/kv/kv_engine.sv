// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What a node does with a request: docs/kv-protocol.md, sections 4 to 6; docs/kv-core.md has the cycles.
///
/// Behaviour: requests enter in order and take four stages. E0 asks all memories, E1 and E2 hear from them, E3 decides; its decisions are
/// registered and take effect in the cycle after. A request whose line is not in the cache starts over until it is, and
/// those behind it with it. One that changes state keeps the next out until what it changed can be read; reads follow each other
/// every cycle. What needs more than that (epochs, leftovers, a node's return) goes to the sequencer.
/// Latency: request at the queue's end to decision at the outputs 5 cycles.
/// Reset: forgets all requests and all writes in flight; the memories of lanes, notes and filters are the sequencer's to clear.
/// Requirements: the configuration changes only while idle_o and stop_i. Outputs are taken at once: now_almost_full_i and
/// room_i keep room for what is under way.
module kv_engine
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    parameter int unsigned LaneBits   = 12,
    parameter int unsigned QueueDepth = 32
) (
    input wire clk_i,
    input wire rst_i,

    // ---- configuration
    input wire [2:0] node_i,
    input wire [7:0] members_i,
    input wire serving_i,  // in the epoch's serving set, with a lease, without a fault
    input wire opened_i,
    input wire accept_i,
    input wire [15:0] epoch_i,  // 0: none
    input wire [5:0] bucket_bits_i,

    /// Who leads a slot, and who a node is: in the same cycle.
    output logic [7:0] slot_o,
    input wire [2:0] leader_i,
    output logic [2:0] peer_o,
    // verilator lint_off UNUSEDSIGNAL  // a node's MAC address does not matter
    input wire endpoint_t peer_i,
    // verilator lint_on UNUSEDSIGNAL

    // ---- requests
    input  wire           request_valid_i,
    input  wire request_t request_i,
    output logic          room_o,
    /// A write in flight, to be sent again to those who have not answered.
    input  wire           retry_valid_i,
    input  wire place_t   retry_place_i,
    output logic          retry_taken_o,
    /// For the sequencer: a request that is not the engine's business. Its place goes with it.
    output logic          slow_valid_o,
    output request_t      slow_o,
    input  wire           stop_i,
    output logic          idle_o,

    // ---- lines: kv_lines
    output logic         line_read_o,
    output logic [ 31:0] line_bucket_o,
    input  wire          line_hit_i,           // two cycles later
    input  wire  [511:0] line_i,
    output logic         want_o,
    output logic [ 31:0] want_bucket_o,
    output logic         line_write_o,
    output logic [ 31:0] line_write_bucket_o,
    output logic [511:0] line_write_line_o,
    /// A write to the group of line_bucket_o of two cycles ago is under way.
    input  wire          group_busy_i,

    // ---- memory, and what it has done
    input  wire    job_room_i,  // for four more
    output logic   job_valid_o,
    output job_t   job_o,
    input  wire    done_valid_i,
    input  wire place_t done_place_i,

    // ---- places of the pool
    output logic   place_free_o,   // of a request that came to nothing
    output place_t place_freed_o,
    output logic   done_free_o,    // of a value that memory has
    output place_t done_freed_o,

    // ---- what is sent
    input wire now_almost_full_i,  // fewer than eight places
    output logic now_valid_o,
    output send_t now_o,
    input wire later_room_i,  // for four more
    output logic later_valid_o,
    output send_t later_o,

    // ---- what the sequencer and the counters want to know
    output logic [Places-1:0] window_o,            // places in flight
    output logic              received_o,
    output logic [       4:0] received_kind_o,
    output logic              replied_o,
    output logic [       4:0] replied_status_o,
    output logic              dropped_epoch_o,
    output logic              dropped_duplicate_o
);

  // ---- the queue, and what enters

  localparam int unsigned RequestWidth = $bits(request_t);
  localparam int unsigned Spacing = 6;  // cycles from a request that changes state to the next

  logic head_valid, take, done2, rewind, queue_empty;
  request_t head;

  kv_queue #(
      .Width(RequestWidth),
      .Depth(QueueDepth)
  ) i_queue (
      .clk_i,
      .rst_i,
      .room_o,
      .valid_i  (request_valid_i),
      .request_i(request_i),
      .valid_o  (head_valid),
      .request_o(head),
      .take_i   (take),
      .done_i   (done2),
      .rewind_i (rewind),
      .empty_o  (queue_empty)
  );

  function automatic logic changes(logic [4:0] kind);
    case (kind)
      KindRead, KindPing, KindLane, KindFetch: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction

  logic [Places-1:0] window_q;  // in use
  logic [31:0] mask_q;  // of a bucket
  logic [$clog2(Spacing)-1:0] hold_q;
  logic open, valid0, retry0;
  request_t request0;
  logic [31:0] bucket0;
  assign open          = hold_q == '0 && !now_almost_full_i && later_room_i && job_room_i && !stop_i && !rewind;
  assign retry0        = open && retry_valid_i && window_q[retry_place_i];
  assign take          = open && head_valid && !retry0;
  assign valid0        = take || retry0;
  assign retry_taken_o = retry_valid_i && (retry0 || !window_q[retry_place_i]);

  // A retry reads the window at its place; nothing else of the request matters.
  place_t place0;
  assign place0   = retry0 ? retry_place_i : head.kv.detail[5:0];
  assign request0 = head;
  assign bucket0  = (head.kv.kind == KindFetch ? 32'(head.kv.key >> 2) : head.hash) & mask_q;

  always_ff @(posedge clk_i) mask_q <= ~('1 << bucket_bits_i);

  assign slot_o        = bucket0[7:0];
  assign peer_o        = head.kv.node;
  assign line_read_o   = valid0;
  assign line_bucket_o = bucket0;

  always_ff @(posedge clk_i) begin
    if (valid0 && (retry0 || changes(head.kv.kind))) hold_q <= ($clog2(Spacing))'(Spacing - 1);
    else if (hold_q != '0) hold_q <= hold_q - 1'b1;
    if (rewind || rst_i) hold_q <= '0;
  end

  // ---- the memories: asked in E0, written one cycle after E3

  lane_t lane1, lane_write_q;
  logic lane_put_q;
  logic [LaneBits-1:0] lane_at_q;
  simple_dual_port_ram #(
      .Width($bits(lane_t)),
      .Depth(2 ** LaneBits)
  ) i_lanes (
      .clk_i,
      .write_i(lane_put_q),
      .write_address_i(lane_at_q),
      .write_data_i(lane_write_q),
      .read_i(valid0),
      .read_address_i(head.kv.client[LaneBits-1:0]),
      .read_data_o(lane1)
  );

  note_t note1, note_write_q;
  logic note_put_q;
  logic [8:0] note_at_q;
  simple_dual_port_ram #(
      .Width($bits(note_t)),
      .Depth(512)
  ) i_notes (
      .clk_i,
      .write_i(note_put_q),
      .write_address_i(note_at_q),
      .write_data_i(note_write_q),
      .read_i(valid0),
      .read_address_i({head.kv.node, head.kv.detail[5:0]}),
      .read_data_o(note1)
  );

  // What is under way in buckets with these low 12 bits: a write that this node leads, and how many notes. A count that has
  // reached its end stays there: reads then ask the leader, which is always right.
  typedef struct packed {
    logic leads;
    logic [7:0] notes;
  } filter_t;
  filter_t filter_read, filter_write_q;
  logic filter_put_q, filter_again1;
  logic [11:0] filter_at_q, filter_address;
  // In E1 the cell of the note that a replicate takes the place of.
  assign filter_address = filter_again1 ? note1.bucket[11:0] : bucket0[11:0];
  simple_dual_port_ram #(
      .Width($bits(filter_t)),
      .Depth(4096)
  ) i_filter (
      .clk_i,
      .write_i(filter_put_q),
      .write_address_i(filter_at_q),
      .write_data_i(filter_write_q),
      .read_i(valid0 || filter_again1),
      .read_address_i(filter_address),
      .read_data_o(filter_read)
  );

  window_t window0, window_write_q;
  logic   window_put_q;
  place_t window_at_q;
  lutram #(
      .Width($bits(window_t)),
      .Depth(Places)
  ) i_window (
      .clk_i,
      .write_i(window_put_q),
      .write_address_i(window_at_q),
      .write_data_i(window_write_q),
      .read_address_i(place0),
      .read_data_o(window0)
  );
  logic [7:0] answered0, answered_write_q;
  logic answered_put_q;
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_answered (
      .clk_i,
      .write_i(answered_put_q),
      .write_address_i(window_at_q),
      .write_data_i(answered_write_q),
      .read_address_i(place0),
      .read_data_o(answered0)
  );
  assign window_o = window_q;

  // ---- E1: who sent it, and whether its form is right

  logic valid1_q, retry1_q, in_window1_q;
  request_t request1_q;
  logic [31:0] bucket1_q;
  logic [2:0] leader1_q;
  logic [31:0] peer_ip1_q;
  logic [15:0] peer_port1_q;
  window_t window1_q;
  logic [7:0] answered1_q;
  place_t place1_q;

  always_ff @(posedge clk_i) begin
    valid1_q     <= valid0;
    retry1_q     <= retry0;
    request1_q   <= request0;
    bucket1_q    <= bucket0;
    leader1_q    <= leader_i;
    peer_ip1_q   <= peer_i.ip;
    peer_port1_q <= peer_i.port;
    window1_q    <= window0;
    answered1_q  <= answered0;
    in_window1_q <= window_q[place0];
    place1_q     <= place0;
    if (rst_i) valid1_q <= 1'b0;
  end

  function automatic logic is_write(logic [4:0] kind);
    return kind == KindWrite || kind == KindWriteIf || kind == KindRemove || kind == KindRemoveIf;
  endfunction
  function automatic logic is_replicate(logic [4:0] kind);
    return kind == KindReplicate || kind == KindReplicateRemove;
  endfunction
  function automatic logic is_replicated(logic [4:0] kind);
    return kind == KindReplicated || kind == KindReplicatedRemove;
  endfunction
  // Between nodes, and the engine's.
  function automatic logic between_nodes(logic [4:0] kind);
    return is_replicate(kind) || is_replicated(kind) || kind == KindCommit || kind == KindFetch || kind == KindEntry ||
        kind == KindEnter || kind == KindEntered;
  endfunction
  function automatic logic may_have_value(logic [4:0] kind);
    return kind == KindWrite || kind == KindWriteIf || kind == KindReplicate || kind == KindEntry;
  endfunction

  assign filter_again1 = valid1_q && !retry1_q && is_replicate(request1_q.kv.kind);

  // Why a client's request is refused before anybody looks for the key; StatusOk: not yet.
  status_e refusal1;
  logic leads1, right_lane1;
  assign leads1      = leader1_q == node_i;
  assign right_lane1 = (request1_q.kv.client >> LaneBits) == '0;
  always_comb begin
    refusal1 = StatusOk;
    if (request1_q.too_long) refusal1 = StatusTooLong;
    else if ((request1_q.length != '0 && !may_have_value(
            request1_q.kv.kind
        )) || request1_q.kv.detail != '0 || request1_q.kv.node != '0)
      refusal1 = StatusBadFrame;
    else if (!right_lane1) refusal1 = StatusBadLane;
    else if (!serving_i) refusal1 = StatusNotServing;
    else if (request1_q.kv.kind != KindRead) begin
      if (request1_q.kv.epoch != epoch_i) refusal1 = StatusStaleEpoch;
      else if (!leads1) refusal1 = StatusNotLeader;
      else if (!opened_i) refusal1 = StatusBusy;
    end
  end

  // A frame between nodes: of this epoch, of a member, from where that is, about a slot that the right one leads.
  logic known1;
  always_comb begin
    known1 = epoch_i != '0 && request1_q.kv.epoch == epoch_i && members_i[request1_q.kv.node]
        && request1_q.kv.node != node_i && request1_q.from.ip == peer_ip1_q && request1_q.from.port == peer_port1_q
        && !request1_q.too_long && (request1_q.length == '0 || may_have_value(request1_q.kv.kind));
    if (is_replicate(request1_q.kv.kind) || request1_q.kv.kind == KindCommit) known1 &= leader1_q == request1_q.kv.node;
    if (is_replicated(request1_q.kv.kind)) known1 &= leads1;
    if (request1_q.kv.kind != KindFetch) known1 &= right_lane1;
  end

  // ---- E2: the line has come

  logic valid2_q, retry2_q, in_window2_q, leads2_q, known2_q, newer_lane2_q, same_lane2_q;
  request_t request2_q;
  logic [31:0] bucket2_q;
  logic [2:0] leader2_q;
  status_e refusal2_q;
  lane_t lane2_q;
  note_t note2_q;
  filter_t filter2_q;
  window_t window2_q;
  logic [7:0] answered2_q;
  place_t place2_q;

  always_ff @(posedge clk_i) begin
    valid2_q      <= valid1_q && !rewind;
    retry2_q      <= retry1_q;
    in_window2_q  <= in_window1_q;
    leads2_q      <= leads1;
    known2_q      <= known1;
    newer_lane2_q <= !lane1.used || newer(request1_q.kv.request, lane1.request);
    same_lane2_q  <= lane1.used && request1_q.kv.request == lane1.request;
    request2_q    <= request1_q;
    bucket2_q     <= bucket1_q;
    leader2_q     <= leader1_q;
    refusal2_q    <= refusal1;
    lane2_q       <= lane1;
    note2_q       <= note1;
    filter2_q     <= filter_read;
    window2_q     <= window1_q;
    answered2_q   <= answered1_q;
    place2_q      <= place1_q;
    if (rst_i) valid2_q <= 1'b0;
  end

  // Whether the line matters. A request that is refused or answered without it does not wait for it.
  logic [4:0] kind2;
  logic needs_line2, matches_window2, last_answer2;
  logic [7:0] others;
  assign kind2 = request2_q.kv.kind;
  assign others = members_i & ~(8'b1 << node_i);
  assign matches_window2 = in_window2_q && window2_q.version == request2_q.kv.version
      && window2_q.reply.client == request2_q.kv.client && window2_q.reply.request == request2_q.kv.request;
  assign last_answer2 = ((answered2_q | 8'b1 << request2_q.kv.node) & others) == others;
  always_comb begin
    needs_line2 = 1'b0;
    if (!retry2_q) begin
      if (kind2 == KindRead) needs_line2 = refusal2_q == StatusOk && filter2_q.notes == '0;
      else if (is_write(kind2)) needs_line2 = refusal2_q == StatusOk && newer_lane2_q && filter2_q == '0;
      else if (is_replicate(kind2) || kind2 == KindFetch) needs_line2 = known2_q;
      else if (is_replicated(kind2)) needs_line2 = known2_q && matches_window2 && last_answer2;
    end
  end

  logic miss2;
  assign miss2  = valid2_q && needs_line2 && !line_hit_i;
  assign rewind = miss2;
  assign done2  = valid2_q && !miss2 && !retry2_q;

  always_ff @(posedge clk_i) begin
    if (valid2_q) want_o <= miss2;
    if (valid2_q) want_bucket_o <= bucket2_q;
    if (rst_i) want_o <= 1'b0;
  end

  // The four ways, and the newer of each two versions.
  way_header_t [3:0] way2;
  logic [3:0] match2, free2;
  logic [1:0][31:0] newest2;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      way2[i]   = way_of(line_i, 2'(i));
      match2[i] = way2[i].present && way2[i].key == request2_q.kv.key;
      free2[i]  = !way2[i].present;
    end
    for (int i = 0; i < 2; i++) begin
      newest2[i] = newer(way2[2*i].version, way2[2*i+1].version) ? way2[2*i].version : way2[2*i+1].version;
    end
  end

  // ---- E3: the decision

  logic valid3_q, retry3_q, leads3_q, known3_q, newer_lane3_q, same_lane3_q, matches_window3_q, last_answer3_q, busy3_q;
  request_t request3_q;
  logic [31:0] bucket3_q;
  logic [2:0] leader3_q;
  status_e refusal3_q;
  lane_t lane3_q;
  note_t note3_q;
  filter_t filter3_q, filter_old3_q;
  window_t window3_q;
  logic [7:0] answered3_q;
  place_t place3_q;
  logic [3:0] match3_q, free3_q;
  logic [1:0][31:0] newest3_q;
  logic [511:0] line3_q;

  always_ff @(posedge clk_i) begin
    valid3_q          <= valid2_q && !miss2;
    retry3_q          <= retry2_q;
    leads3_q          <= leads2_q;
    known3_q          <= known2_q;
    newer_lane3_q     <= newer_lane2_q;
    same_lane3_q      <= same_lane2_q;
    matches_window3_q <= matches_window2;
    last_answer3_q    <= last_answer2;
    busy3_q           <= group_busy_i;
    request3_q        <= request2_q;
    bucket3_q         <= bucket2_q;
    leader3_q         <= leader2_q;
    refusal3_q        <= refusal2_q;
    lane3_q           <= lane2_q;
    note3_q           <= note2_q;
    filter3_q         <= filter2_q;
    filter_old3_q     <= filter_read;
    window3_q         <= window2_q;
    answered3_q       <= answered2_q;
    place3_q          <= place2_q;
    match3_q          <= match2;
    free3_q           <= free2;
    newest3_q         <= newest2;
    line3_q           <= line_i;
    if (rst_i) valid3_q <= 1'b0;
  end

  logic [4:0] kind3;
  kv_t kv3;
  assign kv3   = request3_q.kv;
  assign kind3 = kv3.kind;

  // Where the key is, or would go.
  logic found3;
  logic [1:0] found_way3, first_way3, new_way3, way3;
  way_header_t header3;  // of way3
  logic [31:0] newest, next_version;
  assign found3     = match3_q != '0;
  assign found_way3 = {match3_q[3] | match3_q[2], match3_q[3] | match3_q[1]};
  assign first_way3 = first_way_of(request3_q.hash);
  always_comb begin
    new_way3 = first_way3;
    if (!free3_q[first_way3]) begin
      for (int i = 3; i >= 0; i--) if (free3_q[i]) new_way3 = 2'(i);
    end
    if (is_replicate(kind3)) way3 = kv3.detail[7:6];
    else if (kind3 == KindFetch) way3 = kv3.key[1:0];
    else if (is_replicated(kind3)) way3 = window3_q.way;
    else way3 = found3 ? found_way3 : new_way3;
  end
  assign header3      = way_of(line3_q, way3);
  assign newest       = newer(newest3_q[0], newest3_q[1]) ? newest3_q[0] : newest3_q[1];
  assign next_version = newest == '1 ? 32'd1 : newest + 1'b1;

  // How a client's write ends, if it does not go on to the followers.
  logic conditional3, removes3;
  status_e outcome3;
  logic [31:0] outcome_version3;
  assign conditional3 = kind3 == KindWriteIf || kind3 == KindRemoveIf;
  assign removes3     = kind3 == KindRemove || kind3 == KindRemoveIf;
  always_comb begin
    outcome3 = StatusOk;
    outcome_version3 = '0;
    if (removes3 && !found3) outcome3 = StatusNoSuchKey;
    else if (conditional3 && kv3.version != (found3 ? header3.version : '0)) begin
      outcome3 = StatusVersionMismatch;
      outcome_version3 = found3 ? header3.version : '0;
    end else if (!found3 && free3_q == '0) outcome3 = StatusTableFull;
  end

  // Frames.
  function automatic kv_t answer(kv_t request, logic [2:0] leader, logic [15:0] epoch, logic [4:0] status,
                                 logic [31:0] version);
    answer         = request;
    answer.kind    = request.kind | 5'd16;
    answer.node    = leader;
    answer.detail  = {3'b0, status};
    answer.epoch   = epoch;
    answer.version = version;
  endfunction
  function automatic send_t frame(endpoint_t to, kv_t kv);
    frame        = '0;
    frame.to     = to;
    frame.kv     = kv;
    frame.source = ValueNone;
    frame.summed = 1'b1;
  endfunction

  // What E3 decides, for the registers below.
  logic now_d, second_d, later_d, job_d, line_put, lane_put, note_put, window_put, answered_put, place_free, slow_d;
  logic filter_put, filter_put_old, replied, dropped_epoch, dropped_duplicate, defer;
  send_t now, second, later;
  job_t job;
  way_header_t new_header;
  lane_t lane;
  note_t note;
  filter_t filter, filter_old;
  window_t window;
  logic [7:0] answered;
  logic [Places-1:0] window_in_use;
  place_t window_place;
  logic [4:0] status3;
  logic commits, commits_alone;
  logic fresh3, leaves_note3;  // a replicate that is not there yet; the note at its place is of another cell
  assign fresh3       = newer(kv3.version, header3.version);
  assign leaves_note3 = note3_q.valid && note3_q.bucket[11:0] != bucket3_q[11:0];

  always_comb begin
    now_d = 1'b0;
    second_d = 1'b0;
    later_d = 1'b0;
    job_d = 1'b0;
    line_put = 1'b0;
    lane_put = 1'b0;
    note_put = 1'b0;
    window_put = 1'b0;
    answered_put = 1'b0;
    place_free = 1'b0;
    slow_d = 1'b0;
    filter_put = 1'b0;
    filter_put_old = 1'b0;
    replied = 1'b0;
    dropped_epoch = 1'b0;
    dropped_duplicate = 1'b0;
    defer = 1'b0;
    commits = 1'b0;
    commits_alone = 1'b0;
    status3 = StatusOk;
    now = frame(request3_q.from, kv3);
    second = frame(request3_q.from, kv3);
    later = frame(request3_q.from, kv3);
    later.source = ValueMemory;
    later.length = header3.length;
    later.sum = header3.sum;
    later.summed = header3.reserved[3];
    job = '0;
    job.bucket = bucket3_q;
    job.way = way3;
    job.place = request3_q.place;
    new_header = header3;
    lane = lane3_q;
    note = note3_q;
    filter = filter3_q;
    filter_old = filter_old3_q;
    window = window3_q;
    answered = answered3_q;
    window_in_use = window_q;
    window_place = request3_q.place;

    if (valid3_q && retry3_q) begin
      // Again, to those who have not answered.
      now_d          = (others & ~answered3_q) != '0;
      now.kv         = window3_q.reply;
      now.kv.kind    = window3_q.remove ? KindReplicateRemove : KindReplicate;
      now.kv.node    = node_i;
      now.kv.detail  = {window3_q.way, place3_q};
      now.kv.epoch   = epoch_i;
      now.kv.version = window3_q.version;
      now.nodes      = others & ~answered3_q;
      now.source     = ValuePool;
      now.place      = place3_q;
      now.length     = window3_q.length;
      now.summed     = window3_q.summed;
      now.sum        = window3_q.sum;
    end else if (valid3_q) begin
      place_free = request3_q.has_place;
      case (kind3)
        KindPing, KindLane: begin
          now_d = 1'b1;
          replied = 1'b1;
          status3 = kind3 == KindLane && (kv3.client >> LaneBits) != '0 ? StatusBadLane
                  : !serving_i ? StatusNotServing : StatusOk;
          now.kv = answer(kv3, node_i, epoch_i, status3, '0);
          if (kind3 == KindLane && status3 == StatusOk) begin
            // Of a write that may yet be taken back, the request before it.
            now.kv.key     = {32'd0, lane3_q.request - 32'(lane3_q.used && !lane3_q.settled)};
            now.kv.version = lane3_q.settled ? lane3_q.version : '0;
            now.kv.detail  = {3'b0, lane3_q.settled ? lane3_q.status : 5'(StatusOk)};
          end
        end

        KindRead: begin
          replied = 1'b1;
          status3 = refusal3_q != StatusOk ? refusal3_q
                  : filter3_q.notes != '0 ? (leads3_q ? StatusBusy : StatusPending)
                  : found3 ? StatusOk : StatusNoSuchKey;
          now.kv = answer(kv3, leader3_q, epoch_i, status3, status3 == StatusOk ? header3.version : '0);
          later.kv = now.kv;
          later_d = status3 == StatusOk && header3.length != '0;
          now_d = !later_d;
          job_d = later_d;
          job.length = header3.length;
        end

        KindWrite, KindWriteIf, KindRemove, KindRemoveIf: begin
          if (refusal3_q != StatusOk) status3 = refusal3_q;
          else if (!newer_lane3_q) status3 = lane3_q.status;
          else if (filter3_q != '0 || !request3_q.has_place) status3 = StatusBusy;
          else status3 = outcome3;
          now.kv = answer(kv3, leader3_q, epoch_i, status3, '0);
          if (refusal3_q == StatusOk && !newer_lane3_q) begin
            // Heard before: told again what it came to, if that is known and final.
            // With `store` not before memory has it: the first answer is on its way.
            replied           = same_lane3_q && !lane3_q.in_flight && lane3_q.settled && (accept_i || !busy3_q);
            dropped_duplicate = !replied;
            now.kv.version    = lane3_q.version;
            now_d             = replied;
          end else if (status3 != StatusOk) begin
            now_d   = 1'b1;
            replied = 1'b1;
            if (refusal3_q == StatusOk && status3 == outcome3) begin
              lane_put = 1'b1;
              lane = '{
                  request: kv3.request,
                  version: outcome_version3,
                  status: outcome3,
                  in_flight: 1'b0,
                  settled: 1'b1,
                  used: 1'b1
              };
              now.kv.version = outcome_version3;
            end
          end else begin
            // The write begins.
            place_free = 1'b0;
            lane_put = 1'b1;
            lane = '{
                request: kv3.request,
                version: next_version,
                status: StatusOk,
                in_flight: 1'b1,
                settled: 1'b0,
                used: 1'b1
            };
            window_put = 1'b1;
            window.to = request3_q.from;
            window.reply = kv3;
            window.reply.version = next_version;
            window.way = way3;
            window.version = next_version;
            window.remove = removes3;
            window.length = request3_q.length;
            window.summed = request3_q.summed;
            window.sum = request3_q.sum;
            answered_put = 1'b1;
            answered = '0;
            commits_alone = others == '0;
            if (!commits_alone) begin
              window_in_use[request3_q.place] = 1'b1;
              filter_put                      = 1'b1;
              filter.leads                    = 1'b1;
              now_d                           = 1'b1;
              now.nodes                       = others;
              now.kv.kind                     = removes3 ? KindReplicateRemove : KindReplicate;
              now.kv.node                     = node_i;
              now.kv.detail                   = {way3, request3_q.place};
              now.kv.version                  = next_version;
              now.source                      = ValuePool;
              now.place                       = request3_q.place;
              now.length                      = request3_q.length;
              now.summed                      = request3_q.summed;
              now.sum                         = request3_q.sum;
            end
          end
        end

        KindReplicate, KindReplicateRemove: begin
          now.kv      = kv3;
          now.kv.kind = kind3 | 5'd16;
          now.kv.node = node_i;
          if (!known3_q) dropped_epoch = 1'b1;
          else if (!request3_q.has_place) dropped_duplicate = 1'b1;
          else if (fresh3) begin
            place_free = 1'b0;
            new_header = '{
                key: kv3.key,
                version: kv3.version,
                present: kind3 == KindReplicate,
                reserved: {request3_q.summed, 3'b0},
                length: request3_q.length,
                sum: request3_q.sum
            };
            line_put = 1'b1;
            job_d = 1'b1;
            note_put = 1'b1;
            note = '{
                valid: 1'b1,
                bucket: bucket3_q,
                way: way3,
                version: kv3.version,
                lane: kv3.client,
                request: kv3.request
            };
            lane_put = newer_lane3_q;
            lane = '{
                request: kv3.request,
                version: kv3.version,
                status: StatusOk,
                in_flight: 1'b0,
                settled: 1'b0,
                used: 1'b1
            };
            filter_put = !note3_q.valid || leaves_note3;
            filter.notes = filter3_q.notes + 8'(filter3_q.notes != '1);
            filter_put_old = leaves_note3 && filter_old3_q.notes != '1;
            filter_old.notes = filter_old3_q.notes - 1'b1;
            now_d = accept_i;
            defer = !accept_i;
          end else begin
            // It is here already. While memory is still at it, the first one's answer will come.
            now_d = accept_i || !busy3_q;
            dropped_duplicate = !now_d;
          end
        end

        KindReplicated, KindReplicatedRemove: begin
          window_place = place3_q;
          if (!known3_q) dropped_epoch = 1'b1;
          else if (!matches_window3_q) begin
            // Committed before: tell this one again.
            now_d       = 1'b1;
            now.kv.kind = KindCommit;
            now.kv.node = node_i;
          end else begin
            answered_put = 1'b1;
            answered     = answered3_q | 8'b1 << kv3.node;
            commits      = last_answer3_q;
          end
        end

        KindCommit: begin
          if (!known3_q) dropped_epoch = 1'b1;
          else if (note3_q.valid && note3_q.version == kv3.version && note3_q.bucket == bucket3_q
                   && note3_q.lane == kv3.client && note3_q.request == kv3.request) begin
            note_put     = 1'b1;
            note.valid   = 1'b0;
            filter_put   = filter3_q.notes != '1;
            filter.notes = filter3_q.notes - 1'b1;
            lane_put     = same_lane3_q;
            lane.settled = 1'b1;
          end
        end

        KindFetch: begin
          if (!known3_q || !leads3_q) dropped_epoch = 1'b1;
          else begin
            now.kv         = kv3;
            now.kv.kind    = KindEntry;
            now.kv.node    = node_i;
            now.kv.key     = header3.key;
            now.kv.version = header3.version;
            now.kv.detail  = {way3, header3.present, 5'(StatusOk)};
            later.kv       = now.kv;
            later_d        = header3.present && header3.length != '0;
            now_d          = !later_d;
            job_d          = later_d;
            job.length     = header3.length;
          end
        end

        KindEntry, KindEntered, KindEnter: begin
          slow_d        = known3_q;
          dropped_epoch = !known3_q;
          place_free    = request3_q.has_place && !known3_q;
        end

        KindLaneRecord: slow_d = 1'b1;

        default: begin
        end
      endcase

      if (commits || commits_alone) begin
        // Every member has it: it takes effect.
        new_header = '{
            key: kv3.key,
            version: window.version,
            present: !window.remove,
            reserved: {window.summed, 3'b0},
            length: window.length,
            sum: window.sum
        };
        line_put = 1'b1;
        job_d = 1'b1;
        job.place = window_place;
        lane_put = commits_alone || same_lane3_q;
        lane = '{
            request: window.reply.request,
            version: window.version,
            status: StatusOk,
            in_flight: 1'b0,
            settled: 1'b1,
            used: 1'b1
        };
        window_put = 1'b0;
        window_in_use[window_place] = 1'b0;
        filter_put = commits;
        filter.leads = 1'b0;
        now = frame(window.to, answer(window.reply, node_i, epoch_i, StatusOk, window.version));
        now_d = accept_i;
        defer = !accept_i;
        replied = 1'b1;
        second_d = commits;
        second.nodes = others;
        second.kv = kv3;
        second.kv.kind = KindCommit;
        second.kv.node = node_i;
      end

      job.write    = line_put;
      job.has_line = line_put;
      if (line_put) job.length = new_header.present ? new_header.length : '0;
    end

    job.line = line3_q;
    job.line[128*way3+:128] = way_bytes(new_header);
  end

  // ---- what takes effect

  logic second_q, filter_second_q, defer_q;
  send_t second_send_q, defer_send_q;
  place_t defer_place_q;
  filter_t filter_second_write_q;
  logic [11:0] filter_second_at_q;
  logic engine_now_q;  // now_o is the engine's
  send_t engine_send_q;

  always_ff @(posedge clk_i) begin
    engine_now_q          <= now_d || second_q;
    engine_send_q         <= second_q ? second_send_q : now;
    second_q              <= second_d;
    second_send_q         <= second;
    later_valid_o         <= later_d;
    later_o               <= later;
    job_valid_o           <= job_d;
    job_o                 <= job;

    line_write_o          <= line_put;
    line_write_bucket_o   <= bucket3_q;
    line_write_line_o     <= job.line;

    lane_put_q            <= lane_put;
    lane_write_q          <= lane;
    lane_at_q             <= kv3.client[LaneBits-1:0];
    note_put_q            <= note_put;
    note_write_q          <= note;
    note_at_q             <= {kv3.node, kv3.detail[5:0]};
    window_put_q          <= window_put;
    window_write_q        <= window;
    window_at_q           <= window_place;
    window_q              <= window_in_use;
    answered_put_q        <= answered_put;
    answered_write_q      <= answered;

    // Two cells in two cycles: nobody else writes in the second.
    filter_put_q          <= filter_put || filter_second_q;
    filter_write_q        <= filter_second_q ? filter_second_write_q : filter;
    filter_at_q           <= filter_second_q ? filter_second_at_q : bucket3_q[11:0];
    filter_second_q       <= filter_put_old;
    filter_second_write_q <= filter_old;
    filter_second_at_q    <= note3_q.bucket[11:0];

    defer_q               <= defer;
    defer_send_q          <= now;
    defer_place_q         <= job.place;

    place_free_o          <= place_free;
    place_freed_o         <= request3_q.place;
    slow_valid_o          <= slow_d;
    slow_o                <= request3_q;

    received_o            <= valid3_q && !retry3_q;
    received_kind_o       <= kind3;
    replied_o             <= replied;
    replied_status_o      <= commits ? 5'(StatusOk) : status3;
    dropped_epoch_o       <= dropped_epoch;
    dropped_duplicate_o   <= dropped_duplicate;
    if (rst_i) begin
      engine_now_q <= 1'b0;
      second_q <= 1'b0;
      later_valid_o <= 1'b0;
      job_valid_o <= 1'b0;
      line_write_o <= 1'b0;
      lane_put_q <= 1'b0;
      note_put_q <= 1'b0;
      window_put_q <= 1'b0;
      window_q <= '0;
      answered_put_q <= 1'b0;
      filter_put_q <= 1'b0;
      filter_second_q <= 1'b0;
      defer_q <= 1'b0;
      place_free_o <= 1'b0;
      slow_valid_o <= 1'b0;
      received_o <= 1'b0;
      replied_o <= 1'b0;
      dropped_epoch_o <= 1'b0;
      dropped_duplicate_o <= 1'b0;
    end
  end

  // ---- what memory has done: the place is free, and with `store` now is the time for the answer

  logic [Places-1:0] deferred_q;
  logic done_there, done_take;
  place_t done_place;
  send_t deferred;
  logic done_ready;
  // verilator lint_off UNUSEDSIGNAL
  logic [6:0] done_count;
  logic done_almost_full;
  // verilator lint_on UNUSEDSIGNAL
  stream_fifo #(
      .Width($bits(place_t)),
      .Depth(64)
  ) i_done (
      .clk_i,
      .rst_i,
      .s_valid(done_valid_i),
      .s_ready(done_ready),
      .s_payload(done_place_i),
      .m_valid(done_there),
      .m_ready(done_take),
      .m_payload(done_place),
      .count_o(done_count),
      .almost_full_o(done_almost_full)
  );
  lutram #(
      .Width($bits(send_t)),
      .Depth(Places)
  ) i_deferred (
      .clk_i,
      .write_i(defer_q),
      .write_address_i(defer_place_q),
      .write_data_i(defer_send_q),
      .read_address_i(done_place),
      .read_data_o(deferred)
  );

  assign done_take    = done_there && !(deferred_q[done_place] && (engine_now_q || now_almost_full_i));
  assign done_free_o  = done_take;
  assign done_freed_o = done_place;
  assign now_valid_o  = engine_now_q || (done_take && deferred_q[done_place]);
  assign now_o        = engine_now_q ? engine_send_q : deferred;

  always_ff @(posedge clk_i) begin
    if (done_take) deferred_q[done_place] <= 1'b0;
    if (defer_q) deferred_q[defer_place_q] <= 1'b1;
    if (rst_i) deferred_q <= '0;
  end

  assign idle_o = queue_empty && !valid1_q && !valid2_q && !valid3_q && !second_q && hold_q == '0;

  `ASSERT(sends_in_turn, !(second_q && now_d), "two frames for one cycle")
  `ASSERT(place_used_once, !(place_free && (job_d && job.write || window_put)), "a place was freed and used")
  `ASSERT(room_for_done, !done_valid_i || done_ready, "memory did more than there are places")
  `ASSERT(line_was_there, !line_put || !valid3_q || $past(line_hit_i), "a line was changed that had not come")

endmodule
`default_nettype wire
