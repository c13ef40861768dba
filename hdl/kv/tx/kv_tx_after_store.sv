// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// What memory has done: the place is free, and with `store` now is the time for the answer.
///
/// Behaviour: done_* says that memory has a place's value. If no answer waits for that, the place is given back. Else the answer, which
/// kv_tx_records keeps beside the place, goes among the frames to send, at once if nothing waits before it and answer_ready is high; the
/// place is given back when it has been read (sent_i). With dead_i nothing is answered.
/// Latency: done_valid_i to answer_valid 0 cycles; to free_o, if no answer waits and sent_i is low, 0.
/// Reset: forgets everything.
/// Requirements: none.
module kv_tx_after_store
  import kv_core_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire           done_valid_i,
    // verilator lint_off UNUSEDSIGNAL  // but for the place and two bits
    input wire job_tag_t done_tag_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire           dead_i,

    output logic        answer_valid,
    input  wire         answer_ready,
    output place_t      answer_place,
    /// The answer beside this place is on its way.
    input  wire         sent_i,
    input  wire place_t sent_place_i,

    output logic   free_o,
    output place_t freed_o
);

  logic done_valid, waiting_answer, answer, ready;
  // Kept, since what leads to them is early or late.
  `YOSYS_KEEP
  logic waits, leaves;
  place_t waiting_place;
  // verilator lint_off UNUSEDSIGNAL
  logic [6:0] count;
  logic almost_full;
  // verilator lint_on UNUSEDSIGNAL
  assign done_valid   = done_valid_i && !done_tag_i[TagNobody];
  assign answer       = (waits ? waiting_answer : done_tag_i[TagAnswer]) && !dead_i;
  assign answer_place = waits ? waiting_place : place_t'(done_tag_i);
  assign leaves       = answer ? answer_ready : !sent_i;
  assign answer_valid = (waits || done_valid) && answer;
  assign free_o       = sent_i || ((waits || done_valid) && !answer);
  assign freed_o      = sent_i ? sent_place_i : answer_place;
  stream_fifo #(
      .Width(1 + $bits(place_t)),
      .Depth(64)
  ) i_done (
      .clk_i,
      .rst_i,
      .s_valid(done_valid && (waits || !leaves)),
      .s_ready(ready),
      .s_payload({done_tag_i[TagAnswer], place_t'(done_tag_i)}),
      .m_valid(waits),
      .m_ready(leaves),
      .m_payload({waiting_answer, waiting_place}),
      .count_o(count),
      .almost_full_o(almost_full)
  );

  `ASSERT(room_for_done, !done_valid_i || ready, "memory did more than there are places")

endmodule
`default_nettype wire
