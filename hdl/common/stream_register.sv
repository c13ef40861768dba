// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A register in a stream, at full throughput.
///
/// Behaviour: without CutReady it accepts a beat if it is empty or its beat is being taken. With CutReady it has room
/// for two beats. `s_ready` is then a register, which falls one cycle late. The second place holds the beat that
/// arrives meanwhile.
/// Cuts: valid and payload; with CutReady also ready. Without CutReady, m_ready passes through to s_ready.
/// Latency: 1 cycle.
/// Reset: empties the register. The payload keeps its value.
/// Requirements: s_valid is low during reset.
module stream_register #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8,
    /// Also cut the path of ready. This costs a second register and a multiplexer of Width bits. For wide streams, a
    /// stream_fifo of depth 32 cuts the same paths for less.
    parameter bit CutReady = 1'b0,
    /// Cut the path of ready without this cost, at half the throughput: one beat in two cycles. Not with CutReady.
    parameter bit Half = 1'b0
) (
    input wire clk_i,
    `STREAM_RECEIVER(s, logic [Width-1:0])
    `STREAM_SENDER(m, logic [Width-1:0])
    input wire rst_i
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (CutReady && Half) begin : gen_check_half
    $fatal(1, "CutReady and Half exclude each other in %m");
  end

  logic valid_q, move;
  logic [Width-1:0] payload_q;

  assign move      = !valid_q || m_ready;
  assign m_valid   = valid_q;
  assign m_payload = payload_q;

  if (CutReady) begin : gen_cut
    logic aside_valid_q;
    logic [Width-1:0] aside_q;

    assign s_ready = !aside_valid_q;

    always_ff @(posedge clk_i) begin
      // aside_q follows the input while it is free, so its enable depends on a register only.
      if (!aside_valid_q) aside_q <= s_payload;
      if (move) begin
        valid_q <= aside_valid_q || s_valid;
        payload_q <= aside_valid_q ? aside_q : s_payload;
        aside_valid_q <= 1'b0;
      end else if (s_valid) begin
        aside_valid_q <= 1'b1;
      end
      if (rst_i) begin
        valid_q <= 1'b0;
        aside_valid_q <= 1'b0;
      end
    end

    `ASSERT(aside_after_output, !aside_valid_q || valid_q, "a beat is aside while the output is free")
  end else begin : gen_pass
    assign s_ready = Half ? !valid_q : move;

    always_ff @(posedge clk_i) begin
      if (move) valid_q <= s_valid && s_ready;
      if (s_valid && s_ready) payload_q <= s_payload;
      if (rst_i) valid_q <= 1'b0;
    end
  end

  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")

endmodule
`default_nettype wire
