// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Moves the bytes of frames to other lanes: from any first lane to any first lane.
///
/// Behaviour: with a frame's first beat s_shift says by how many lanes its bytes move up, round the bus: a frame whose first byte is in lane
/// `from` comes out with it in lane (from + s_shift) mod Bytes. All beats of a frame are full but for the lanes before its first byte and after
/// its last, at the input and so at the output. A beat out has the user bits of the newest beat in that has bytes in it, so the last beat has
/// those of the last beat.
/// Throughput: a beat a cycle in and out. A frame that needs a beat more at the output takes that cycle from the input; one that needs a beat
/// less gives it back.
/// Cuts: valid and payload. m_ready passes to s_ready.
/// Latency: 2 cycles, or from the second beat if the first has no byte in the first beat out.
/// Reset: forgets the frame within.
/// Requirements: in reset s_valid is low, and the next beat begins a frame; every beat has a byte; a frame's bytes have no gap.
module stream_align #(
    /// The stream: see axi.svh.
    parameter type axis_t = axi_pkg::axis_t,
    /// Bytes of its data; a power of two, at least 2.
    parameter int unsigned Bytes = 64,
    localparam int unsigned ShiftWidth = $clog2(Bytes)
) (
    input wire clk_i,
    input wire rst_i,

    input  wire                         s_valid,
    output logic                        s_ready,
    input  wire axis_t                  s_payload,
    /// Looked at with the first beat of a frame only.
    input  wire        [ShiftWidth-1:0] s_shift,

    output logic  m_valid,
    input  wire   m_ready,
    output axis_t m_payload
);

  if (Bytes < 2 || 2 ** $clog2(Bytes) != Bytes || $bits(s_payload.keep) != Bytes) begin : gen_check_bytes
    $fatal(1, "Bytes must be a power of two, at least 2, and those of axis_t in %m");
  end

  typedef logic [Bytes-1:0] keep_t;
  typedef logic [ShiftWidth-1:0] shift_t;

  // ---- a beat, the shift of its frame, and whether it has bytes in this beat out (now) and in the next (later)
  logic a_valid_q, a_now_q, a_later_q, first_q, a_take;
  axis_t a_q;
  shift_t a_shift_q, shift;
  keep_t stays;  // lanes whose bytes do not go round

  assign s_ready = !a_valid_q || a_take;
  assign shift   = first_q ? s_shift : a_shift_q;
  always_comb begin
    for (int i = 0; i < int'(Bytes); i++) stays[i] = shift <= shift_t'(~i);
  end

  always_ff @(posedge clk_i) begin
    if (s_ready) a_valid_q <= s_valid;
    if (s_valid && s_ready) begin
      a_q       <= s_payload;
      a_shift_q <= shift;
      a_now_q   <= (s_payload.keep & stays) != '0;
      a_later_q <= (s_payload.keep & ~stays) != '0;
      first_q   <= s_payload.last;
    end
    if (rst_i) begin
      a_valid_q <= 1'b0;
      first_q   <= 1'b1;
    end
  end

  // ---- the beat before it, of which some bytes may still have to come out; flush_q: they end the frame
  logic later_q, flush_q;
  axis_t  before_q;
  shift_t out_shift_q;  // of the beat out: from a register, since every lane waits for it
  logic step, emit;
  keep_t a_keep, out_keep;
  logic [8*Bytes-1:0] out_data;

  assign step   = !m_valid || m_ready;
  assign emit   = flush_q || (a_valid_q && (a_now_q || later_q));
  // While a frame ends, the next one's first beat comes in if it has no byte in this beat out.
  assign a_take = step && a_valid_q && !(flush_q && a_now_q);
  assign a_keep = flush_q ? '0 : a_q.keep;

  // Lane i comes from lane i + Bytes - shift of the two beats side by side. No shift needs the lowest lane: without it, from lane
  // i + ~shift. Two bits of that in each step, from the top, since a choice of four is a LUT; a step keeps the lanes that are left to choose.
  typedef logic [8:0] lane_t;  // keep and data
  localparam int unsigned Steps = (ShiftWidth + 1) / 2;
  logic [Steps-1:0][1:0] amount;
  lane_t [4*Bytes-1:0] chosen[Steps+1];
  assign amount = (2 * Steps)'(shift_t'(~out_shift_q));
  for (genvar i = 0; i < 4 * Bytes; i++) begin : gen_lane
    if (i < Bytes - 1) begin : gen_before
      assign chosen[Steps][i] = {before_q.keep[i+1], before_q.data[8*(i+1)+:8]};
    end else if (i < 2 * Bytes - 1) begin : gen_a
      assign chosen[Steps][i] = {a_keep[i+1-Bytes], a_q.data[8*(i+1-Bytes)+:8]};
    end else begin : gen_none
      assign chosen[Steps][i] = '0;
    end
  end
  for (genvar k = 0; k < Steps; k++) begin : gen_step
    for (genvar i = 0; i < 4 * Bytes; i++) begin : gen_lane
      if (i < Bytes + 4 ** k - 1) begin : gen_choice
        // Two choices of two: a `case` becomes two LUTs.
        lane_t low, high;
        assign low = amount[k][0] ? chosen[k+1][i+4**k] : chosen[k+1][i];
        assign high = amount[k][0] ? chosen[k+1][i+3*4**k] : chosen[k+1][i+2*4**k];
        assign chosen[k][i] = amount[k][1] ? high : low;
      end else begin : gen_none
        assign chosen[k][i] = '0;
      end
    end
  end
  for (genvar i = 0; i < Bytes; i++) begin : gen_out
    assign {out_keep[i], out_data[8*i+:8]} = chosen[0][i];
  end

  logic unused_before;
  assign unused_before = ^{before_q.last, before_q.keep[0], before_q.data[7:0]};

  always_ff @(posedge clk_i) begin
    if (step) begin
      m_valid        <= emit;
      m_payload.data <= out_data;
      m_payload.keep <= out_keep;
      m_payload.last <= flush_q || (a_q.last && !a_later_q);
      m_payload.user <= flush_q ? before_q.user : a_q.user;
    end
    // The bytes that were to come later have come, or new ones take their place.
    if (a_take || (step && flush_q)) begin
      flush_q  <= a_take && a_q.last && a_later_q;
      later_q  <= a_take && a_later_q;
      before_q <= a_q;
      if (!(a_take && a_later_q)) before_q.keep <= '0;
    end
    if (!(flush_q && !step)) begin
      out_shift_q <= s_valid && s_ready && !(a_take && a_q.last && a_later_q) ? shift : a_shift_q;
    end
    if (rst_i) begin
      m_valid       <= 1'b0;
      flush_q       <= 1'b0;
      later_q       <= 1'b0;
      before_q.keep <= '0;
    end
  end

`ifndef SYNTHESIS
  function automatic logic one_run(keep_t keep);
    return keep != '0 && (keep & (keep + (keep & -keep))) == '0;
  endfunction
  logic top, bottom;
  assign top    = s_payload.keep[Bytes-1];
  assign bottom = s_payload.keep[0];
  `ASSERT(bytes_in_one_run, !s_valid || one_run(s_payload.keep), "a beat has no byte, or a gap between its bytes")
  `ASSERT(goes_on_to_the_top, !s_valid || s_payload.last || top, "a frame has a gap at the top of a beat")
  `ASSERT(goes_on_from_the_bottom, !s_valid || first_q || bottom, "a frame has a gap at the bottom of a beat")
  `ASSERT(never_empty, !m_valid || one_run(m_payload.keep), "a beat without a byte, or with a gap, came out")
`endif
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")

endmodule
`default_nettype wire
