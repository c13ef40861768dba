// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of stream_arbiter: the output is the beat of one input, and it is kept until taken if the inputs keep their
/// beats. With round robin an input waits for at most Inputs - 1 others. With Fixed the lowest input wins. With Packets
/// another input cannot interrupt a packet.
module stream_arbiter_proof #(
    parameter int unsigned Inputs = 3,
    parameter int unsigned Width = 4,
    parameter bit Fixed = 1'b0,
    parameter bit Packets = 1'b0,
    // Proves that no input starves. The property is not inductive, so it is proved only for a limited number of cycles.
    parameter bit Fair = 1'b0
) (
    input wire                         clk_i,
    input wire                         rst_i,
    input wire [Inputs-1:0]            s_valid,
    input wire [Inputs-1:0][Width-1:0] s_payload,
    input wire [Inputs-1:0]            s_last,
    input wire                         m_ready
);

  logic [Inputs-1:0] s_ready;
  logic m_valid, m_last;
  logic [Width-1:0] m_payload;
  logic [$clog2(Inputs)-1:0] m_index;
  stream_arbiter #(
      .Inputs (Inputs),
      .Width  (Width),
      .Fixed  (Fixed),
      .Packets(Packets)
  ) dut (
      .*
  );

  `RESET_FIRST

  for (genvar i = 0; i < Inputs; i++) begin : gen_input
    `ASSUME_NEXT(kept, s_valid[i] && !s_ready[i], s_valid[i] && s_payload[i] == $past(s_payload[i]
                 ) && s_last[i] == $past(s_last[i]))

    // Packets of other inputs that began while input i had a beat waiting.
    logic [3:0] passed_q;
    logic inside_q;  // a packet has begun and not ended
    logic begins;
    assign begins = m_valid && m_ready && !(Packets && inside_q);
    always_ff @(posedge clk_i) begin
      if (m_valid && m_ready) inside_q <= !m_last;
      if (!s_valid[i] || s_ready[i]) passed_q <= '0;
      else if (begins) passed_q <= passed_q + 1'b1;
      if (rst_i) begin
        passed_q <= '0;
        inside_q <= 1'b0;
      end
    end
    if (Fair) begin : gen_fair
      `ASSERT(fair, passed_q < 4'(Inputs), "an input was passed over twice")
    end
  end

  `ASSERT(beat_is_right, !m_valid || (s_valid[m_index] && m_payload == s_payload[m_index] && m_last == s_last[m_index]),
          "the output is not the beat of the input that it names")
  `ASSERT(taken_is_winner, s_ready == (m_valid && m_ready ? Inputs'(1) << m_index : '0),
          "an input other than the winner was taken")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload) && m_last == $past(m_last),
               "a beat changed before it was taken")
  if (Fixed) begin : gen_fixed
    `ASSERT_NEXT(lowest_first, m_valid && m_ready && (!Packets || m_last),
                 !m_valid || (s_valid & ((Inputs'(1) << m_index) - Inputs'(1))) == '0,
                 "a lower input has a beat, and another won")
  end
  `COVER(last_input, m_valid && m_ready && m_index == Inputs - 1)
  `COVER(change, m_valid && m_index != $past(m_index) && $past(m_valid && m_ready))

endmodule
`default_nettype wire
