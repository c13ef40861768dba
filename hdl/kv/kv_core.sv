// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "axi.svh"

/// A node of the key-value store. docs/design/kv-protocol.md defines its behaviour, and docs/design/kv-core.md explains
/// its structure.
///
/// Behaviour: the core handles the kv frames for this node. It passes all other frames from the network to the host,
/// and the host's frames to the network, unchanged and in order. Registers: docs/reference/kv-registers.md.
/// A host that stops receiving does not block the core: up to HostBeats beats wait for it, then frames are dropped
/// whole and counted.
/// Latency: a foreign frame needs 4 cycles from its last beat to the host, or 1 to the network if the output is idle. A
/// read whose line is cached needs 8 cycles to the memory's pins and 4 from there to the network.
/// Paths: s_host_tready from m_net_tready.
/// Reset: forgets everything. Afterwards the core must be told to clear its table before its first epoch. Outstanding
/// memory answers must have arrived before reset ends.
/// Requirements: line_base and value_base are multiples of 4096, at least 64 bytes per bucket apart.
module kv_core
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    /// Memory channels: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The line cache has 2^LineCacheBits lines.
    parameter int unsigned LineCacheBits = 12,
    /// The node keeps records for lanes 0 to 2^LaneBits - 1.
    parameter int unsigned LaneBits = 12,
    /// The number of followers that software reads. Each follower costs one bit.
    parameter int unsigned MaxFollowers = 7,
    /// The network delivers only whole frames without errors, with s_net_size beside their first beats: kv_parser.
    parameter bit WholeFrames = 1'b1,
    /// Bits of tuser, passed on with foreign frames; 16 or more. The core's own frames have their size there.
    parameter int unsigned UserWidth = 48,
    /// Foreign beats that can wait for the host, and so the longest frame; a power of two.
    parameter int unsigned HostBeats = 4096
) (
    input wire clk_i,
    input wire rst_i,

    `AXI_LITE_SUBORDINATE(s_axil, 12, 32)

    // Streams from and to the network.
    `AXIS_RECEIVER(s_net, 512, UserWidth)
    `AXIS_TRANSMITTER(m_net, 512, UserWidth)

    // Streams from and to the host.
    `AXIS_RECEIVER(s_host, 512, UserWidth)
    `AXIS_TRANSMITTER(m_host, 512, UserWidth)

    // Memory: AXI3. All bursts are INCR with 32 bytes a beat, and all identifiers are 0.
    `AXI3_MANAGER(m_axi, Channels, AddressBits, 256)

    /// With the last beat of a frame of s_net: the MAC marked the frame as bad.
    input wire        s_net_error,
    /// Size of that frame in bytes, with its first beat. Unused without WholeFrames.
    input wire [15:0] s_net_size
);

  localparam kv_config_t Config = '{
      channels: Channels,
      line_cache_bits: LineCacheBits,
      lane_bits: LaneBits,
      max_followers: MaxFollowers,
      whole_frames: WholeFrames,
      user_width: UserWidth,
      host_beats: HostBeats
  };
  if (!config_is_valid(Config)) begin : gen_check_config
    $fatal(1, "a parameter is beyond what kv_config_t says of it in %m");
  end
  `AXIS_TYPE(axis, 512, UserWidth)

  // ---- signals between the blocks

  endpoint_t self;
  logic serving_q, memory_error, memory_fails, dead;
  logic [31:0] source;
  who_ask_t [1:0] ask;  // the engine; kv_recovery and transmit
  who_t [1:0] who;
  logic [1:1][2:0] peer_index;
  endpoint_t [1:1] peer;
  kv_settings_t settings;
  recovery_state_t recovery;

  // The end of a lease takes effect one cycle later. Decisions made before that still count.
  always_ff @(posedge clk_i) begin
    serving_q <= settings.leased && settings.staged.serving_members[settings.staged.node]
        && settings.staged.epoch[15:0] != '0 && !dead;
    if (rst_i) serving_q <= 1'b0;
  end
  assign dead = recovery.overflow || memory_error || settings.misplaced;
  assign self = settings.staged.self;
  assign ask[1].node = peer_index[1];
  assign peer[1] = who[1].at;

  logic place_take;
  offered_place_t place;
  free_place_t bad_place, nothing_place, done_place;
  pool_write_t pool_write;
  filling_t filling;
  pool_read_t for_transmit, for_memory;
  logic [1:0][511:0] pool_data;

  logic request_valid, room;
  // verilator lint_off UNUSEDSIGNAL
  request_t request;
  // verilator lint_on UNUSEDSIGNAL
  arrival_t arrival;
  assign {request_valid, request} = arrival;

  standing_t standing;
  to_engine_t to_engine;
  from_engine_t from_engine;
  logic stop;

  lookup_t lookup;
  found_t found;
  want_t announce, wanted;
  line_write_t line_write;
  logic group_busy, cache_clear, cache_clearing;
  logic job_room, job_valid;
  memory_job_t job;
  job_done_t job_done;

  sending_t sending;
  almost_full_t almost_full;
  logic transmit_idle, word_valid, word_ready, value_begun;
  logic [511:0] word_data;

  logic clear_table, passed_tx, dropped_host, allowed, sent;
  logic [4:0] sent_kind;
  fetch_order_t fetch;
  fetch_left_t fetch_left;
  entering_t entering;
  entry_step_t entry_step;
  rx_events_t rx_events;
  engine_events_t engine_events;

  // verilator lint_off UNUSEDSIGNAL
  logic job_ready, here;
  logic [63:0] line_base, value_base;  // their pages
  // verilator lint_on UNUSEDSIGNAL
  assign line_base  = settings.direct.line_base;
  assign value_base = settings.direct.value_base;

  // ---- from the network

  typedef struct packed {
    logic [UserWidth-1:0] user;
    logic [63:0] keep;
    logic [511:0] data;
  } foreign_t;
  foreign_t foreign, for_host;
  logic foreign_valid, foreign_ready, foreign_last, unused_bad;

  axis_t from_net, passed, from_host, to_net;
  assign from_net = '{user: s_net_tuser, last: s_net_tlast, keep: s_net_tkeep, data: s_net_tdata};
  assign foreign = '{user: passed.user, keep: passed.keep, data: passed.data};
  assign foreign_last = passed.last;

  kv_parser #(
      .Config(Config),
      .axis_t(axis_t)
  ) i_parser (
      .*,
      .enable_i(settings.direct.enable),
      .self_i(self),
      .s_valid(s_net_tvalid),
      .s_ready(s_net_tready),
      .s_payload(from_net),
      .s_error(s_net_error),
      .s_size(s_net_size),
      .m_valid(foreign_valid),
      .m_ready(foreign_ready),
      .m_payload(passed),
      .source_o(source),
      .allowed_i(allowed),
      .place_i(place),
      .place_take_o(place_take),
      .free_o(bad_place),
      .pool_o(pool_write),
      .filling_o(filling),
      .room_i(room),
      .arrival_o(arrival),
      .events_o(rx_events)
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

  kv_pool i_pool (
      .*,
      .place_o(place),
      .take_i(place_take),
      .free_i({bad_place, nothing_place, done_place}),
      .write_i(pool_write),
      .read_i({for_memory, for_transmit}),
      .read_data_o(pool_data)
  );

  // ---- requests for the engine

  logic leftovers_q;
  always_ff @(posedge clk_i) leftovers_q <= recovery.leftovers != '0;
  assign standing = '{serving: serving_q, opened: recovery.opened, dead: dead, leftovers: leftovers_q};

  kv_engine #(
      .Config(Config)
  ) i_engine (
      .*,
      .settings_i   (settings),
      .standing_i   (standing),
      .ask_o        (ask[0]),
      .who_i        (who[0]),
      .arrival_i    (arrival),
      .room_o       (room),
      .recovery_i   (to_engine),
      .stop_i       (stop),
      .recovery_o   (from_engine),
      .lookup_o     (lookup),
      .found_i      (found),
      .want_o       (wanted),
      .line_write_o (line_write),
      .group_busy_i (group_busy),
      .job_room_i   (job_room),
      .job_valid_o  (job_valid),
      .job_o        (job),
      .free_o       (nothing_place),
      .almost_full_i(almost_full),
      .sending_o    (sending),
      .events_o     (engine_events)
  );

  downstream_t downstream;
  assign downstream = '{
          transmit_idle: transmit_idle,
          job_write: job_valid && job.write,
          job_done: job_done.done,
          cache_clearing: cache_clearing
      };
  kv_recovery #(
      .Config(Config)
  ) i_recovery (
      .*,
      .settings_i   (settings),
      .entering_i   (entering),
      .step_o       (entry_step),
      .slot_o       (ask[1].slot),
      .leader_i     (who[1].leader),
      .clear_table_i(clear_table),
      .fetch_i      (fetch),
      .fetch_left_o (fetch_left),
      .dead_i       (dead),
      .state_o      (recovery),
      .engine_o     (to_engine),
      .engine_i     (from_engine),
      .stop_o       (stop),
      .downstream_i (downstream),
      .cache_clear_o(cache_clear)
  );

  // ---- memory

  // The line of a received request is requested before the engine handles the request.
  bucket_t announced, mask_q;
  always_ff @(posedge clk_i) mask_q <= ~(bucket_t'('1) << settings.direct.bucket_bits);
  assign announced = bucket_for(request.kv, request.hash, mask_q);

  memory_req_t  [Channels-1:0] memory_req;
  memory_resp_t [Channels-1:0] memory_resp;
  // A fetch is not announced, because it names its bucket and not a key.
  assign announce = '{
          want: request_valid && reads_line(request.kv.kind) && request.kv.kind != KindFetch,
          bucket: announced
      };

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
      .line_write_i(line_write),
      .group_busy_o(group_busy),
      .job_header_i(line_write.header),
      .job_room_o(job_room),
      .job_done_o(job_done),
      .value_begun_o(value_begun),
      .pool_read_o(for_memory),
      .pool_data_i(pool_data[1]),
      .filling_i(filling),
      .m_axi_req(memory_req),
      .m_axi_resp(memory_resp)
  );
  for (genvar c = 0; c < int'(Channels); c++) begin : gen_memory_port
    `AXI3_TO_FLAT(m_axi, c, memory_req[c], memory_resp[c])
  end

  // ---- to the network

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
      .value_begun_i(value_begun),
      .pool_read_o(for_transmit),
      .pool_data_i(pool_data[0]),
      .filling_i(filling),
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

  place_count_t in_flight_q, in_flight_then_q;  // two cycles late, so that what was sent meanwhile is on its way
  always_ff @(posedge clk_i) begin
    in_flight_then_q <= from_engine.in_flight;
    in_flight_q      <= in_flight_then_q;
  end

  // The nodes that this leader asked last. `enter` counts only while no write is in flight, because a node that owes
  // `entered` may be waiting for a write in this leader's window.
  logic asks_q;
  logic [7:0] nodes_q, unanswered_q;
  always_ff @(posedge clk_i) begin
    asks_q <= sending.now && sending.send.kv.kind == KindEnter && in_flight_q == '0;
    if (is_replicate(sending.send.kv.kind)) asks_q <= sending.now || sending.later;
    nodes_q <= sending.send.nodes;
    if (asks_q) unanswered_q <= nodes_q;
    if (rst_i) unanswered_q <= '0;
  end

  kv_registers_pkg::state_t state;
  events_t events;
  assign state = '{
          serving: serving_q,
          opened: recovery.opened && !dead,
          clearing: recovery.clearing,
          fault: dead,
          entering: 1'b0,
          leftovers: recovery.leftovers,
          in_flight: in_flight_q,
          unanswered: unanswered_q
      };
  assign events = '{
          rx: rx_events,
          engine: engine_events,
          retry: recovery.retry,
          dropped_host: dropped_host,
          passed_tx: passed_tx,
          sent: sent,
          sent_kind: sent_kind
      };

  kv_axil_req_t  axil_req;
  kv_axil_resp_t axil_resp;
  `AXI_LITE_FROM_FLAT(s_axil, axil_req, axil_resp)
  kv_registers #(
      .Config(Config),
      .Askers(2)
  ) i_registers (
      .*,
      .s_axil_req   (axil_req),
      .s_axil_resp  (axil_resp),
      .settings_o   (settings),
      .entering_o   (entering),
      .step_i       (entry_step),
      .ask_i        (ask),
      .who_o        (who),
      .source_i     (source),
      .allowed_o    (allowed),
      .clear_table_o(clear_table),
      .fetch_o      (fetch),
      .fetch_left_i (fetch_left),
      .state_i      (state),
      .events_i     (events)
  );

  `ASSERT(job_has_room, !job_valid || job_ready, "no room for a job of memory")

endmodule
`default_nettype wire
