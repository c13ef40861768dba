// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Frames from the function, into the packed buffer: each begins in a line of its own, right behind the one before.
///
/// Behaviour: a frame waits for room; it is posted (m_*) with its last line. One that is longer than max_frame or shorter than MinFrame, or whose queue
/// does not run, is dropped: its lines are free again, and one of the three pulses says so. Lines are given back in the order in which
/// they were taken (free_i), one a cycle.
/// Latency: from the last beat to m_valid 1 cycle.
/// Paths: s_ready from m_ready.
/// Reset: empty.
/// Requirements: s_keep has ones from the lowest bit on, all of them but in the last beat. tuser is the same in all beats of a frame.
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

    output logic ended_o,
    output logic refused_o,
    output logic size_o,

    /// Whether a line holds what is to be transmitted.
    input  wire  [Bits-1:0] reads_i,
    output logic            may_read_o
);

  /// What i40e takes at least; all others take it, too.
  localparam bytes_t MinFrame = 14'd17;

  // ---- a beat

  logic valid_q, last_q, exists_q, goes, room;
  logic [7:0] pair;
  logic [6:0] lanes_q, lanes;
  queue_t queue_q;
  data_t  data_q;
  assign pair = s_payload.user[23:16];
  always_comb begin
    lanes = '0;
    for (int i = 0; i < 64; i++) if (s_payload.keep[i] && (i == 63 || !s_payload.keep[(i+1)%64])) lanes |= 7'(i + 1);
  end
  assign s_ready = !valid_q || goes;
  always_ff @(posedge clk_i) begin
    if (s_ready) valid_q <= s_valid;
    if (s_ready && s_valid) begin
      last_q   <= s_payload.last;
      lanes_q  <= lanes;
      queue_q  <= pair[3:0];
      exists_q <= 32'(pair) < 2 ** Config.queue_bits;
      data_q   <= s_payload.data;
    end
    if (rst_i) valid_q <= 1'b0;
  end

  // ---- its line; one bit more than a line's number, so that full and empty differ

  typedef logic [Bits:0] pointer_t;
  pointer_t next_q, start_q, free_q;
  logic [ 7:0] lines_q;  // of this frame, before this beat
  logic [14:0] bytes;
  logic runs, long, short, too_long_q, drops;
  assign room  = pointer_t'(next_q - free_q) != pointer_t'(1 << Bits);
  assign bytes = {1'b0, lines_q, 6'd0} + 15'(lanes_q);
  assign long  = bytes > {1'b0, max_frame_i} || bytes > 15'(MaxFrame) || too_long_q;
  assign short = bytes < {1'b0, MinFrame};
  always_comb begin
    runs = 1'b0;
    for (int i = 0; i < 2 ** Config.queue_bits; i++) if (exists_q && queue_t'(i) == queue_q) runs = run_i[i];
  end
  assign drops = long || short || !runs;

  // A frame that is too long takes no line any more.
  assign goes = (room || too_long_q) && (!last_q || drops || m_ready);
  assign m_valid = valid_q && last_q && room && !drops;
  assign m_payload = '{
          pair: queue_q,
          skip: 1'b0,
          in_place: 1'b0,
          slots: '0,
          line: (WindowBits - LineBits)'(pack_offset(line_t'(start_q[Bits-1:0])) >> LineBits),
          bytes: bytes[13:0]
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
  assign ended_o      = move && last_q;
  assign refused_o    = ended_o && !runs;
  assign size_o       = ended_o && runs && drops;

  pointer_t offset, posted;
  assign offset     = {1'b0, Bits'(reads_i - free_q[Bits-1:0])};
  assign posted     = start_q - free_q;
  assign may_read_o = offset < posted;

  `ASSERT(free_is_posted, !free_i || free_q != start_q, "a line is given back that no frame has")
  `ASSERT(keep_is_full, !(s_valid && s_ready) || (s_payload.last ? s_payload.keep[0] : s_payload.keep == '1),
          "a beat is not full")
  `ASSERT(keep_has_no_gap, !(s_valid && s_ready) || (s_payload.keep & (s_payload.keep + 1'b1)) == '0,
          "a beat has a gap")

endmodule
`default_nettype wire
