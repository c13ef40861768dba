// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Reads received frames from their slots: whole frames of the stream, and the first beat of frames in place.
///
/// Behaviour: frames leave in the order of arrival, a line a cycle. A frame's slots return (release_o) when its last
/// line is read, or when it is dropped. Frames in place keep their slots, and go to m_place_* in order, good or bad.
/// Latency: from s_valid to the first beat 2 cycles, if the slots' memory is free.
/// Combinational paths: none from m_rx_ready; s_ready from ready_i (memory of the slots) and m_place_ready.
/// Reset: discards frames in progress.
/// Requirements: one cycle after read_o with ready_i, data_i is the requested line.
module bypass_rx_reader
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Bits = Config.queue_bits + Config.rx_bits + SlotBits - LineBits
) (
    input wire clk_i,
    input wire rst_i,

    input wire [2**MaxQueueBits-1:0] in_place_i,
    input wire [23:0] time_i,

    input  wire         s_valid,
    output logic        s_ready,
    input  wire frame_t s_payload,

    output logic                  read_o,
    output logic       [Bits-1:0] read_line_o,
    input  wire                   ready_i,
    input  wire data_t            data_i,

    output logic         m_rx_valid,
    input  wire          m_rx_ready,
    output logic         m_head_valid,
    input  wire          m_head_ready,
    output bypass_axis_t m_payload,

    output logic   m_place_valid,
    input  wire    m_place_ready,
    output frame_t m_place_payload,

    output release_t release_o,
    output events_t  events_o
);

  // A beat without its data; final_byte is the last valid byte.
  typedef struct packed {
    logic        valid;
    logic        in_place;
    logic        last;
    logic [5:0]  final_byte;
    logic [23:0] stamp;
    queue_t      pair;
    bytes_t      bytes;
  } beat_t;

  localparam int unsigned Beats = 32;
  localparam int unsigned SlotLineBits = SlotBits - LineBits;

  frame_t frame;
  logic in_place, good, room, last, reads, fetch, may_end;
  logic [7:0] line_q, lines;
  always_comb begin
    frame      = s_payload;
    frame.pair = existing(s_payload.pair, Config);
  end
  assign in_place = in_place_i[frame.pair];
  assign good     = frame.verdict == Good;
  assign lines    = lines_of(frame.bytes);
  assign last     = in_place || line_q + 1'b1 == lines;
  // The last line, and a dropped frame, need room in the queue of places.
  assign may_end  = !in_place || m_place_ready;
  assign reads    = s_valid && good && room && (!last || may_end);
  assign fetch    = reads && ready_i;
  assign s_ready  = good ? fetch && last : may_end;
  assign read_o   = reads;

  // Slots are contiguous, and wrap around within their queue.
  localparam int unsigned RingBits = Config.rx_bits + SlotLineBits;
  typedef logic [RingBits-1:0] ring_line_t;
  ring_line_t ring_line;
  assign ring_line   = {frame.index[Config.rx_bits-1:0], SlotLineBits'(0)} + ring_line_t'(line_q);
  assign read_line_o = Bits'((32'(frame.pair) << RingBits) | 32'(ring_line));

  always_ff @(posedge clk_i) begin
    if (fetch) line_q <= last ? '0 : line_q + 1'b1;
    if (rst_i) line_q <= '0;
  end

  logic done;
  assign done            = s_valid && s_ready;
  assign release_o       = '{valid: done && !in_place, pair: frame.pair, slots: frame.slots};
  assign m_place_valid   = s_valid && in_place && (good ? room && ready_i : 1'b1);
  assign m_place_payload = frame;
  always_comb begin
    events_o            = '0;
    events_o.rx_frame   = done && good;
    events_o.rx_bytes   = done && good ? frame.bytes : '0;
    events_o.rx_error   = done && frame.verdict == BadError;
    events_o.rx_size    = done && frame.verdict == BadSize;
    events_o.rx_stopped = done && frame.verdict == BadStopped;
  end

  // ---- its beats

  beat_t beat_q, out;
  data_t data;
  logic out_valid, out_ready, fits;
  always_ff @(posedge clk_i) begin
    beat_q <= '{
        valid: fetch,
        in_place: in_place,
        last: last,
        final_byte: in_place ? (lines == 8'd1 ? frame.bytes[5:0] - 1'b1 : '1) : last ? frame.bytes[5:0] - 1'b1 : '1,
        stamp: line_q == '0 ? time_i : beat_q.stamp,
        pair: frame.pair,
        bytes: frame.bytes
    };
    if (rst_i) beat_q.valid <= 1'b0;
  end

  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(Beats)
  ) i_room (
      .*,
      .take_i(fetch),
      .give_i(out_valid && out_ready),
      .available_o(room),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  stream_fifo #(
      .Width($bits(beat_t) + $bits(data_t)),
      .Depth(Beats)
  ) i_beats (
      .*,
      .s_valid  (beat_q.valid),
      .s_ready  (fits),
      .s_payload({beat_q, data_i}),
      .m_valid  (out_valid),
      .m_ready  (out_ready),
      .m_payload({out, data})
  );

  bypass_axis_t payload;
  always_comb begin
    payload = '{user: {out.stamp, 4'd0, out.pair, 2'd0, out.bytes}, last: out.last, keep: '0, data: data};
    for (int i = 0; i < 64; i++) payload.keep[i] = 6'(i) <= out.final_byte;
  end
  logic unused_valid;
  assign unused_valid = out.valid;

  stream_demux #(
      .Outputs(2),
      .Width  ($bits(bypass_axis_t))
  ) i_demux (
      .*,
      .select_i (out.in_place),
      .s_valid  (out_valid),
      .s_ready  (out_ready),
      .s_payload(payload),
      .m_valid  ({m_head_valid, m_rx_valid}),
      .m_ready  ({m_head_ready, m_rx_ready})
  );

  `ASSERT(beat_fits, !beat_q.valid || fits, "a line was read that has no room")

endmodule
`default_nettype wire
