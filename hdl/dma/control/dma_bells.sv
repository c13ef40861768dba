// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Writes to the doorbell window, read: which ring, its new tail, and the descriptor if the write carries one.
///
/// Behaviour: each ring has 64 bytes: a descriptor, then the tail (its low 16 bits count). A write that covers the tail is a doorbell; one of all 64 bytes
/// carries the descriptor before the tail, too. A write that does not cover the tail changes nothing: processors may break a write-combined line into pieces,
/// and the piece with the tail is then a doorbell without a descriptor. Writes to rings under reset, or that do not exist, are dropped.
/// Cuts: valid and payload.
/// Latency: 1 cycle.
/// Reset: forgets the doorbell within.
/// Requirements: a write lies in the 64 bytes of one ring.
module dma_bells
  import dma_control_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire   s_valid,
    output logic  s_ready,
    // verilator lint_off UNUSEDSIGNAL  // what is software's own
    input  bell_t s_payload,
    // verilator lint_on UNUSEDSIGNAL

    input wire each_t ignore_i,

    output logic        m_valid,
    input  wire         m_ready,
    output ring_t       m_ring,
    output count_t      m_tail,
    output logic        m_carries,
    output descriptor_t m_descriptor
);

  // Every dword of the lower half may be the tail's.
  logic [3:0] lane;
  logic covers, carries, goes;
  count_t tail;
  ring_t  ring;
  assign lane = 4'(TailOffset / 4) - s_payload.offset[5:2];
  assign covers  = s_payload.offset[1:0] == '0 && s_payload.offset[5:0] <= 6'(TailOffset)
                   && 7'(s_payload.offset[5:0]) + s_payload.bytes >= 7'(TailOffset + 2);
  assign carries = s_payload.bytes == 7'd64;
  assign ring = s_payload.offset[8:6];
  assign goes = s_valid && covers && !ignore_i[ring];
  always_comb begin
    tail = '0;
    for (int i = 0; i <= int'(TailOffset / 4); i++) if (lane == 4'(i)) tail = s_payload.data[32*i+:16];
  end

  localparam int unsigned Width = $bits(ring_t) + $bits(count_t) + 1 + $bits(descriptor_t);
  stream_register #(
      .Width(Width)
  ) i_register (
      .*,
      .s_valid  (goes),
      .s_payload({ring, tail, carries, descriptor_of(s_payload.data[191:0])}),
      .m_payload({m_ring, m_tail, m_carries, m_descriptor})
  );

  `ASSERT(in_one_ring, !s_valid || 8'(s_payload.offset[5:0]) + 8'(s_payload.bytes) <= 8'd64,
          "a write to the doorbell window reaches into the next ring's part")

endmodule
`default_nettype wire
