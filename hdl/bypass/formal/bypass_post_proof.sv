// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proves bypass_post: each sender's frames pass once, in order. With room, a frame gets the descriptor at its
/// ring's tail; the NIC reads the entry posted there last. One arbitrary frame and descriptor are followed.
module bypass_post_proof
  import bypass_pkg::*;
(
    input wire clk_i,
    input wire rst_i,
    input wire [1:0] s_valid,
    input wire post_t [1:0] s_payload,
    input wire [1:0] room_i,
    input wire m_ready,
    input wire read_i,
    input wire [1:0] offset_i,
    input wire sender_i,
    input wire [3:0] descriptor_i
);

  localparam bypass_config_t Config = '{queue_bits: 1, rx_bits: 4, tx_bits: 3, pack_bits: 9};
  localparam index_t Mask = index_t'((1 << 3) - 1);

  logic [1:0] s_ready, post_o, coming_o;
  logic m_valid;
  post_t m_payload;
  index_t [1:0] tail_q;
  tx_entry_t [3:0] entries_o;
  window_read_t window_read;
  // offset_i: the queue and the group of four.
  assign window_read = '{
          valid: read_i,
          offset: {2'd0, 3'd0, offset_i[1], 1'b1, 9'd0, offset_i[0], 6'd0},
          region: TxRing,
          last_byte: '1
      };
  bypass_post #(
      .Config(Config)
  ) dut (
      .*,
      .tail_i(tail_q),
      .read_i(window_read)
  );

  logic sender_q;
  logic [3:0] descriptor_q;  // queue, index
  logic [1:0] taken;
  assign taken = s_valid & s_ready;

  // The followed descriptor: the entry that was posted there last, and whether a read must see it.
  tx_entry_t entry_q;
  logic known_q, fresh_q, looked_q;
  logic writes;
  assign writes = post_o[descriptor_q[3]] && tail_q[descriptor_q[3]][2:0] == descriptor_q[2:0];
  always_ff @(posedge clk_i) begin
    for (int q = 0; q < 2; q++) if (post_o[q]) tail_q[q] <= (tail_q[q] + 1'b1) & Mask;
    fresh_q  <= writes;
    looked_q <= read_i && offset_i == descriptor_q[3:2] && known_q && !writes && !fresh_q;
    if (writes) begin
      entry_q <= '{line: m_payload.line, bytes: m_payload.bytes};
      known_q <= 1'b1;
    end
    if (rst_i) begin
      sender_q     <= sender_i;
      descriptor_q <= descriptor_i;
      tail_q       <= '0;
      known_q      <= 1'b0;
      fresh_q      <= 1'b0;
      looked_q     <= 1'b0;
    end
  end

  `RESET_FIRST
  `ASSUME(pairs_exist, (!s_valid[0] || s_payload[0].pair < 4'd2) && (!s_valid[1] || s_payload[1].pair < 4'd2))
  `ASSUME_NEXT(kept_0, s_valid[0] && !s_ready[0], s_valid[0] && s_payload[0] == $past(s_payload[0]))
  `ASSUME_NEXT(kept_1, s_valid[1] && !s_ready[1], s_valid[1] && s_payload[1] == $past(s_payload[1]))

  `ASSERT(one_goes_on, (m_valid && m_ready) == (taken != '0) && taken != 2'b11, "a frame is lost, or there twice")
  `ASSERT(as_it_was, !taken[sender_q] || m_payload == s_payload[sender_q], "a frame changes")
  `ASSERT(nothing_of_its_own, m_valid == (taken != '0), "a frame is offered that cannot go")
  `ASSERT(one_descriptor, (post_o != '0) == (taken != '0 && !m_payload.skip) && post_o != 2'b11,
          "a frame has no descriptor, or two")
  `ASSERT(of_its_ring, post_o == '0 || post_o[m_payload.pair[0]], "a frame gets another ring's descriptor")
  `ASSERT(announced, (post_o & ~coming_o) == '0, "a frame is posted that was not announced")
  `ASSERT(with_room, (post_o & ~room_i) == '0, "a ring without room")
  `ASSERT(entry_is_read, !looked_q || entries_o[descriptor_q[1:0]] == $past(entry_q), "the NIC reads another entry")

  `COVER(both_in_turn, taken == 2'b10 && $past(taken) == 2'b01)
  `COVER(looked, looked_q && entry_q.bytes == 14'd77)
  `COVER(skipped, taken[1] && m_payload.skip && s_valid[0])

endmodule
`default_nettype wire
