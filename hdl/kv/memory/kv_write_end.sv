// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// Reports when memory has a whole write. The oldest write ends when each channel has answered for its part.
///
/// Behaviour: stores the tag of each write and its number of bursts on each channel (as kv_jobs cuts them), and counts
/// the channels' answers. `done_o` comes in the order of the writes.
/// Latency: memory's last answer to done_o 0 cycles.
/// Paths: write_done_i to done_o.
/// Reset: forgets everything.
/// Requirements: a channel answers only bursts that were written, in their order.
module kv_write_end
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// Memory channels: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The most writes that are queued or in flight; a power of two.
    parameter int unsigned Writes   = 32
) (
    input wire clk_i,
    input wire rst_i,

    /// Queues a job that writes.
    input wire              put_i,
    input wire memory_job_t job_i,
    // verilator lint_off UNUSEDSIGNAL  // `full`, and of places that there are not
    input wire ring_t       writes_i,
    // verilator lint_on UNUSEDSIGNAL

    input  wire       [Channels-1:0] write_done_i,
    output job_done_t                done_o
);

  localparam int unsigned WriteBits = $clog2(Writes);
  localparam int unsigned Pieces = ValueBeats >> piece_bits(Channels);

  // What ends a write: the number of answers from each channel.
  typedef struct packed {
    job_tag_t tag;
    logic [Channels-1:0][1:0] answers;
  } ending_t;

  ending_t put, oldest;
  logic [$clog2(ValueBeats)-1:0] put_last;
  assign put_last = last_word(job_i);
  always_comb begin
    put.tag     = job_i.tag;
    put.answers = '0;
    for (int j = 0; j < int'(Pieces); j++) begin
      if (has_words(job_i) && 32'(put_last >> piece_bits(Channels)) >= j) begin
        put.answers[32'(2'(job_i.way+2'(j)))%Channels] += 2'd1;
      end
    end
    if (job_i.has_header) put.answers[32'(job_i.bucket[1:0])%Channels] += 2'd1;
  end

  lutram #(
      .Width($bits(ending_t)),
      .Depth(Writes)
  ) i_endings (
      .*,
      .write_i(put_i),
      .write_address_i(WriteBits'(writes_i.put)),
      .write_data_i(put),
      .read_address_i(WriteBits'(writes_i.oldest)),
      .read_data_o(oldest)
  );

  // The number of answers that a write needs from a channel arrives late. So only two bits of the answer count and a
  // flag for a higher count are combined with it.
  localparam int unsigned AnswerBits = $clog2(3 * Writes + 1);
  logic [Channels-1:0][AnswerBits-1:0] answers_q;
  `YOSYS_KEEP
  logic [Channels-1:0] plenty;
  logic [Channels-1:0] answered;
  logic [Channels-1:0][2:0] change;  // of answers_q, with a sign
  always_comb begin
    for (int c = 0; c < int'(Channels); c++) begin
      plenty[c] = answers_q[c][AnswerBits-1:2] != '0;
      // Includes an answer in this cycle.
      case (oldest.answers[c])
        2'd0: answered[c] = 1'b1;
        2'd1: answered[c] = plenty[c] || answers_q[c][1:0] != '0 || write_done_i[c];
        2'd2: answered[c] = plenty[c] || answers_q[c][1] || (answers_q[c][0] && write_done_i[c]);
        default: answered[c] = plenty[c] || answers_q[c][1:0] == 2'd3 || (answers_q[c][1] && write_done_i[c]);
      endcase
    end
  end
  assign done_o = '{done: writes_i.some && &answered, tag: oldest.tag};

  always_comb begin
    for (int c = 0; c < int'(Channels); c++) begin
      case ({
        write_done_i[c], done_o.done ? oldest.answers[c] : 2'd0
      })
        3'b0_00, 3'b1_01: change[c] = 3'd0;
        3'b0_01, 3'b1_10: change[c] = -3'd1;
        3'b0_10, 3'b1_11: change[c] = -3'd2;
        3'b0_11: change[c] = -3'd3;
        default: change[c] = 3'd1;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    for (int c = 0; c < int'(Channels); c++) begin
      answers_q[c] <= answers_q[c] + AnswerBits'(signed'(change[c]));
    end
    if (rst_i) answers_q <= '0;
  end

endmodule
`default_nettype wire
