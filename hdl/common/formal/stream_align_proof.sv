// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "axi.svh"

/// Of stream_align: every byte comes out once, in order and unchanged, in the lane to which its frame's shift moves it; a frame ends with
/// its last byte.
///
/// One byte, any, is watched on its way: watch_i and watch_lane_i say which.
module stream_align_proof #(
    parameter int unsigned Bytes = 4,
    localparam int unsigned ShiftWidth = $clog2(Bytes)
) (
    input wire                  clk_i,
    input wire                  rst_i,
    input wire                  s_valid,
    input wire [     Bytes-1:0] s_data,       // a bit of each byte: all are moved alike
    input wire [     Bytes-1:0] s_keep,
    input wire                  s_last,
    input wire [ShiftWidth-1:0] s_shift,
    input wire                  m_ready,
    input wire                  watch_i,
    input wire [ShiftWidth-1:0] watch_lane_i
);

  `AXIS_TYPE(axis, 8 * Bytes, 1)
  logic s_ready, m_valid;
  axis_t s_payload, m_payload;
  always_comb begin
    s_payload = '{user: '0, last: s_last, keep: s_keep, data: '0};
    for (int i = 0; i < int'(Bytes); i++) s_payload.data[8*i] = s_data[i];
  end
  stream_align #(
      .axis_t(axis_t),
      .Bytes (Bytes)
  ) dut (
      .*
  );

  // ---- what may come in
  logic first_q;
  always_ff @(posedge clk_i) begin
    if (s_valid && s_ready) first_q <= s_last;
    if (rst_i) first_q <= 1'b1;
  end
  `ASSUME(has_a_byte, s_keep != '0)
  `ASSUME(one_run, (s_keep & (s_keep + (s_keep & -s_keep))) == '0)
  `ASSUME(goes_on, (s_last || s_keep[Bytes-1]) && (first_q || s_keep[0]))
  `ASSUME_NEXT(kept, s_valid && !s_ready, s_valid && s_payload == $past(s_payload) && s_shift == $past(s_shift))

  // ---- bytes within, and the watched one
  localparam int unsigned CountWidth = ShiftWidth + 2;
  typedef logic [CountWidth-1:0] count_t;
  function automatic count_t bytes_of(logic [Bytes-1:0] keep);
    count_t found;
    found = '0;
    for (int i = 0; i < int'(Bytes); i++) found += count_t'(keep[i]);
    return found;
  endfunction
  function automatic count_t lowest_of(logic [Bytes-1:0] keep);
    count_t found;
    found = '0;
    for (int i = int'(Bytes) - 1; i >= 0; i--) if (keep[i]) found = count_t'(i);
    return found;
  endfunction

  logic put, take, watching_q, ends_q, watched_now;
  logic [ShiftWidth-1:0] shift_q, shift, lane_q, out_lane;
  logic byte_q;
  count_t within_q, ahead_q;
  assign put         = s_valid && s_ready;
  assign take        = m_valid && m_ready;
  assign shift       = first_q ? s_shift : shift_q;
  assign watched_now = watching_q && take && ahead_q < bytes_of(m_payload.keep);
  assign out_lane    = ShiftWidth'(lowest_of(m_payload.keep) + ahead_q);
  always_ff @(posedge clk_i) begin
    if (put) shift_q <= shift;
    within_q <= within_q + (put ? bytes_of(s_keep) : '0) - (take ? bytes_of(m_payload.keep) : '0);
    if (watching_q) begin
      if (take) ahead_q <= ahead_q - bytes_of(m_payload.keep);
      if (watched_now) watching_q <= 1'b0;
    end else if (put && watch_i && s_keep[watch_lane_i]) begin
      watching_q <= 1'b1;
      lane_q     <= watch_lane_i + shift;
      byte_q     <= s_data[watch_lane_i];
      ends_q     <= s_last && (watch_lane_i == ShiftWidth'(Bytes - 1) || !s_keep[watch_lane_i+1'b1]);
      ahead_q    <= within_q - (take ? bytes_of(m_payload.keep) : '0) + count_t'(watch_lane_i) - lowest_of(s_keep);
    end
    if (rst_i) begin
      within_q   <= '0;
      watching_q <= 1'b0;
    end
  end

  `RESET_FIRST

  `ASSERT(no_byte_made_up, !m_valid || bytes_of(m_payload.keep) <= within_q, "a byte was made up")
  `ASSERT(no_more_than_three_beats, within_q <= count_t'(3 * Bytes), "bytes are kept back")
  `ASSERT(watched_within, !watching_q || ahead_q < within_q, "the watched byte was lost")
  `ASSERT(in_its_lane, !watched_now || out_lane == lane_q, "a byte came out in another lane")
  `ASSERT(unchanged, !watched_now || m_payload.data[8*out_lane] == byte_q, "a byte was changed, or overtook another")
  logic frame_ends;
  assign frame_ends = m_payload.last && (out_lane == ShiftWidth'(Bytes - 1) || !m_payload.keep[out_lane+1'b1]);
  `ASSERT(ends_its_frame, !watched_now || ends_q == frame_ends, "a frame ends elsewhere")
  `COVER(down, watched_now && ends_q && lane_q == '0)
  `COVER(up, watched_now && lane_q == '1 && !ends_q)
  `COVER(flush_and_first, dut.flush_q && dut.a_take)
  `COVER(streaming, put && take && $past(put && take) && dut.a_later_q)

endmodule
`default_nettype wire
