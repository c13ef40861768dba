// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Writes the function's frames to the packed buffer. Each frame begins in a new line, directly after the previous one.
///
/// Behaviour: a frame waits for room, and is posted (m_*) with its last line. A frame is dropped if it
/// is longer than max_frame or shorter than MinFrame, or if its queue is stopped. Its lines become free,
/// and events_o counts it. free_i returns lines in the order in which they were taken, one a cycle.
/// Latency: from the last beat to m_valid 1 cycle.
/// Paths: s_ready from m_ready.
/// Reset: empty.
/// Requirements: in s_keep, only a frame's last beat has zeros, above its ones. tuser is the same in all its beats.
module bypass_tx_input
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Bits = Config.pack_bits
) (
    input wire clk_i,
    input wire rst_i,

    input wire bytes_t                            max_frame_i,
    input wire         [2**Config.queue_bits-1:0] run_i,

    input  wire               s_valid,
    output logic              s_ready,
    // verilator lint_off UNUSEDSIGNAL  // its user bits
    input  wire bypass_axis_t s_payload,
    // verilator lint_on UNUSEDSIGNAL

    output logic             write_o,
    output logic  [Bits-1:0] write_line_o,
    output data_t            write_data_o,
    input  wire              free_i,

    output logic  m_valid,
    input  wire   m_ready,
    output post_t m_payload,

    output events_t events_o,

    /// Whether a line belongs to a frame that waits for transmission.
    input  wire  [Bits-1:0] reads_i,
    output logic            may_read_o
);

  /// The minimum that i40e accepts; all other families accept it, too.
  localparam bytes_t MinFrame = 14'd17;

  // ---- a beat

  logic valid_q, last_q, exists_q, goes, room;
  logic [7:0] pair;
  logic [5:0] final_q, final_byte;  // of its bytes
  queue_t queue_q;
  data_t  data_q;
  assign pair = s_payload.user[23:16];
  always_comb begin
    // A binary search finds the last one.
    final_byte = '0;
    for (int i = 5; i >= 0; i--) final_byte[i] = s_payload.keep[final_byte|6'(1<<i)];
  end
  assign s_ready = !valid_q || goes;
  always_ff @(posedge clk_i) begin
    if (s_ready) valid_q <= s_valid;
    if (s_ready && s_valid) begin
      last_q   <= s_payload.last;
      final_q  <= final_byte;
      queue_q  <= pair[3:0];
      exists_q <= 32'(pair) < 2 ** Config.queue_bits;
      data_q   <= s_payload.data;
    end
    if (rst_i) valid_q <= 1'b0;
  end

  // ---- the lines of frames; a pointer has one more bit than a line's number, to separate full from empty

  typedef logic [Bits:0] pointer_t;
  pointer_t next_q, start_q, free_q;
  logic [7:0] lines_q;  // of this frame, before this beat
  bytes_t bytes;
  logic runs, long, short, too_long_q, drops;
  assign room  = pointer_t'(next_q - free_q) != pointer_t'(1 << Bits);
  // The comparisons use the last byte's number, which needs no addition.
  assign bytes = {lines_q, final_q} + 1'b1;
  assign long  = {lines_q, final_q} >= max_frame_i || {lines_q, final_q} >= bytes_t'(MaxFrame) || too_long_q;
  assign short = {lines_q, final_q} < MinFrame - 1'b1;
  always_comb begin
    runs = 1'b0;
    for (int i = 0; i < 2 ** Config.queue_bits; i++) if (exists_q && queue_t'(i) == queue_q) runs = run_i[i];
  end
  assign drops = long || short || !runs;

  // A frame that is too long takes no more lines.
  assign goes = (room || too_long_q) && (!last_q || drops || m_ready);
  assign m_valid = valid_q && last_q && room && !drops;
  assign m_payload = '{
          pair: existing(queue_q, Config),
          skip: 1'b0,
          in_place: 1'b0,
          slots: '0,
          line: (WindowBits - LineBits)'(pack_offset(line_t'(start_q[Bits-1:0])) >> LineBits),
          bytes: bytes
      };

  logic move;
  assign move = valid_q && goes;
  always_ff @(posedge clk_i) begin
    if (move) begin
      next_q     <= next_q + pointer_t'(!too_long_q);
      lines_q    <= lines_q + 8'(!too_long_q);
      too_long_q <= long;
      if (last_q) begin
        next_q     <= drops ? start_q : next_q + 1'b1;
        start_q    <= drops ? start_q : next_q + 1'b1;
        lines_q    <= '0;
        too_long_q <= 1'b0;
      end
    end
    if (free_i) free_q <= free_q + 1'b1;
    if (rst_i) begin
      next_q     <= '0;
      start_q    <= '0;
      free_q     <= '0;
      lines_q    <= '0;
      too_long_q <= 1'b0;
    end
  end

  assign write_o      = valid_q && room;
  assign write_line_o = next_q[Bits-1:0];
  assign write_data_o = data_q;
  always_comb begin
    events_o            = '0;
    events_o.tx_in      = 2'(move && last_q);
    events_o.tx_refused = move && last_q && !runs;
    events_o.tx_size    = move && last_q && runs && drops;
  end

  pointer_t offset, posted;
  assign offset     = {1'b0, Bits'(reads_i - free_q[Bits-1:0])};
  assign posted     = start_q - free_q;
  assign may_read_o = offset < posted;

  `ASSERT(free_is_posted, !free_i || free_q != start_q, "a line is given back that no frame has")
  `ASSERT_NEXT(beat_stays, s_valid && !s_ready, s_valid && s_payload == $past(s_payload),
               "a beat changed before it was taken")
  `ASSERT(keep_is_full, !(s_valid && s_ready) || (s_payload.last ? s_payload.keep[0] : s_payload.keep == '1),
          "a beat is not full")
  `ASSERT(keep_has_no_gap, !(s_valid && s_ready) || (s_payload.keep & (s_payload.keep + 1'b1)) == '0,
          "a beat has a gap")

endmodule
`default_nettype wire
