// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Watches the NIC's reads of frames: a frame is done when its last byte was read, without any write-back.
///
/// Behaviour: frames (s_*) are checked in the order of posting, a line a cycle. Reads may come in any
/// order, because PCIe lets them pass each other. A line counts as read when a beat reached the frame's
/// last byte in it; within a line, reads go upwards. A frame is not done before the NIC was told of it.
/// With written_back_i, a written-back descriptor (tx_ring_t.reported) completes a frame, and reads have
/// no effect. Skipped frames, and those of a stopped queue, are not waited for. A line's mark is a pair
/// of bits: a read makes them differ, and the check makes them equal, so that no bit has two writers.
/// Latency: a frame of one line that is next in order is done 5 cycles after the read.
/// Reset: discards the frames. Marks are equal if no frame waits. If frames waited, or a read came while none
/// did, all 2^Bits lines are swept, one a cycle, to forget the reads. During the sweep no frame is accepted.
/// Requirements: a frame in place begins at a slot, any other in the first copy of the packed buffer.
/// In the same cycle, each pair reports for the slot read_slot_o, and may_read_pack_i for the line
/// read_line_o, whether it belongs to a frame to be transmitted. Reads of other lines have no effect.
module bypass_watch
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Queues = 1 << Config.queue_bits
) (
    input wire clk_i,
    input wire rst_i,

    input wire                           written_back_i,
    // verilator lint_off UNUSEDSIGNAL  // what of it is for the watch
    input wire pair_state_t [Queues-1:0] pairs_i,
    // verilator lint_on UNUSEDSIGNAL

    input  wire        s_valid,
    output logic       s_ready,
    input  wire post_t s_payload,

    // verilator lint_off UNUSEDSIGNAL  // where in its beat
    input  wire window_read_t                        read_i,
    // verilator lint_on UNUSEDSIGNAL
    output index_t                                   read_slot_o,
    output logic              [Config.pack_bits-1:0] read_line_o,
    input  wire                                      may_read_pack_i,

    output tx_done_t done_o,
    output release_t release_o,
    /// A line of the packed buffer becomes free.
    output logic     free_o,
    output events_t  events_o
);

  /// Frames in work: as many as the packed buffer has lines, or a pair has slots.
  localparam int unsigned Frames = 1 << (Config.pack_bits > Config.rx_bits ? Config.pack_bits : Config.rx_bits);
  localparam int unsigned SlotLines = Config.queue_bits + Config.rx_bits + SlotBits - LineBits;
  localparam int unsigned Bits = 1 + (SlotLines > Config.pack_bits ? SlotLines : Config.pack_bits);
  typedef logic [Bits-1:0] address_t;

  function automatic address_t mark_of(offset_t offset);
    if (offset[WindowBits-1]) return {1'b1, (Bits - 1)'(slot_line(offset, Config))};
    return {1'b0, (Bits - 1)'(pack_line(offset, Config))};
  endfunction

  // ---- frames in work, cut into lines

  // Fields that the lines of a frame share.
  typedef struct packed {
    queue_t pair;
    logic   skip;
    logic   in_place;
    count_t slots;
  } shared_t;

  // A waiting frame has at most 36 bits, half a block RAM's width. So only a part of its first line's number
  // is kept: a slot's lower bits are 0, and the first copy of the packed buffer has constant upper bits.
  localparam int unsigned PairBits = Config.queue_bits > 0 ? Config.queue_bits : 1;
  localparam int unsigned LineWidth = WindowBits - LineBits;
  localparam int unsigned EndBits = SlotBits - LineBits;
  localparam int unsigned MiddleBits = LineWidth - 1 - 2 * EndBits;
  typedef struct packed {
    logic [PairBits-1:0]   pair;
    logic                  skip;
    logic                  in_place;
    count_t                slots;
    logic [EndBits-1:0]    ends;
    logic [MiddleBits-1:0] middle;
    bytes_t                bytes;
  } waiting_t;
  function automatic logic [LineWidth-1:0] line_of(logic in_place, logic [EndBits-1:0] ends,
                                                   logic [MiddleBits-1:0] middle);
    if (in_place) return {1'b1, ends, middle, EndBits'(0)};
    return LineWidth'(PackOffset >> LineBits) | LineWidth'({middle, ends});
  endfunction
  waiting_t put, post;
  assign put = '{
          pair: PairBits'(s_payload.pair),
          skip: s_payload.skip,
          in_place: s_payload.in_place,
          slots: s_payload.slots,
          ends: s_payload.in_place ? s_payload.line[WindowBits-2-:EndBits] : s_payload.line[LineBits+:EndBits],
          middle: s_payload.line[SlotBits+:MiddleBits],
          bytes: s_payload.bytes
      };

  logic post_valid, post_ready, room, sweeps_q;
  assign s_ready = room && !sweeps_q;
  stream_fifo #(
      .Width($bits(waiting_t)),
      .Depth(Frames)
  ) i_frames (
      .*,
      .s_valid  (s_valid && !sweeps_q),
      .s_ready  (room),
      .s_payload(put),
      .m_valid  (post_valid),
      .m_ready  (post_ready),
      .m_payload(post)
  );

  logic line_valid, line_ready, line_last, unused_first;
  offset_t line;
  logic [LineBits:0] line_bytes;
  logic [LineBits-1:0] unused_reach;
  shared_t shared;
  range_split #(
      .AddressWidth(WindowBits),
      .LengthWidth($bits(bytes_t)),
      .MaxLimit(LineBits),
      .UserWidth($bits(shared_t))
  ) i_lines (
      .*,
      .s_valid  (post_valid),
      .s_ready  (post_ready),
      .s_address({line_of(post.in_place, post.ends, post.middle), LineBits'(0)}),
      .s_length (post.bytes),
      .s_limit  (3'(LineBits)),
      .s_user   ({queue_t'(post.pair), post.skip, post.in_place, post.slots}),
      .m_valid  (line_valid),
      .m_ready  (line_ready),
      .m_address(line),
      .m_length (line_bytes),
      .m_reach  (unused_reach),
      .m_first  (unused_first),
      .m_last   (line_last),
      .m_user   (shared)
  );

  // ---- marks: a read stores its bit and its last byte; a check stores its bit

  typedef struct packed {
    logic       bit_;
    logic [5:0] last;
  } mark_t;
  mark_t mark;
  logic look_bit, seen_bit;

  logic read1_q, read2_q, may_read;
  queue_t read1_queue_q;
  address_t read1_line_q, read2_line_q;
  logic [5:0] last1_q, last2_q;
  assign read_line_o = read1_line_q[Config.pack_bits-1:0];
  always_comb begin
    may_read = pairs_i[0].rx.may_read;
    for (int i = 1; i < int'(Queues); i++) if (read1_queue_q == queue_t'(i)) may_read = pairs_i[i].rx.may_read;
    if (!read1_line_q[Bits-1]) may_read = may_read_pack_i;
  end
  always_ff @(posedge clk_i) begin
    read1_q       <= read_i.valid && (read_i.region == Pack || read_i.region == Slots);
    read1_line_q  <= mark_of(read_i.offset);
    read1_queue_q <= slot_queue(read_i.offset, Config);
    read_slot_o   <= slot_index(read_i.offset, Config);
    last1_q       <= read_i.last_byte;
    read2_q       <= read1_q && may_read && !written_back_i && !sweeps_q;
    read2_line_q  <= read1_line_q;
    last2_q       <= last1_q;
    if (rst_i) begin
      read1_q <= 1'b0;
      read2_q <= 1'b0;
    end
  end

  // ---- a line is checked until it was read; the sweep after a reset checks all lines, read or not

  logic here_q, last_q, passes, agrees_q, waits_q, odd_q, run, reported, told, looks;
  address_t at_q, at;
  logic [5:0] needs_q;
  shared_t shared_q;
  assign line_ready = !sweeps_q && (!here_q || passes);
  assign at         = sweeps_q ? at_q + 1'b1 : line_ready ? mark_of(line) : at_q;
  assign looks      = line_ready ? line_valid : 1'b1;
  always_comb begin
    run = 1'b0;
    reported = 1'b0;
    told = 1'b0;
    for (int i = 0; i < int'(Queues); i++) begin
      if (shared_q.pair == queue_t'(i)) begin
        run = pairs_i[i].running;
        reported = pairs_i[i].tx.reported;
        told = pairs_i[i].tx.told;
      end
    end
    passes = here_q && (shared_q.skip || !run
        || (told && (written_back_i ? reported : mark.bit_ != look_bit && mark.last >= needs_q)));
  end

  always_ff @(posedge clk_i) begin
    at_q     <= at;
    agrees_q <= sweeps_q;  // the mark of line at_q is here; line 0 comes last
    if (at_q == '1) sweeps_q <= 1'b0;
    // These two keep the state from before a reset.
    if (!rst_i) begin
      waits_q <= sweeps_q || here_q || line_valid || post_valid;
      odd_q   <= (odd_q && !agrees_q) || (read2_q && !waits_q);
    end
    if (line_ready) begin
      here_q   <= line_valid;
      last_q   <= line_last;
      needs_q  <= 6'(line_bytes - 1'b1);
      shared_q <= shared;
    end
    if (rst_i) begin
      here_q   <= 1'b0;
      at_q     <= '0;
      agrees_q <= 1'b0;
      sweeps_q <= waits_q || odd_q;
    end
  end

  // Written by reads. The check's bit (seen_bit) is available in time.
  simple_dual_port_ram #(
      .Width($bits(mark_t)),
      .Depth(1 << Bits)
  ) i_read (
      .*,
      .write_i(read2_q),
      .write_address_i(read2_line_q),
      .write_data_i({!seen_bit, last2_q}),
      .read_i(looks),
      .read_address_i(at),
      .read_data_o(mark)
  );
  simple_dual_port_ram #(
      .Width(1),
      .Depth(1 << Bits)
  ) i_look_for_reads (
      .*,
      .write_i(passes || agrees_q),
      .write_address_i(at_q),
      .write_data_i(mark.bit_),
      .read_i(1'b1),
      .read_address_i(read1_line_q),
      .read_data_o(seen_bit)
  );
  simple_dual_port_ram #(
      .Width(1),
      .Depth(1 << Bits)
  ) i_look (
      .*,
      .write_i(passes || agrees_q),
      .write_address_i(at_q),
      .write_data_i(mark.bit_),
      .read_i(looks),
      .read_address_i(at),
      .read_data_o(look_bit)
  );

  assign done_o    = '{valid: passes && last_q && !shared_q.skip, pair: shared_q.pair};
  assign release_o = '{valid: passes && last_q && shared_q.in_place, pair: shared_q.pair, slots: shared_q.slots};
  assign free_o    = passes && !shared_q.in_place;
  always_comb begin
    events_o            = '0;
    events_o.tx_done    = done_o.valid && run;
    events_o.tx_stopped = done_o.valid && !run;
  end

  `ASSERT(sweeps_alone, !(sweeps_q || agrees_q) || !here_q, "a frame is looked at while marks are swept")
  `ASSERT(line_is_kept, !s_valid || s_payload.line == line_of(put.in_place, put.ends, put.middle),
          "a frame begins where none can")

endmodule
`default_nettype wire
