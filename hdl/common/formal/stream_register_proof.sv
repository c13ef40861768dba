// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of stream_register: beats come out unchanged, each once and in order. The register accepts one or two beats,
/// and never deadlocks.
module stream_register_proof #(
    parameter int unsigned Width = 8,
    parameter bit CutReady = 1'b0,
    parameter bit Half = 1'b0
) (
    input wire             clk_i,
    input wire             rst_i,
    input wire             s_valid,
    input wire [Width-1:0] s_payload,
    input wire             m_ready
);

  logic s_ready, m_valid;
  logic [Width-1:0] m_payload;
  stream_register #(
      .Width(Width),
      .CutReady(CutReady),
      .Half(Half)
  ) dut (
      .*
  );

  // An observer's copy of the beats inside. The first one comes out next.
  logic [1:0] count_q, left;
  logic [Width-1:0] first_q, second_q;
  logic put, take;
  assign put  = s_valid && s_ready;
  assign take = m_valid && m_ready;
  assign left = count_q - 2'(take);
  always_ff @(posedge clk_i) begin
    if (take) first_q <= second_q;
    if (put && left == 0) first_q <= s_payload;
    if (put && left == 1) second_q <= s_payload;
    count_q <= left + 2'(put);
    if (rst_i) count_q <= '0;
  end

  `RESET_FIRST

  `ASSERT(room_is_right, count_q <= (CutReady ? 2 : 1), "holds more beats than it has places for")
  `ASSERT(valid_is_count, m_valid == (count_q != 0), "a beat was lost or made up")
  `ASSERT(ready_is_room, s_ready == (CutReady ? count_q < 2 : count_q == 0 || (m_ready && !Half)),
          "refuses a beat though there is room, or takes one too many")
  `ASSERT(first_is_right, count_q == 0 || m_payload == first_q, "a beat was changed, or overtook another")
  if (CutReady) begin : gen_cut
    `ASSERT(second_is_right, count_q < 2 || dut.gen_cut.aside_q == second_q, "the beat aside was changed")
    `COVER(filled, count_q == 2 && s_valid)
    `COVER(drained, take && $past(take && count_q == 2))
  end
  if (Half) begin : gen_half
    `COVER(every_other, put && $past(put, 2))
  end else begin : gen_full
    `COVER(streaming, put && take && $past(put && take))
  end
  `COVER(stalled, m_valid && !m_ready && s_valid)

endmodule
`default_nettype wire
