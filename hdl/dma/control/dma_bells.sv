// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Decodes writes to the doorbell window into the ring, its new tail, and the descriptor if the write carries one.
///
/// Behaviour: each ring has 64 bytes: a descriptor, then the tail (its low 16 bits count). A write that covers the tail
/// is a doorbell; one of all 64 bytes also carries the descriptor. Other writes have no effect: if a processor splits a
/// write-combined line, the part with the tail is a doorbell. Writes to missing rings or rings under reset are dropped.
/// Cuts: valid and payload.
/// Latency: 1 cycle.
/// Reset: discards a stored doorbell.
/// Requirements: a write stays within the 64 bytes of one ring.
module dma_bells
  import dma_control_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire        s_bell_valid,
    output logic       s_bell_ready,
    // verilator lint_off UNUSEDSIGNAL  // what is software's own
    input  wire bell_t s_bell_payload,
    // verilator lint_on UNUSEDSIGNAL

    input wire each_t ignore_i,

    output logic      doorbell_valid,
    input  wire       doorbell_ready,
    output doorbell_t doorbell
);

  // Any dword of the lower half may hold the tail.
  logic [3:0] lane;
  logic covers, carries, goes;
  count_t tail;
  // verilator lint_off UNUSEDSIGNAL
  bell_t  bell;
  // verilator lint_on UNUSEDSIGNAL
  ring_t  ring;
  assign bell = s_bell_payload;
  assign lane = 4'(TailOffset / 4) - bell.offset[5:2];
  assign covers  = bell.offset[1:0] == '0 && bell.offset[5:0] <= 6'(TailOffset)
                   && 7'(bell.offset[5:0]) + bell.bytes >= 7'(TailOffset + 2);
  assign carries = bell.bytes == 7'd64;
  assign ring = bell.offset[8:6];
  assign goes = s_bell_valid && covers && !ignore_i[ring];
  always_comb begin
    tail = '0;
    for (int i = 0; i <= int'(TailOffset / 4); i++) if (lane == 4'(i)) tail = bell.data[32*i+:16];
  end

  stream_register #(
      .Width($bits(doorbell_t))
  ) i_register (
      .*,
      `STREAM_PORTS(s, goes, s_bell_ready, {ring, tail, carries, descriptor_of(bell.data[191:0])}),
      `STREAM_PORTS(m, doorbell_valid, doorbell_ready, doorbell)
  );

  `ASSERT(in_one_ring, !s_bell_valid || 8'(bell.offset[5:0]) + 8'(bell.bytes) <= 8'd64,
          "a write to the doorbell window reaches into the next ring's part")

endmodule
`default_nettype wire
