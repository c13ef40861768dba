// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// What memory has done: the place is free, and with `store` now is the time for the answer.
///
/// Behaviour: a frame that waits for memory is put beside its place. done_* says that memory has a place's value: the place is given back, and
/// the frame goes out if one waits, at once if nothing waits and nothing is in the way (block_i).
/// Latency: done_valid_i to free_o and send_valid_o 0 cycles, if block_i is low.
/// Reset: forgets everything.
/// Requirements: a frame is put before its place is done.
module kv_deferred
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire         put_i,
    input wire place_t put_place_i,
    input wire send_t  put_send_i,

    input wire           done_valid_i,
    // verilator lint_off UNUSEDSIGNAL  // but for the place and two bits
    input wire job_tag_t done_tag_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire           block_i,       // no frame can leave now

    output logic   free_o,
    output place_t freed_o,
    output logic   send_valid_o,
    output send_t  send_o
);

  logic done_valid, waits, waiting_answer, answer, ready;
  place_t waiting_place;
  // verilator lint_off UNUSEDSIGNAL
  logic [6:0] count;
  logic almost_full;
  // verilator lint_on UNUSEDSIGNAL
  assign done_valid   = done_valid_i && !done_tag_i[TagNobody];
  assign freed_o      = waits ? waiting_place : place_t'(done_tag_i);
  assign answer       = waits ? waiting_answer : done_tag_i[TagAnswer];
  assign free_o       = (waits || done_valid) && !(answer && block_i);
  assign send_valid_o = free_o && answer;
  stream_fifo #(
      .Width(1 + $bits(place_t)),
      .Depth(64)
  ) i_done (
      .clk_i,
      .rst_i,
      .s_valid(done_valid && (waits || !free_o)),
      .s_ready(ready),
      .s_payload({done_tag_i[TagAnswer], place_t'(done_tag_i)}),
      .m_valid(waits),
      .m_ready(waits && free_o),
      .m_payload({waiting_answer, waiting_place}),
      .count_o(count),
      .almost_full_o(almost_full)
  );
  lutram #(
      .Width($bits(send_t)),
      .Depth(Places)
  ) i_frames (
      .clk_i,
      .write_i(put_i),
      .write_address_i(put_place_i),
      .write_data_i(put_send_i),
      .read_address_i(freed_o),
      .read_data_o(send_o)
  );

  `ASSERT(room_for_done, !done_valid_i || ready, "memory did more than there are places")

endmodule
`default_nettype wire
