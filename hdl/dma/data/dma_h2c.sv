// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Executes turns from host memory to the card. The data go to AXI, or as packets to a stream.
///
/// Behaviour: reads of at most MRRS bytes go ahead while tags and lines are free. Completions come in any
/// order; data leave in the order of turns. After an error, a turn's rest is discarded. Answers come in order.
/// - Stream: a turn has a multiple of 64 bytes, except a packet's last one. A turn's beats are contiguous; packets of
///   different channels may alternate by turns. A stream turn is accepted when the queue before m_axis has room, so a
///   stalled stream stops no accepted turn. A waiting one blocks those behind: offer it only while stream_room_o.
/// - stop_i: turns are accepted and end with ErrorReset. No completion is awaited,
///   and no burst starts. It stays until idle_o, so that AXI transactions can end.
/// Combinational paths: none from valid and payload of turns, reads, completions and AXI.
/// Latency: turn to its read 2 cycles; a completion's last beat to the burst's address 5, to its first data 6.
/// Reset: discards everything.
/// Requirements: no valid is high during reset. dma_requester discards completions of dead requests.
module dma_h2c
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Reads in flight; a power of two, 8 to 128.
    parameter int unsigned Tags = 128,
    /// Lines of 64 bytes for reads in flight; a power of two, at least 256.
    parameter int unsigned Lines = 512,
    /// Whether there is a stream. It costs a queue of 512 beats, in UltraRAM.
    parameter bit Stream = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    input wire [2:0] mrrs_i,
    /// See dma_h2c_cutter.
    input wire [7:0] reserve_i,

    `STREAM_RECEIVER(s_turn, turn_t)
    `STREAM_SENDER(m_done, done_t)

    `STREAM_SENDER(m_read, read_t)
    `STREAM_RECEIVER(s_completion, completion_t)

    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,

    `STREAM_SENDER(m_axis, dma_axis_t)

    output logic stream_room_o,
    output logic idle_o
);

  localparam int unsigned TagBits = $clog2(Tags);

  // ---- turns: one copy goes to the cutter, another waits for its pieces
  logic admitted, cut_ready, turn_room, turn_valid, turn_ready, room_q, queued_valid, queued_ready;
  turn_t turn, queued;
  assign admitted     = s_turn_valid && (!s_turn_payload.stream || room_q);
  assign s_turn_ready = cut_ready && turn_room && (!s_turn_payload.stream || room_q);
  stream_fifo #(
      .Width($bits(turn_t)),
      .Depth(Tags),
      .Block(1'b1)
  ) i_turns (
      .*,
      `STREAM_PORTS(s, admitted && cut_ready, turn_room, s_turn_payload),
      `STREAM_PORTS(m, queued_valid, queued_ready, queued)
  );
  // Turns and pieces come at most every other cycle, as the cutter makes them. So this register costs no throughput.
  stream_register #(
      .Width($bits(turn_t)),
      .Half (1'b1)
  ) i_turn (
      .*,
      `STREAM_PORTS(s, queued_valid, queued_ready, queued),
      `STREAM_PORTS(m, turn_valid, turn_ready, turn)
  );

  // ---- pieces
  logic piece_valid, piece_ready, tag_free, keep, free;
  piece_t piece;
  logic [TagBits-1:0] tag;
  assign piece_ready = tag_free && !keep;
  dma_h2c_cutter #(
      .Lines(Lines)
  ) i_cutter (
      .*,
      `STREAM_PORTS(s, admitted && turn_room, cut_ready, s_turn_payload),
      .piece_tag_i(tag_t'(tag)),
      .free_i(free)
  );

  // A complete piece waits in a register, because its path comes from memories.
  stored_t stored;
  logic over_valid, over_ready, ended_valid, ended_ready, found, unused_unexpected;
  logic [TagBits-1:0] oldest;
  ended_t over, ended;
  logic [13:0] unused_looked;
  logic [TagBits:0] count;
  logic forced, forced_q;  // stopped: what is in flight is not awaited
  assign forced = forced_q && !stored.valid;
  always_ff @(posedge clk_i) forced_q <= stop_i && count != '0 && !over_valid && !rst_i;
  tag_table #(
      .Tags(Tags),
      .Width(14),
      .ResultWidth(3),
      .Lookup(1'b0)
  ) i_tags (
      .*,
      `STREAM_PORTS(s, piece_valid && !keep, tag_free, {piece.ends, piece.bytes}),
      .s_tag(tag),
      .complete_i(stored.valid || forced),
      .complete_tag_i(forced ? oldest : stored.tag[TagBits-1:0]),
      .complete_result_i(forced ? ErrorReset : stored.error),
      .unexpected_o(unused_unexpected),
      .lookup_tag_i(s_completion_payload.tag[TagBits-1:0]),
      .lookup_found_o(found),
      .lookup_payload_o(unused_looked),
      .m_valid(over_valid),
      .m_ready(over_ready),
      .m_tag(oldest),
      .m_payload({over.ends, over.bytes}),
      .m_result({over.error}),
      .count_o(count)
  );
  stream_register #(
      .Width($bits(ended_t)),
      .Half (1'b1)
  ) i_ended (
      .*,
      `STREAM_PORTS(s, over_valid, over_ready, over),
      `STREAM_PORTS(m, ended_valid, ended_ready, ended)
  );

  // ---- their bytes
  bank_write_t write;
  dma_h2c_store #(
      .Lines(Lines),
      .Tags (Tags)
  ) i_store (
      .*,
      .piece_put_i(piece_valid && piece_ready),
      .piece_tag_i(tag_t'(tag)),
      .keep_o     (keep),
      .found_i    (found),
      .stored_o   (stored),
      .write_o    (write)
  );

  bank_read_t read;
  bank_data_t read_data;
  dma_banks #(
      .Lines(Lines)
  ) i_ring (
      .*,
      .write_i(write),
      .read_i (read),
      .read_o (read_data)
  );

  // ---- out
  fate_t fate;
  logic run_valid, run_ready;
  run_t run;
  dma_h2c_collect i_collect (
      .*,
      .fate_i(fate)
  );

  logic beat_valid, beat_ready;
  dma_axis_t beat;
  dma_h2c_drain #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .axis_t(dma_axis_t),
      .Lines(Lines)
  ) i_drain (
      .*,
      .read_o(read),
      .read_i(read_data),
      .free_o(free),
      .fate_o(fate),
      `STREAM_PORTS(m_axis, beat_valid, beat_ready, beat)
  );

  // Turns that were accepted and are not answered.
  logic [9:0] turns_q;
  assign idle_o = turns_q == '0;
  always_ff @(posedge clk_i) begin
    turns_q <= turns_q + 10'(s_turn_valid && s_turn_ready) - 10'(m_done_valid && m_done_ready);
    if (rst_i) turns_q <= '0;
  end

  // ---- the stream
  if (Stream) begin : gen_stream
    localparam int unsigned Beats = 512;
    localparam int unsigned CountBits = $clog2(Beats + 1);
    localparam int unsigned MostLines = TurnBytes / 64;
    logic [CountBits-1:0] free_q, wanted_q;
    logic taken;
    // A turn is counted one cycle after it is accepted, so that cycle accepts none. The
    // sender sees the limit three turns early, because two may already be on their way.
    assign taken = s_turn_valid && s_turn_ready && s_turn_payload.stream;
    always_ff @(posedge clk_i) begin
      wanted_q      <= taken ? CountBits'((s_turn_payload.bytes + 13'd63) >> 6) : '0;
      free_q        <= free_q - wanted_q + CountBits'(m_axis_valid && m_axis_ready);
      room_q        <= free_q - wanted_q >= CountBits'(MostLines) && !taken;
      stream_room_o <= free_q - wanted_q >= CountBits'(3 * MostLines);
      if (rst_i) begin
        wanted_q      <= '0;
        free_q        <= CountBits'(Beats);
        room_q        <= 1'b0;
        stream_room_o <= 1'b0;
      end
    end
    stream_fifo #(
        .Width($bits(dma_axis_t)),
        .Depth(Beats),
        .Ultra(1'b1)
    ) i_queue (
        .*,
        `STREAM_PORTS(s, beat_valid, beat_ready, beat),
        `STREAM_PORTS(m, m_axis_valid, m_axis_ready, m_axis_payload)
    );
    `ASSERT(queue_has_room, !beat_valid || beat_ready, "a stream turn was accepted without room")
  end else begin : gen_no_stream
    logic unused;
    assign unused         = ^{beat_valid, beat, m_axis_ready};
    assign beat_ready     = 1'b1;
    assign room_q         = 1'b0;
    assign stream_room_o  = 1'b0;
    assign m_axis_valid   = 1'b0;
    assign m_axis_payload = '0;
  end

  `ASSERT(turn_fits, !s_turn_valid || (s_turn_payload.bytes != '0 && 32'(s_turn_payload.bytes) <= TurnBytes),
          "a turn of no bytes, or of too many")
  `ASSERT(packets_of_lines,
          !s_turn_valid || !s_turn_payload.stream || s_turn_payload.last || s_turn_payload.bytes[5:0] == '0,
          "a packet has a gap")

endmodule
`default_nettype wire
