// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Matches the function's verdicts with the frames in place whose first beats it received, in order.
///
/// Behaviour: a frame to be forwarded is posted to its own queue's transmit ring. If the verdict has a new
/// first line, that line is replaced. A dropped or bad frame is posted with `skip`, so its slots return in
/// order. The same happens if the queue of a frame to be forwarded was stopped meanwhile (events_o.tx_late).
/// Latency: 0 from a verdict to m_valid.
/// Combinational paths: s_verdict_* to m_valid; s_verdict_ready from m_ready and m_line_ready.
/// Reset: discards the frames.
/// Requirements: one verdict for each beat at m_head, in the same order.
module bypass_verdicts
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Bits = Config.queue_bits + Config.rx_bits + SlotBits - LineBits
) (
    input wire clk_i,
    input wire rst_i,

    input wire [2**Config.queue_bits-1:0] run_i,

    input  wire         s_place_valid,
    output logic        s_place_ready,
    input  wire frame_t s_place_payload,

    input  wire               s_verdict_valid,
    output logic              s_verdict_ready,
    // verilator lint_off UNUSEDSIGNAL  // keep, last, and most of user
    input  wire bypass_axis_t s_verdict_payload,
    // verilator lint_on UNUSEDSIGNAL

    /// Replaces a line of the slots.
    output logic             m_line_valid,
    input  wire              m_line_ready,
    output logic  [Bits-1:0] m_line,
    output data_t            m_line_data,

    output logic  m_valid,
    input  wire   m_ready,
    output post_t m_payload,

    output events_t events_o
);

  // A waiting frame. `good` is stored because computing it after the queue would be too late in the cycle.
  typedef struct packed {
    queue_t pair;
    index_t index;
    bytes_t bytes;
    count_t slots;
    logic   good;
  } waiting_t;
  logic here, taken, good, run, forward, replace, decided;
  waiting_t came, frame;
  queue_t pair;
  assign pair = existing(frame.pair, Config);
  assign came = '{
          pair: s_place_payload.pair,
          index: s_place_payload.index,
          bytes: s_place_payload.bytes,
          slots: s_place_payload.slots,
          good: s_place_payload.verdict == Good
      };
  stream_fifo #(
      .Width($bits(waiting_t)),
      .Depth(32)
  ) i_places (
      .*,
      .s_valid  (s_place_valid),
      .s_ready  (s_place_ready),
      .s_payload(came),
      .m_valid  (here),
      .m_ready  (taken),
      .m_payload(frame)
  );

  always_comb begin
    run = 1'b0;
    for (int i = 0; i < 2 ** Config.queue_bits; i++) if (queue_t'(i) == pair) run = run_i[i];
  end
  assign good = frame.good;
  assign forward = good && s_verdict_payload.user[0] && run;
  assign replace = forward && s_verdict_payload.user[1];
  assign decided = here && (s_verdict_valid || !good);

  assign m_valid = decided && (!replace || m_line_ready);
  assign taken = m_valid && m_ready;
  assign m_payload = '{
          pair: pair,
          skip: !forward,
          in_place: 1'b1,
          slots: frame.slots,
          line: (WindowBits - LineBits)'(slot_offset(pair, frame.index, Config) >> LineBits),
          bytes: good ? frame.bytes : 14'd1  // whatever it is: nobody has read it
      };
  assign s_verdict_ready = here && good && taken;
  assign m_line_valid = decided && replace && m_ready;
  assign m_line = Bits'(slot_line(slot_offset(pair, frame.index, Config), Config));
  assign m_line_data = s_verdict_payload.data;

  logic judged;
  assign judged = s_verdict_valid && s_verdict_ready;
  always_comb begin
    events_o              = '0;
    events_o.tx_in        = 2'(judged && s_verdict_payload.user[0]);
    events_o.tx_late      = judged && s_verdict_payload.user[0] && !run;
    events_o.verdict_drop = judged && !s_verdict_payload.user[0];
  end

  logic waits;
  assign waits = s_verdict_valid && !s_verdict_ready;
  `ASSERT_NEXT(verdict_stays, waits, s_verdict_valid && s_verdict_payload == $past(s_verdict_payload),
               "a verdict changed before it was taken")
  `ASSERT(verdict_for_a_frame, !(s_verdict_valid && !here), "a verdict for no frame")

endmodule
`default_nettype wire
