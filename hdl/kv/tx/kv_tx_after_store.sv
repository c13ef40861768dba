// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Handles memory's reports that a place is stored: frees the place or, with `store`, first sends its waiting answer.
///
/// Behaviour: job_done_i reports that memory has a place's value. If no answer waits for it, the place is freed.
/// Otherwise the answer, which kv_tx_records stores under the place, joins the frames to send: at once if no other one
/// is before it and answer_ready is high. The place is freed when the answer has been read (sent_i). With dead_i there
/// is no answer.
/// Latency: job_done_i to answer_valid 0 cycles; to free_o, if no answer waits and sent_i is low, 0.
/// Reset: forgets everything.
/// Requirements: none.
module kv_tx_after_store
  import kv_core_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // but for the place and two bits
    input wire job_done_t job_done_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire            dead_i,

    output logic             answer_valid,
    input  wire              answer_ready,
    output place_t           answer_place,
    /// The answer stored under this place is being sent.
    input  wire free_place_t sent_i,

    output free_place_t free_o
);

  logic done_valid, waiting_answer, answer, ready;
  // YOSYS_KEEP, because the signals that lead to them are early or late.
  `YOSYS_KEEP
  logic waits, leaves;
  place_t waiting_place, done_place;
  assign done_valid   = job_done_i.done && !job_done_i.tag[TagNobody];
  assign done_place   = place_t'(job_done_i.tag);
  assign answer       = (waits ? waiting_answer : job_done_i.tag[TagAnswer]) && !dead_i;
  assign answer_place = waits ? waiting_place : done_place;
  assign leaves       = answer ? answer_ready : !sent_i.valid;
  assign answer_valid = (waits || done_valid) && answer;
  assign free_o.valid = sent_i.valid || ((waits || done_valid) && !answer);
  assign free_o.place = sent_i.valid ? sent_i.place : answer_place;
  stream_fifo #(
      .Width(1 + $bits(place_t)),
      .Depth(64)
  ) i_done (
      .*,
      .s_valid  (done_valid && (waits || !leaves)),
      .s_ready  (ready),
      .s_payload({job_done_i.tag[TagAnswer], done_place}),
      .m_valid  (waits),
      .m_ready  (leaves),
      .m_payload({waiting_answer, waiting_place})
  );

  `ASSERT(room_for_done, !job_done_i.done || ready, "memory did more than there are places")

endmodule
`default_nettype wire
