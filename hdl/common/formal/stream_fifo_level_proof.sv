// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of stream_fifo_level: beats come out unchanged, each once and in order. The queue accepts Depth beats and
/// never deadlocks.
/// The proof follows one arbitrary beat, which watch_i selects. The beat must be at its position in the
/// queue.
module stream_fifo_level_proof #(
    parameter int unsigned Width = 4,
    parameter int unsigned Depth = 4,
    parameter bit Block = 1'b0
) (
    input wire             clk_i,
    input wire             rst_i,
    input wire             s_valid,
    input wire [Width-1:0] s_payload,
    input wire             m_ready,
    input wire             watch_i
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic s_ready, m_valid, almost_full_o;
  logic [Width-1:0] m_payload;
  stream_fifo_level #(
      .Width(Width),
      .Depth(Depth),
      .Block(Block)
  ) dut (
      .*
  );

  logic put, take, watching_q;
  logic [CountWidth-1:0] count_q, ahead_q;  // beats inside; beats before the watched one
  logic [Width-1:0] beat_q;
  assign put  = s_valid && s_ready;
  assign take = m_valid && m_ready;
  always_ff @(posedge clk_i) begin
    count_q <= CountWidth'(count_q + CountWidth'(put) - CountWidth'(take));
    if (watching_q) begin
      if (take) ahead_q <= CountWidth'(ahead_q - 1'b1);
      if (take && ahead_q == 0) watching_q <= 1'b0;
    end else if (put && watch_i) begin
      watching_q <= 1'b1;
      ahead_q <= CountWidth'(count_q - CountWidth'(take));
      beat_q <= s_payload;
    end
    if (rst_i) begin
      count_q <= '0;
      watching_q <= 1'b0;
    end
  end

  `RESET_FIRST

  `ASSERT(count_is_right, dut.count_q == count_q, "a beat was lost or made up")
  `ASSERT(ready_is_room, s_ready == (count_q < Depth), "refuses a beat though there is room, or takes one too many")
  `ASSERT(valid_at_once, Block || m_valid == (count_q != 0), "keeps a beat back, or made one up")
  `ASSERT_NEXT(valid_in_two, count_q != 0 && !take, m_valid, "keeps a beat back")
  `ASSERT(watched_within, !watching_q || ahead_q < count_q, "the watched beat came out too early or was lost")
  `ASSERT(watched_is_right, !(watching_q && ahead_q == 0 && m_valid) || m_payload == beat_q,
          "a beat was changed, or overtook another")
  if (!Block || Depth > 2) begin : gen_streams  // two places cannot hide a latency of two cycles
    `COVER(streaming, put && take && $past(put && take))
  end
  `COVER(filled, count_q == Depth)
  `COVER(watched_through_full, watching_q && take && ahead_q == 0 && count_q == Depth)

  // The place of the watched beat. For induction: the assertions below exclude unreachable starting states.
  localparam int unsigned AddressWidth = $clog2(Depth);
  logic [AddressWidth-1:0] place;
  assign place = AddressWidth'(dut.read_q + AddressWidth'(ahead_q) - AddressWidth'(dut.held));
  if (Block) begin : gen_block
    `ASSERT(watched_in_place,
            !watching_q || (ahead_q == 0 && dut.held) || dut.i_ram.gen_block.i_ram.gen_block.memory[place] == beat_q,
            "the watched beat was overwritten")
    `ASSERT(held_counts, count_q >= CountWidth'(dut.held), "holds a beat that was not counted")
  end else begin : gen_lutram
    `ASSERT(watched_in_place, !watching_q || dut.i_ram.gen_lutram.i_ram.memory[place] == beat_q,
            "the watched beat was overwritten")
  end

endmodule
`default_nettype wire
