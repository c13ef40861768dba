// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Makes the posted writes of status words, packet entries and messages, with their addresses and data.
///
/// Behaviour: writes leave in order. A message whose vector is masked at its turn returns (back_o). flush_i
/// drops all writes except one being offered. Without may_post_i, writes wait. Status words and packet
/// entries have 16 bytes: count; error, end of packet; bytes; 0 (docs/design/dma.md). A message has 4 bytes.
/// Combinational paths: only m_ready to s_ready.
/// Latency: 2 cycles.
/// Reset: discards its contents.
/// Requirements: addresses do not change while their writes are in flight.
module dma_poster
  import dma_pkg::write_t;
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // the other registers
    input wire setting_t        setting_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire           [63:9] status_base_i,
    input wire                  may_post_i,
    input wire                  flush_i,

    input  wire        post_valid,
    output logic       post_ready,
    input  wire post_t post,

    /// vector_i describes this vector from the next cycle on.
    output event_t            vector_of_o,
    input  wire        [95:0] vector_i,
    input  wire each_t        held_i,
    output event_t            back_o,

    `STREAM_SENDER(m_write, write_t)

    output logic idle_o
);

  // ---- where to

  // When a post is taken, its ring's words are read. They are then valid together with aimed_q.
  logic         aims;
  logic [63:12] packets;
  logic [  4:0] bits;
  assign aims = post_valid && post_ready;
  dma_ring_word #(
      .Word (PacketsLowWord[3:0]),
      .Low  (12),
      .Width(20),
      .Block(1'b1)
  ) i_low (
      .*,
      .read_i (aims),
      .ring_i (post.ring),
      .value_o(packets[31:12])
  );
  dma_ring_word #(
      .Word (PacketsHighWord[3:0]),
      .Block(1'b1)
  ) i_high (
      .*,
      .read_i (aims),
      .ring_i (post.ring),
      .value_o(packets[63:32])
  );
  dma_ring_word #(
      .Word (RingControlWord[3:0]),
      .Low  (RingControlRingBitsLow),
      .Width(RingControlRingBitsBits),
      .Block(1'b1)
  ) i_bits (
      .*,
      .read_i (aims),
      .ring_i (post.ring),
      .value_o(bits)
  );
  assign vector_of_o = '{valid: aims, ring: post.ring};

  typedef struct packed {
    post_t       post;
    logic [15:0] number;  // of a packet's entry
  } aimed_t;
  aimed_t aimed, aimed_q;
  logic [63:0] base;
  logic [15:0] index;
  assign aimed = '{post: post, number: post.kind == PostPacket ? post.count[15:0] - 1'b1 : '0};
  assign index = aimed_q.number & ~('1 << bits);
  always_comb begin
    unique case (aimed_q.post.kind)
      PostStatus: base = {status_base_i, aimed_q.post.ring, 6'd0};
      PostPacket: base = {packets, 12'd0};
      default:    base = vector_i[63:0];
    endcase
  end

  // ---- may it go

  logic aimed_valid, aimed_ready, is_message, held, drops, goes, free;
  stream_register #(
      .Width($bits(aimed_t))
  ) i_aimed (
      .*,
      `STREAM_PORTS(s, post_valid, post_ready, aimed),
      `STREAM_PORTS(m, aimed_valid, aimed_ready, aimed_q)
  );
  assign is_message  = aimed_q.post.kind == PostMessage;
  assign held        = is_message && held_i[aimed_q.post.ring];
  assign drops       = aimed_valid && (flush_i || held);
  assign goes        = aimed_valid && !drops && may_post_i;
  assign aimed_ready = drops || (free && may_post_i);
  assign back_o      = '{valid: aimed_valid && held && !flush_i, ring: aimed_q.post.ring};

  typedef struct packed {
    logic         message;
    logic [63:0]  address;
    logic [127:0] data;
  } out_t;
  out_t out, out_q;
  always_comb begin
    out.message     = is_message;
    out.address     = 64'({index, 4'd0}) + base;
    out.data        = '0;
    out.data[31:0]  = is_message ? vector_i[95:64] : aimed_q.post.count;
    out.data[34:32] = aimed_q.post.error;
    out.data[35]    = aimed_q.post.error != '0;
    out.data[36]    = aimed_q.post.end_of_packet;
    out.data[91:64] = aimed_q.post.bytes;
  end
  stream_register #(
      .Width($bits(out_t))
  ) i_out (
      .*,
      `STREAM_PORTS(s, goes, free, out),
      `STREAM_PORTS(m, m_write_valid, m_write_ready, out_q)
  );
  always_comb begin
    m_write_payload             = '0;
    m_write_payload.first       = 1'b1;
    m_write_payload.last        = 1'b1;
    m_write_payload.bytes       = out_q.message ? 13'd4 : 13'd16;
    m_write_payload.addr        = out_q.address;
    m_write_payload.data[127:0] = out_q.data;
  end
  assign idle_o = !post_valid && !aimed_valid && !m_write_valid;

  `ASSERT_NEXT(write_kept, m_write_valid && !m_write_ready, m_write_valid && m_write_payload == $past(m_write_payload),
               "a write was withdrawn or changed before it was taken")

endmodule
`default_nettype wire
