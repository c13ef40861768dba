// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "axi.svh"

/// A node of the key-value store: docs/kv-protocol.md says what it does, docs/kv-core.md how.
///
/// Behaviour: kv frames for this node that come from the network are its own; all others go on to the host, and the host's to the network,
/// unchanged and in order. Registers: docs/kv-registers.md.
/// A host that takes nothing holds up nothing: foreign frames for it wait, and are dropped whole, and counted, when HostBeats wait.
/// Latency: foreign frames 4 cycles from their last beat to the host, 1 to the network, while nothing else is sent. A read whose line is in the cache: 8 cycles
/// to the memory's pins, 4 from there to the network.
/// Paths: s_host_tready from m_net_tready.
/// Reset: forgets everything, and must be told to clear its table before its first epoch. What memory still answers must
/// have come before reset ends.
/// Requirements: line_base and value_base differ by at least 64 bytes for each bucket, in multiples of 4096.
module kv_core
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// Of memory: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// 2^n lines in the cache.
    parameter int unsigned LineCacheBits = 12,
    /// Lanes 0 to 2^n - 1.
    parameter int unsigned LaneBits = 12,
    /// What software reads of it; the cost of a follower is a bit.
    parameter int unsigned MaxFollowers = 7,
    /// The network gives whole frames without errors only, and s_net_size beside their first beats: kv_parser.
    parameter bit WholeFrames = 1'b1,
    /// Bits of tuser, passed on with foreign frames; 16 or more. The core's own frames have their size there.
    parameter int unsigned UserWidth = 48,
    /// Beats of foreign frames that wait for the host, and of the longest; a power of two.
    parameter int unsigned HostBeats = 4096
) (
    input wire clk_i,
    input wire rst_i,

    input  wire  [11:0] s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output logic        s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire  [ 3:0] s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire  [11:0] s_axil_araddr,
    input  wire         s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  wire         s_axil_rready,

    // From and to the network.
    input  wire                  s_net_tvalid,
    output logic                 s_net_tready,
    input  wire  [        511:0] s_net_tdata,
    input  wire  [         63:0] s_net_tkeep,
    input  wire                  s_net_tlast,
    input  wire  [UserWidth-1:0] s_net_tuser,
    /// With the last beat: the MAC marked the frame as bad.
    input  wire                  s_net_error,
    /// Bytes of the frame, with its first beat; not looked at without WholeFrames.
    input  wire  [         15:0] s_net_size,
    output logic                 m_net_tvalid,
    input  wire                  m_net_tready,
    output logic [        511:0] m_net_tdata,
    output logic [         63:0] m_net_tkeep,
    output logic                 m_net_tlast,
    output logic [UserWidth-1:0] m_net_tuser,

    // From and to the host.
    input  wire                  s_host_tvalid,
    output logic                 s_host_tready,
    input  wire  [        511:0] s_host_tdata,
    input  wire  [         63:0] s_host_tkeep,
    input  wire                  s_host_tlast,
    input  wire  [UserWidth-1:0] s_host_tuser,
    output logic                 m_host_tvalid,
    input  wire                  m_host_tready,
    output logic [        511:0] m_host_tdata,
    output logic [         63:0] m_host_tkeep,
    output logic                 m_host_tlast,
    output logic [UserWidth-1:0] m_host_tuser,

    // Memory: AXI3; all bursts INCR of 32 bytes a beat, all identifiers 0.
    output logic     [Channels-1:0]        m_axi_arvalid,
    input  wire      [Channels-1:0]        m_axi_arready,
    output address_t [Channels-1:0]        m_axi_araddr,
    output logic     [Channels-1:0][  3:0] m_axi_arlen,
    input  wire      [Channels-1:0]        m_axi_rvalid,
    output logic     [Channels-1:0]        m_axi_rready,
    input  wire      [Channels-1:0][255:0] m_axi_rdata,
    input  wire      [Channels-1:0][  1:0] m_axi_rresp,
    output logic     [Channels-1:0]        m_axi_awvalid,
    input  wire      [Channels-1:0]        m_axi_awready,
    output address_t [Channels-1:0]        m_axi_awaddr,
    output logic     [Channels-1:0][  3:0] m_axi_awlen,
    output logic     [Channels-1:0]        m_axi_wvalid,
    input  wire      [Channels-1:0]        m_axi_wready,
    output logic     [Channels-1:0][255:0] m_axi_wdata,
    output logic     [Channels-1:0][ 31:0] m_axi_wstrb,
    output logic     [Channels-1:0]        m_axi_wlast,
    input  wire      [Channels-1:0]        m_axi_bvalid,
    output logic     [Channels-1:0]        m_axi_bready,
    input  wire      [Channels-1:0][  1:0] m_axi_bresp
);

  localparam int unsigned BeatBits = $clog2(ValueBeats);

  // ---- what the blocks say to each other

  endpoint_t self;
  logic enable, accept, leased, serving_q, opened, overflow, memory_error, memory_fails, misplaced, dead;
  logic [31:0] epoch, retry_cycles, source;
  logic [2:0] node;
  logic [7:0] members, serving_members;
  logic [5:0] bucket_bits;
  logic [1:0][7:0] slot;
  logic [1:0][2:0] leader, peer_index;
  endpoint_t [1:0] peer;

  // A lease that ends is noticed a cycle later; what was decided before is on its way.
  always_ff @(posedge clk_i) begin
    serving_q <= leased && serving_members[node] && epoch[15:0] != '0 && !dead;
    if (rst_i) serving_q <= 1'b0;
  end
  assign dead = overflow || memory_error || misplaced;

  logic place_valid, place_plenty, place_take, bad_free, came_to_nothing;
  place_t place, bad_freed, nothing_freed;
  logic pool_write, filling;
  place_t pool_write_place, filling_place;
  logic [BeatBits-1:0] pool_write_beat;
  logic [511:0] pool_write_data;
  logic [BeatBits:0] filled;
  logic [1:0][511:0] pool_data;

  logic request_valid, room;
  request_t request;

  logic op_valid, op_done, slow_valid, settle_valid, pending, leftover_done, stop, quiet, clear_rams;
  op_t op;
  seen_t seen;
  subject_t head;
  lane_number_t settle_lane;
  logic [31:0] walked_version, settle_request;
  logic [11:0] clear_at, leftovers;
  filter_cell_t pending_cell;
  logic [Places-1:0] window;

  logic line_read, line_changes, line_hit, want, line_write, group_busy, cache_clear, cache_clearing;
  bucket_t line_bucket, want_bucket, line_write_bucket;
  logic [511:0] line;
  logic [  1:0] line_write_way;
  logic [127:0] line_write_header;
  logic job_room, job_valid, done;
  memory_job_t job;

  logic now_valid, now_almost_full, later_valid, later_almost_full, deferred_valid, transmit_idle;
  send_t send;
  logic word_valid, word_ready, value_begun;
  logic [511:0] word_data;

  logic enter_valid, enter_copy, copied, entered, clear_table, clearing;
  logic sync_count_write, sync_lanes_write;
  logic [31:0] sync_data, sync_from, sync_count;
  logic [16:0] sync_lanes;
  logic [63:0] line_base, value_base;

  logic frame_kv, passed_rx, passed_tx, dropped_checksum, dropped_length, dropped_epoch, dropped_duplicate;
  logic dropped_busy, dropped_host, dropped_source, allowed, retry, replied, received, sent;
  logic [4:0] reply_status, received_kind, sent_kind;

  // verilator lint_off UNUSEDSIGNAL
  logic job_ready, here;
  logic [31:0] enter_epoch;
  logic unused;
  assign unused = ^{line_base[63:AddressBits], value_base[63:AddressBits], epoch[31:16], reply_status[4],
                    line_base[11:0], value_base[11:0]};
  // verilator lint_on UNUSEDSIGNAL

  // ---- from the network

  typedef struct packed {
    logic [UserWidth-1:0] user;
    logic [63:0] keep;
    logic [511:0] data;
  } foreign_t;
  foreign_t foreign, for_host;
  logic foreign_valid, foreign_ready, foreign_last, unused_bad;

  kv_parser #(
      .WholeFrames(WholeFrames),
      .UserWidth  (UserWidth)
  ) i_parser (
      .*,
      .enable_i(enable),
      .self_i(self),
      .s_axis_tvalid(s_net_tvalid),
      .s_axis_tready(s_net_tready),
      .s_axis_tdata(s_net_tdata),
      .s_axis_tkeep(s_net_tkeep),
      .s_axis_tlast(s_net_tlast),
      .s_axis_tuser(s_net_tuser),
      .s_axis_error(s_net_error),
      .s_axis_size(s_net_size),
      .m_axis_tvalid(foreign_valid),
      .m_axis_tready(foreign_ready),
      .m_axis_tdata(foreign.data),
      .m_axis_tkeep(foreign.keep),
      .m_axis_tlast(foreign_last),
      .m_axis_tuser(foreign.user),
      .source_o(source),
      .allowed_i(allowed),
      .place_valid_i(place_valid),
      .place_plenty_i(place_plenty),
      .place_i(place),
      .place_take_o(place_take),
      .place_free_o(bad_free),
      .place_freed_o(bad_freed),
      .pool_write_o(pool_write),
      .pool_place_o(pool_write_place),
      .pool_beat_o(pool_write_beat),
      .pool_data_o(pool_write_data),
      .filling_o(filling),
      .filling_place_o(filling_place),
      .filled_o(filled),
      .room_i(room),
      .request_valid_o(request_valid),
      .request_o(request),
      .passed_o(passed_rx),
      .received_o(frame_kv),
      .dropped_checksum_o(dropped_checksum),
      .dropped_length_o(dropped_length),
      .dropped_source_o(dropped_source),
      .dropped_busy_o(dropped_busy)
  );

  packet_fifo #(
      .Width($bits(foreign_t)),
      .Depth(HostBeats),
      .Block(1'b1),
      .Ultra(1'b1),
      .DropWhenFull(1'b1)
  ) i_for_host (
      .*,
      .s_valid(foreign_valid),
      .s_ready(foreign_ready),
      .s_payload(foreign),
      .s_last(foreign_last),
      .s_bad(1'b0),
      .m_valid(m_host_tvalid),
      .m_ready(m_host_tready),
      .m_payload(for_host),
      .m_last(m_host_tlast),
      .dropped_bad_o(unused_bad),
      .dropped_full_o(dropped_host)
  );
  assign m_host_tdata = for_host.data;
  assign m_host_tkeep = for_host.keep;
  assign m_host_tuser = for_host.user;

  // The bundles of what the blocks before and behind have as single signals.
  free_place_t bad_place, nothing_place, done_place;
  pool_write_t pool_put;
  filling_t fills;
  pool_read_t for_transmit, for_memory;
  assign bad_place = '{valid: bad_free, place: bad_freed};
  assign nothing_place = '{valid: came_to_nothing, place: nothing_freed};
  assign pool_put = '{write: pool_write, place: pool_write_place, beat: pool_write_beat, data: pool_write_data};
  assign fills = '{filling: filling, place: filling_place, filled: filled};

  kv_pool i_pool (
      .*,
      .place_valid_o(place_valid),
      .place_plenty_o(place_plenty),
      .place_o(place),
      .take_i(place_take),
      .free_i({bad_place, nothing_place, done_place}),
      .write_i(pool_put),
      .read_i({for_memory, for_transmit}),
      .read_data_o(pool_data)
  );

  // ---- what is to be done

  logic leftovers_q, refresh, refreshing;
  always_ff @(posedge clk_i) leftovers_q <= leftovers != '0;

  kv_engine #(
      .LaneBits(LaneBits)
  ) i_engine (
      .*,
      .node_i(node),
      .members_i(members),
      .serving_i(serving_q),
      .opened_i(opened),
      .accept_i(accept),
      .epoch_i(epoch[15:0]),
      .bucket_bits_i(bucket_bits),
      .dead_i(dead),
      .leftovers_i(leftovers_q),
      .slot_o(slot[0]),
      .leader_i(leader[0]),
      .peer_o(peer_index[0]),
      .peer_i(peer[0]),
      .request_valid_i(request_valid),
      .request_i(request),
      .room_o(room),
      .op_valid_i(op_valid),
      .op_i(op),
      .op_done_o(op_done),
      .seen_o(seen),
      .slow_valid_o(slow_valid),
      .walked_version_i(walked_version),
      .head_o(head),
      .settle_valid_o(settle_valid),
      .settle_lane_o(settle_lane),
      .settle_request_o(settle_request),
      .pending_o(pending),
      .pending_cell_o(pending_cell),
      .leftover_done_o(leftover_done),
      .refresh_o(refresh),
      .refreshing_i(refreshing),
      .stop_i(stop),
      .quiet_o(quiet),
      .clear_i(clear_rams),
      .clear_at_i(clear_at),
      .line_read_o(line_read),
      .line_changes_o(line_changes),
      .line_bucket_o(line_bucket),
      .line_hit_i(line_hit),
      .line_i(line),
      .want_o(want),
      .want_bucket_o(want_bucket),
      .line_write_o(line_write),
      .line_write_bucket_o(line_write_bucket),
      .line_write_way_o(line_write_way),
      .line_write_header_o(line_write_header),
      .group_busy_i(group_busy),
      .job_room_i(job_room),
      .job_valid_o(job_valid),
      .job_o(job),
      .place_free_o(came_to_nothing),
      .place_freed_o(nothing_freed),
      .now_almost_full_i(now_almost_full),
      .later_room_i(!later_almost_full),
      .now_valid_o(now_valid),
      .later_valid_o(later_valid),
      .deferred_valid_o(deferred_valid),
      .send_o(send),
      .window_o(window),
      .received_o(received),
      .received_kind_o(received_kind),
      .replied_o(replied),
      .replied_status_o(reply_status),
      .dropped_epoch_o(dropped_epoch),
      .dropped_duplicate_o(dropped_duplicate)
  );

  kv_recovery #(
      .LaneBits(LaneBits)
  ) i_sequencer (
      .*,
      .enter_valid_i(enter_valid),
      .enter_copy_o(enter_copy),
      .copied_i(copied),
      .entered_o(entered),
      .epoch_i(epoch[15:0]),
      .node_i(node),
      .members_i(members),
      .serving_members_i(serving_members),
      .retry_cycles_i(retry_cycles),
      .bucket_bits_i(bucket_bits),
      .slot_o(slot[1]),
      .leader_i(leader[1]),
      .clear_table_i(clear_table),
      .clearing_o(clearing),
      .sync_count_write_i(sync_count_write),
      .sync_lanes_write_i(sync_lanes_write),
      .sync_data_i(sync_data),
      .sync_from_i(sync_from),
      .sync_count_o(sync_count),
      .sync_lanes_o(sync_lanes),
      .dead_i(dead),
      .opened_o(opened),
      .overflow_o(overflow),
      .leftovers_o(leftovers),
      .retry_o(retry),
      .op_valid_o(op_valid),
      .op_o(op),
      .op_done_i(op_done),
      .seen_i(seen),
      .slow_valid_i(slow_valid),
      .slow_bucket_i(want_bucket),
      .walked_version_o(walked_version),
      .head_i(head),
      .settle_valid_i(settle_valid),
      .settle_lane_i(settle_lane),
      .settle_request_i(settle_request),
      .pending_i(pending),
      .pending_cell_i(pending_cell),
      .leftover_done_i(leftover_done),
      .refresh_i(refresh),
      .refreshing_o(refreshing),
      .stop_o(stop),
      .quiet_i(quiet),
      .clear_o(clear_rams),
      .clear_at_o(clear_at),
      .window_i(window),
      .transmit_idle_i(transmit_idle),
      .job_write_i(job_valid && job.write),
      .done_i(done),
      .cache_clear_o(cache_clear),
      .cache_clearing_i(cache_clearing)
  );

  // ---- memory

  // The line of what was received is asked for before the request's turn.
  bucket_t announced, mask_q;
  always_ff @(posedge clk_i) mask_q <= ~(bucket_t'('1) << bucket_bits);
  assign announced = bucket_for(request.kv, request.hash, mask_q);

  want_t announce, wanted;
  lookup_t lookup;
  found_t found;
  line_write_t line_put;
  job_done_t job_done;
  memory_req_t [Channels-1:0] memory_req;
  memory_resp_t [Channels-1:0] memory_resp;
  // A fetch names its bucket, not a key.
  assign announce = '{
          want: request_valid && reads_line(request.kv.kind) && request.kv.kind != KindFetch,
          bucket: announced
      };
  assign wanted = '{want: want, bucket: want_bucket};
  assign lookup = '{read: line_read, changes: line_changes, bucket: line_bucket};
  assign line_hit = found.hit;
  assign line = found.line;
  assign line_put = '{write: line_write, bucket: line_write_bucket, way: line_write_way, header: line_write_header};
  assign done = job_done.done;

  kv_memory #(
      .Channels(Channels),
      .LineCacheBits(LineCacheBits)
  ) i_memory (
      .*,
      .line_base_i({line_base[AddressBits-1:12], 12'd0}),
      .value_base_i({value_base[AddressBits-1:12], 12'd0}),
      .error_o(memory_error),
      .fails_o(memory_fails),
      .clear_i(cache_clear),
      .clearing_o(cache_clearing),
      .announce_i(announce),
      .lookup_i(lookup),
      .found_o(found),
      .want_i(wanted),
      .here_o(here),
      .line_write_i(line_put),
      .group_busy_o(group_busy),
      .job_valid,
      .job_ready,
      .job,
      .job_header_i(line_write_header),
      .job_room_o(job_room),
      .job_done_o(job_done),
      .word_valid,
      .word_ready,
      .word_data,
      .value_begun_o(value_begun),
      .pool_read_o(for_memory),
      .pool_data_i(pool_data[1]),
      .filling_i(fills),
      .m_axi_req(memory_req),
      .m_axi_resp(memory_resp)
  );
  for (genvar c = 0; c < int'(Channels); c++) begin : gen_memory_port
    `AXI3_TO_FLAT(m_axi, c, memory_req[c], memory_resp[c])
  end

  // ---- to the network

  `AXIS_TYPE(axis, 512, UserWidth)
  axis_t from_host, to_net;
  sending_t sending;
  almost_full_t almost_full;
  assign sending = '{now: now_valid, later: later_valid, deferred: deferred_valid, send: send};
  assign {now_almost_full, later_almost_full} = almost_full;
  assign from_host = '{user: s_host_tuser, last: s_host_tlast, keep: s_host_tkeep, data: s_host_tdata};
  assign {m_net_tuser, m_net_tlast, m_net_tkeep, m_net_tdata} = to_net;

  kv_transmit #(
      .axis_t(axis_t)
  ) i_transmit (
      .*,
      .self_i(self),
      .peer_o(peer_index[1]),
      .peer_i(peer[1]),
      .sending_i(sending),
      .almost_full_o(almost_full),
      .job_done_i(job_done),
      .dead_i(dead || memory_fails),
      .free_o(done_place),
      .word_valid,
      .word_ready,
      .word_data,
      .value_begun_i(value_begun),
      .pool_read_o(for_transmit),
      .pool_data_i(pool_data[0]),
      .filling_i(fills),
      .s_valid(s_host_tvalid),
      .s_ready(s_host_tready),
      .s_payload(from_host),
      .m_valid(m_net_tvalid),
      .m_ready(m_net_tready),
      .m_payload(to_net),
      .idle_o(transmit_idle),
      .sent_o(sent),
      .sent_kind_o(sent_kind),
      .passed_o(passed_tx)
  );

  // ---- registers

  logic [6:0] in_flight_q;
  logic [3:0][4:0] in_flight_part_q;
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) in_flight_part_q[i] <= 5'($countones(window[16*i+:16]));
    in_flight_q <= (7'(in_flight_part_q[0]) + 7'(in_flight_part_q[1]))
                 + (7'(in_flight_part_q[2]) + 7'(in_flight_part_q[3]));
  end

  // Whom this leader asked for an answer last. Who owes `entered` may be waiting for a write that this leader has in its window.
  logic asks_q;
  logic [7:0] nodes_q, unanswered_q;
  always_ff @(posedge clk_i) begin
    asks_q <= now_valid && send.kv.kind == KindEnter && in_flight_q == '0;
    if (is_replicate(send.kv.kind)) asks_q <= now_valid || later_valid;
    nodes_q <= send.nodes;
    if (asks_q) unanswered_q <= nodes_q;
    if (rst_i) unanswered_q <= '0;
  end

  kv_registers #(
      .MaxFollowers(MaxFollowers),
      .LaneBits(LaneBits),
      .Channels(Channels),
      .LeaderPorts(2),
      .PeerPorts(2)
  ) i_registers (
      .*,
      .enter_valid_o(enter_valid),
      .enter_epoch_o(enter_epoch),
      .enter_copy_i(enter_copy),
      .copied_o(copied),
      .entered_i(entered),
      .epoch_o(epoch),
      .node_o(node),
      .members_o(members),
      .serving_members_o(serving_members),
      .self_o(self),
      .peer_index_i(peer_index),
      .peer_o(peer),
      .slot_i(slot),
      .leader_o(leader),
      .source_i(source),
      .allowed_o(allowed),
      .enable_o(enable),
      .accept_o(accept),
      .retry_cycles_o(retry_cycles),
      .bucket_bits_o(bucket_bits),
      .line_base_o(line_base),
      .value_base_o(value_base),
      .leased_o(leased),
      .clear_table_o(clear_table),
      .misplaced_o(misplaced),
      .sync_count_write_o(sync_count_write),
      .sync_lanes_write_o(sync_lanes_write),
      .sync_data_o(sync_data),
      .sync_from_o(sync_from),
      .sync_count_i(sync_count),
      .sync_lanes_i(sync_lanes),
      .serving_i(serving_q),
      .opened_i(opened && !dead),
      .clearing_i(clearing),
      .fault_i(dead),
      .leftovers_i(leftovers),
      .in_flight_i(in_flight_q),
      .unanswered_i(unanswered_q),
      .frame_kv_i(frame_kv),
      .passed_rx_i(passed_rx),
      .passed_tx_i(passed_tx),
      .dropped_checksum_i(dropped_checksum),
      .dropped_length_i(dropped_length),
      .dropped_epoch_i(dropped_epoch),
      .dropped_duplicate_i(dropped_duplicate),
      .retry_i(retry),
      .dropped_busy_i(dropped_busy),
      .dropped_host_i(dropped_host),
      .dropped_source_i(dropped_source),
      .reply_i(replied),
      .reply_status_i(reply_status[3:0]),
      .received_i(received),
      .received_kind_i(received_kind),
      .sent_i(sent),
      .sent_kind_i(sent_kind)
  );

  `ASSERT(job_has_room, !job_valid || job_ready, "no room for a job of memory")

endmodule
`default_nettype wire
