// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Turns from the host's memory to the card: to AXI, or as packets to a stream.
///
/// Behaviour: reads of at most MRRS bytes go ahead as far as tags and the ring of lines reach; completions come in any order; what is complete, in the
/// order of turns, goes out. A turn's error ends its writing: the rest of it is read and thrown away. Turns are answered in order.
/// - Stream: a turn that is not the last of its packet has a multiple of 64 bytes. The beats of a turn follow each other; packets of several
///   channels mix by turns. A stream turn is accepted when the queue before m_axis has room for it, so a stream that stands still stops no turn
///   that was accepted. It stops those behind a stream turn that waits: whoever makes turns offers one only while stream_room_o is high.
/// - stop_i: turns are accepted and answered with ErrorReset, nothing is awaited and no burst begins. It stays until idle_o, so that AXI's
///   transactions end.
/// Cuts: valid and payload of turns, reads, completions, AXI.
/// Latency: from a turn to its read 2 cycles; from a completion's last beat to the burst's address 4, to its first data 5.
/// Reset: forgets everything.
/// Requirements: in reset no valid is high. dma_requester keeps completions of dead requests away.
module dma_h2c
  import dma_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Reads in flight; a power of two, 8 to 128.
    parameter int unsigned Tags = 128,
    /// Lines of 64 bytes that reads in flight may fill; a power of two, at least 256.
    parameter int unsigned Lines = 512,
    /// There is a stream: costs a queue of 512 beats.
    parameter bit Stream = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    input wire [2:0] mrrs_i,

    input  wire        s_turn_valid,
    output logic       s_turn_ready,
    input  wire turn_t s_turn_payload,
    output logic       m_done_valid,
    input  wire        m_done_ready,
    output done_t      m_done_payload,

    output logic             m_read_valid,
    input  wire              m_read_ready,
    output read_t            m_read_payload,
    input  wire              s_completion_valid,
    output logic             s_completion_ready,
    input  wire completion_t s_completion_payload,

    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,

    output logic      m_axis_valid,
    input  wire       m_axis_ready,
    output dma_axis_t m_axis_payload,

    output logic stream_room_o,
    output logic idle_o
);

  localparam int unsigned TagBits = $clog2(Tags);
  localparam int unsigned LineBits = $clog2(Lines);
  typedef logic [TagBits-1:0] tag_t;

  // What the ring of tags keeps of a piece.
  typedef struct packed {
    logic        ends;
    logic [12:0] bytes;
  } piece_t;

  // ---- turns: to the cutter, and to wait for their pieces
  logic admitted, cut_ready, turn_room, turn_valid, turn_ready;
  turn_t turn;
  assign admitted     = s_turn_valid && (!s_turn_payload.stream || stream_room_o);
  assign s_turn_ready = cut_ready && turn_room && (!s_turn_payload.stream || stream_room_o);
  stream_fifo #(
      .Width($bits(turn_t)),
      .Depth(Tags),
      .Block(1'b1)
  ) i_turns (
      .*,
      .s_valid  (admitted && cut_ready),
      .s_ready  (turn_room),
      .s_payload(s_turn_payload),
      .m_valid  (turn_valid),
      .m_ready  (turn_ready),
      .m_payload(turn)
  );

  // ---- pieces
  logic cut_valid, piece_room, store_room, cut_ends, free;
  tag_t tag;
  logic [12:0] cut_bytes;
  logic [LineBits+5:0] place;
  dma_h2c_cutter #(
      .Lines  (Lines),
      .TagBits(TagBits)
  ) i_cutter (
      .*,
      .s_valid(admitted && turn_room),
      .s_ready(cut_ready),
      .s_payload(s_turn_payload),
      .piece_valid_o(cut_valid),
      .piece_ready_i(piece_room && store_room),
      .piece_tag_i(tag),
      .piece_bytes_o(cut_bytes),
      .piece_end_o(cut_ends),
      .piece_place_o(place),
      .free_i(free)
  );

  logic stored, piece_valid, piece_ready, found, unused_unexpected;
  tag_t stored_tag, oldest;
  error_e stored_error, piece_error;
  logic [2:0] piece_result;
  piece_t piece, unused_looked;
  logic [TagBits:0] count;
  logic forced;  // stopped: what is in flight is not awaited
  assign forced = stop_i && !stored && count != '0 && !piece_valid;
  tag_table #(
      .Tags(Tags),
      .Width($bits(piece_t)),
      .ResultWidth(3),
      .Lookup(1'b0)
  ) i_tags (
      .*,
      .s_valid(cut_valid && store_room),
      .s_ready(piece_room),
      .s_payload({cut_ends, cut_bytes}),
      .s_tag(tag),
      .complete_i(stored || forced),
      .complete_tag_i(forced ? oldest : stored_tag),
      .complete_result_i(forced ? ErrorReset : stored_error),
      .unexpected_o(unused_unexpected),
      .lookup_tag_i(s_completion_payload.tag[TagBits-1:0]),
      .lookup_found_o(found),
      .lookup_payload_o(unused_looked),
      .m_valid(piece_valid),
      .m_ready(piece_ready),
      .m_tag(oldest),
      .m_payload(piece),
      .m_result(piece_result),
      .count_o(count)
  );
  assign piece_error = error_e'(piece_result);

  // ---- their bytes
  logic [15:0][3:0] write;
  logic [15:0][LineBits-1:0] write_line;
  logic [15:0][31:0] write_data;
  dma_h2c_store #(
      .Lines(Lines),
      .Tags (Tags)
  ) i_store (
      .*,
      .piece_valid_i(cut_valid && piece_room),
      .piece_ready_o(store_room),
      .piece_tag_i(tag),
      .piece_bytes_i(cut_bytes),
      .piece_place_i(place),
      .s_valid(s_completion_valid),
      .s_ready(s_completion_ready),
      .s_payload(s_completion_payload),
      .found_i(found),
      .complete_o(stored),
      .complete_tag_o(stored_tag),
      .complete_error_o(stored_error),
      .write_o(write),
      .write_line_o(write_line),
      .write_data_o(write_data)
  );

  logic read;
  logic [LineBits-1:0] read_line;
  logic [15:0][31:0] read_data;
  dma_banks #(
      .Lines(Lines)
  ) i_ring (
      .*,
      .write_i(write),
      .write_line_i(write_line),
      .write_data_i(write_data),
      .read_i(read),
      .read_line_i({16{read_line}}),
      .read_data_o(read_data)
  );

  // ---- out
  logic failed, answered, run_valid, run_ready, run_void, run_stream, run_end, run_last;
  logic [63:0] run_addr;
  logic [12:0] run_bytes, run_moved;
  logic [1:0] run_channel;
  error_e run_error;
  dma_h2c_collect i_collect (
      .*,
      .turn_valid_i(turn_valid),
      .turn_ready_o(turn_ready),
      .turn_i(turn),
      .piece_valid_i(piece_valid),
      .piece_ready_o(piece_ready),
      .piece_bytes_i(piece.bytes),
      .piece_end_i(piece.ends),
      .piece_error_i(piece_error),
      .failed_i(failed),
      .answered_i(answered),
      .m_valid(run_valid),
      .m_ready(run_ready),
      .m_void(run_void),
      .m_addr(run_addr),
      .m_bytes(run_bytes),
      .m_stream(run_stream),
      .m_end(run_end),
      .m_last(run_last),
      .m_channel(run_channel),
      .m_error(run_error),
      .m_moved(run_moved)
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
      .s_valid(run_valid),
      .s_ready(run_ready),
      .s_void(run_void),
      .s_addr(run_addr),
      .s_bytes(run_bytes),
      .s_stream(run_stream),
      .s_end(run_end),
      .s_last(run_last),
      .s_channel(run_channel),
      .s_error(run_error),
      .s_moved(run_moved),
      .read_o(read),
      .read_line_o(read_line),
      .read_data_i(read_data),
      .free_o(free),
      .failed_o(failed),
      .answered_o(answered),
      .m_axis_valid(beat_valid),
      .m_axis_ready(beat_ready),
      .m_axis_payload(beat)
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
    logic [CountBits-1:0] room_q, wanted;
    assign wanted        = CountBits'((s_turn_payload.bytes + 13'd63) >> 6);
    assign stream_room_o = room_q >= CountBits'(TurnBytes / 64);
    always_ff @(posedge clk_i) begin
      room_q <= room_q - (s_turn_valid && s_turn_ready && s_turn_payload.stream ? wanted : '0)
                + CountBits'(m_axis_valid && m_axis_ready);
      if (rst_i) room_q <= CountBits'(Beats);
    end
    stream_fifo #(
        .Width($bits(dma_axis_t)),
        .Depth(Beats)
    ) i_queue (
        .*,
        .s_valid  (beat_valid),
        .s_ready  (beat_ready),
        .s_payload(beat),
        .m_valid  (m_axis_valid),
        .m_ready  (m_axis_ready),
        .m_payload(m_axis_payload)
    );
    `ASSERT(queue_has_room, !beat_valid || beat_ready, "a stream turn was accepted without room")
  end else begin : gen_no_stream
    logic unused;
    assign unused         = ^{beat_valid, beat, m_axis_ready};
    assign beat_ready     = 1'b1;
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
