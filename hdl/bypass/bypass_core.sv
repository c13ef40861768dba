// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "axi.svh"

/// Drives a commodity NIC: the NIC's rings and buffers lie in this core's window, and its frames are streams.
/// See docs/design/bypass-core.md.
/// Behaviour: the NIC reads and writes the window (s_axi, offsets in BAR 2). Descriptors are computed when it reads
/// them, and decoded when it writes them back. Received frames leave whole at m_rx. Frames at s_tx are transmitted.
/// Tails leave at m_axil. Of a frame in place, only the first beat leaves, at m_head. If its verdict is to forward,
/// the frame is transmitted from its slots. Registers: docs/reference/bypass-registers.md.
/// tuser of m_rx, m_head and s_tx: [15:0] bytes (ignored at s_tx), [23:16] queue pair; of m_rx and m_head [47:24]
/// cycle. s_verdict: a beat for each beat taken at m_head. tuser[0]: forward; tuser[1]: tdata is the new first line.
/// Latency: write-back to m_rx or m_head 5 cycles, 6 with several pairs; s_tx to tail 3 or 4; verdict to tail 2 or
/// 3.
/// Paths: W of s_axi and s_verdict to registers within; s_verdict_tready from s_verdict_tvalid.
/// Reset: all pairs are stopped.
/// Requirements: the NIC writes in order (no relaxed ordering). The function takes every frame in the end.
module bypass_core
  import bypass_pkg::*;
#(
    /// 2^n queue pairs, 0 to 4.
    parameter int unsigned QueueBits  = 0,
    /// Each pair has 2^n receive descriptors and as many slots of 2 KiB; 4 to 10 - QueueBits.
    parameter int unsigned RxRingBits = 8,
    /// Each pair has 2^n transmit descriptors; 3 to 12.
    parameter int unsigned TxRingBits = 9,
    /// The packed transmit buffer has 2^n lines of 64 bytes; 9 to 11.
    parameter int unsigned PackBits   = 9
) (
    `AXI_LITE_SUBORDINATE(s_axil, 16, 32)
    `AXI_SUBORDINATE(s_axi, WindowBits, 512, 6)
    `AXI_LITE_WRITER(m_axil, 64, 32)

    // Streams between the core and the function.
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)
    `AXIS_TRANSMITTER(m_head, 512, 48)
    `AXIS_RECEIVER(s_verdict, 512, 48)

    input wire clk_i,
    input wire rst_i
);

  localparam bypass_config_t Config = '{
      queue_bits: QueueBits,
      rx_bits: RxRingBits,
      tx_bits: TxRingBits,
      pack_bits: PackBits
  };
  if (!config_is_valid(Config)) begin : gen_check_config
    $fatal(1, "a parameter is beyond what bypass_config_t says of it in %m");
  end
  localparam int unsigned Queues = 1 << QueueBits;
  localparam int unsigned SlotLineBits = QueueBits + RxRingBits + SlotBits - LineBits;
  typedef logic [Queues-1:0] queues_t;

  // ---- signals between the blocks

  settings_t settings;
  logic [23:0] cycle;
  pair_state_t [Queues-1:0] pairs;
  news_t news;

  window_write_t window_write;
  window_read_t window_read;
  queues_t run, room, take, coming, post_to;
  index_t [Queues-1:0] tx_tail;
  release_t [1:0] freed;

  logic [2*Queues-1:0] bell_valid, bell_ready;
  index_t [2*Queues-1:0] bell_tail;

  events_t port_events, slots_events, reader_events, input_events, verdict_events, watch_events, tail_events;

  // ---- the window

  window_req_t  window_req;
  window_resp_t window_resp;
  `AXI_FROM_FLAT(s_axi, window_req, window_resp)
  data_t expanded, packed_data, slot_data;
  bypass_port #(
      .Config(Config)
  ) i_port (
      .*,
      .s_axi_req    (window_req),
      .s_axi_resp   (window_resp),
      .rx_32_bytes_i(settings.personality.rx_32_bytes),
      .write_o      (window_write),
      .read_o       (window_read),
      .expanded_i   (expanded),
      .packed_i     (packed_data),
      .slot_i       (slot_data),
      .events_o     (port_events)
  );

  tx_entry_t [3:0] entries;
  bypass_expand #(
      .Config(Config)
  ) i_expand (
      .*,
      .settings_i(settings),
      .read_i    (window_read),
      .entries_i (entries),
      .beat_o    (expanded)
  );
  bypass_decode i_decode (
      .*,
      .nic_i  (settings.personality),
      .write_i(window_write),
      .rx_o   (news.rx_written),
      .tx_o   (news.tx_written)
  );
  fetch_t fetch;
  release_t [1:0] released;
  assign news.fetch = fetch;
  assign news.released = released;
  always_ff @(posedge clk_i) begin
    fetch.valid <= window_read.valid && (window_read.region == RxRing || window_read.region == TxRing);
    fetch.tx <= window_read.region == TxRing;
    fetch.pair <= window_read.offset[20:17];
    fetch.group <= settings.personality.rx_32_bytes && !window_read.offset[16] ? {1'b0, window_read.offset[15:7]}
                 : window_read.offset[15:6];
    released <= freed;
    if (rst_i) begin
      fetch.valid <= 1'b0;
      for (int i = 0; i < 2; i++) released[i].valid <= 1'b0;
    end
  end

  // ---- queue pairs

  for (genvar q = 0; q < int'(Queues); q++) begin : gen_pair
    bypass_pair #(
        .Config(Config),
        .Queue (queue_t'(q))
    ) i_pair (
        .*,
        .settings_i(settings),
        .news_i    (news),
        .order_i   ('{take: take[q], coming: coming[q], post: post_to[q]}),
        .state_o   (pairs[q]),
        .m_valid   (bell_valid[2*q+:2]),
        .m_ready   (bell_ready[2*q+:2]),
        .m_payload (bell_tail[2*q+:2])
    );
    assign run[q]     = pairs[q].running;
    assign room[q]    = pairs[q].tx.room;
    assign tx_tail[q] = pairs[q].tx.tail;
  end

  // ---- receive

  logic frame_valid, frame_ready;
  frame_t frame;
  bypass_rx_frames #(
      .Config(Config)
  ) i_rx_frames (
      .*,
      .max_frame_i(settings.max_frame),
      .written_i  (news.rx_written),
      .pairs_i    (pairs),
      .take_o     (take),
      .m_valid    (frame_valid),
      .m_ready    (frame_ready),
      .m_payload  (frame)
  );

  logic line_valid, line_ready, read, read_ready;
  logic [SlotLineBits-1:0] replaced_line, read_line;
  data_t replaced_data;
  bypass_slots #(
      .Config(Config)
  ) i_slots (
      .*,
      .window_write_i(window_write),
      .window_read_i (window_read),
      .pairs_i       (pairs),
      .written_o     (news.writes),
      .events_o      (slots_events),
      .s_valid       (line_valid),
      .s_ready       (line_ready),
      .s_line        (replaced_line),
      .s_data        (replaced_data),
      .read_i        (read),
      .ready_o       (read_ready),
      .read_line_i   (read_line),
      .data_o        (slot_data)
  );

  logic place_valid, place_ready;
  frame_t place;
  bypass_axis_t from_nic;
  bypass_rx_reader #(
      .Config(Config)
  ) i_rx_reader (
      .*,
      .in_place_i     (settings.in_place),
      .time_i         (cycle),
      .s_valid        (frame_valid),
      .s_ready        (frame_ready),
      .s_payload      (frame),
      .read_o         (read),
      .read_line_o    (read_line),
      .ready_i        (read_ready),
      .data_i         (slot_data),
      .m_rx_valid     (m_rx_tvalid),
      .m_rx_ready     (m_rx_tready),
      .m_head_valid   (m_head_tvalid),
      .m_head_ready   (m_head_tready),
      .m_payload      (from_nic),
      .m_place_valid  (place_valid),
      .m_place_ready  (place_ready),
      .m_place_payload(place),
      .release_o      (freed[0]),
      .events_o       (reader_events)
  );
  assign {m_rx_tuser, m_rx_tlast, m_rx_tkeep, m_rx_tdata} = from_nic;
  assign {m_head_tuser, m_head_tlast, m_head_tkeep, m_head_tdata} = from_nic;

  // ---- transmit

  logic [1:0] post_valid, post_ready;  // 0: from the packed buffer, 1: in place
  post_t [1:0] post;
  bypass_axis_t to_nic, verdict;
  assign to_nic  = '{user: s_tx_tuser, last: s_tx_tlast, keep: s_tx_tkeep, data: s_tx_tdata};
  assign verdict = '{user: s_verdict_tuser, last: s_verdict_tlast, keep: s_verdict_tkeep, data: s_verdict_tdata};

  logic pack_write, pack_free, may_read_pack;
  logic [PackBits-1:0] pack_write_line, pack_read_line;
  data_t pack_write_data;
  bypass_tx_input #(
      .Config(Config)
  ) i_tx_input (
      .*,
      .max_frame_i (settings.max_frame),
      .run_i       (run),
      .s_valid     (s_tx_tvalid),
      .s_ready     (s_tx_tready),
      .s_payload   (to_nic),
      .write_o     (pack_write),
      .write_line_o(pack_write_line),
      .write_data_o(pack_write_data),
      .free_i      (pack_free),
      .m_valid     (post_valid[0]),
      .m_ready     (post_ready[0]),
      .m_payload   (post[0]),
      .events_o    (input_events),
      .reads_i     (pack_read_line),
      .may_read_o  (may_read_pack)
  );
  simple_dual_port_ram #(
      .Width(512),
      .Depth(1 << PackBits)
  ) i_pack (
      .*,
      .write_i(pack_write),
      .write_address_i(pack_write_line),
      .write_data_i(pack_write_data),
      .read_i(window_read.valid && window_read.region == Pack),
      .read_address_i(window_read.offset[LineBits+:PackBits]),
      .read_data_o(packed_data)
  );

  bypass_verdicts #(
      .Config(Config)
  ) i_verdicts (
      .*,
      .run_i            (run),
      .s_place_valid    (place_valid),
      .s_place_ready    (place_ready),
      .s_place_payload  (place),
      .s_verdict_valid  (s_verdict_tvalid),
      .s_verdict_ready  (s_verdict_tready),
      .s_verdict_payload(verdict),
      .m_line_valid     (line_valid),
      .m_line_ready     (line_ready),
      .m_line           (replaced_line),
      .m_line_data      (replaced_data),
      .m_valid          (post_valid[1]),
      .m_ready          (post_ready[1]),
      .m_payload        (post[1]),
      .events_o         (verdict_events)
  );

  logic posted_valid, posted_ready;
  post_t posted;
  bypass_post #(
      .Config(Config)
  ) i_post (
      .*,
      .s_valid  (post_valid),
      .s_ready  (post_ready),
      .s_payload(post),
      .room_i   (room),
      .tail_i   (tx_tail),
      .post_o   (post_to),
      .coming_o (coming),
      .m_valid  (posted_valid),
      .m_ready  (posted_ready),
      .m_payload(posted),
      .read_i   (window_read),
      .entries_o(entries)
  );

  bypass_watch #(
      .Config(Config)
  ) i_watch (
      .*,
      .written_back_i (settings.written_back),
      .pairs_i        (pairs),
      .s_valid        (posted_valid),
      .s_ready        (posted_ready),
      .s_payload      (posted),
      .read_i         (window_read),
      .read_slot_o    (news.reads),
      .read_line_o    (pack_read_line),
      .may_read_pack_i(may_read_pack),
      .done_o         (news.done),
      .release_o      (freed[1]),
      .free_o         (pack_free),
      .events_o       (watch_events)
  );

  // ---- tails

  logic [1:0] tail_write;
  logic [QueueBits:0] tail_ring;
  logic [31:0] tail_data;
  // verilator lint_off UNUSEDSIGNAL  // nothing is read there
  tail_req_t tail_req;
  // verilator lint_on UNUSEDSIGNAL
  tail_resp_t tail_resp;
  `AXI_LITE_WRITER_TO_FLAT(m_axil, tail_req, tail_resp)
  bypass_tails #(
      .Queues(Queues)
  ) i_tails (
      .*,
      .write_i     (tail_write),
      .write_ring_i(tail_ring),
      .write_data_i(tail_data),
      .s_valid     (bell_valid),
      .s_ready     (bell_ready),
      .s_payload   (bell_tail),
      .m_axil_req  (tail_req),
      .m_axil_resp (tail_resp),
      .events_o    (tail_events)
  );

  // ---- registers

  // Whether an arriving frame is accepted is known late in the cycle. So these counts pass a register before the sum.
  events_t others, others_q, input_q, verdict_q, events;
  always_comb begin
    others = port_events | slots_events | reader_events | watch_events | tail_events;
    others.tx_posted = posted_valid && !posted.skip;
    others.tx_bytes = posted_valid && !posted.skip ? posted.bytes : '0;
    others.fetch = news.fetch.valid;
    others.tx_written_back = news.tx_written.valid;
    for (int q = 0; q < int'(Queues); q++) begin  // of one queue only there is something
      others.rx_in |= pairs[q].rx.ended;
      others.rx_unexpected |= pairs[q].rx.unexpected;
      others.tx_unexpected |= pairs[q].tx.unexpected;
    end
    events = others_q | input_q | verdict_q;
    events.tx_in = input_q.tx_in + verdict_q.tx_in;
  end
  always_ff @(posedge clk_i) begin
    others_q  <= others;
    input_q   <= input_events;
    verdict_q <= verdict_events;
  end

  bypass_axil_req_t  axil_req;
  bypass_axil_resp_t axil_resp;
  `AXI_LITE_FROM_FLAT(s_axil, axil_req, axil_resp)
  bypass_registers #(
      .Config(Config)
  ) i_registers (
      .*,
      .s_axil_req  (axil_req),
      .s_axil_resp (axil_resp),
      .settings_o  (settings),
      .time_o      (cycle),
      .tail_write_o(tail_write),
      .tail_ring_o (tail_ring),
      .tail_data_o (tail_data),
      .pairs_i     (pairs),
      .events_i    (events)
  );

  `ASSERT(frames_are_whole, !(m_rx_tvalid && m_head_tvalid), "a beat goes two ways")

endmodule
`default_nettype wire
