// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Queues the memory jobs in order, and makes the bursts of the first job.
///
/// Behaviour: a value is cut into pieces of 2^piece_bits words, one burst each. Piece j of location x = {bucket, way}
/// is at value_base + 1024 x + 64 j 2^piece_bits, and uses channel (j + x) mod Channels. Only the words that the length
/// needs are transferred. A line is at line_base + 64 bucket, with 16 bytes per way, and uses channel bucket mod
/// Channels. A write changes one way, or clears the whole line. Jobs start in order. A read waits while an earlier
/// write of its group is in flight, and a write while a read of its group is. So each job sees exactly the results of
/// earlier jobs (kv_hazards). The first job makes one burst per cycle: those of the value, then the way's.
/// `kv_value_write` gets a piece for each write burst.
/// Latency: 1 cycle from a job to read_valid or write_valid.
/// Paths: job.write to job_ready; read_ready, write_ready and piece_ready to read_begin_o; piece_ready to write_valid.
/// Reset: forgets everything.
/// Requirements: bases are multiples of 4096, and change only while there are no jobs.
module kv_jobs
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The most queued jobs; a power of two.
    parameter int unsigned Jobs = 32,
    /// The most writes that are queued or in flight; a power of two.
    parameter int unsigned Writes = 32,
    /// The most reads in flight; a power of two.
    parameter int unsigned Reads = 64
) (
    input wire clk_i,
    input wire rst_i,

    input wire address_t line_base_i,
    input wire address_t value_base_i,

    input  wire              job_valid,
    output logic             job_ready,
    input  wire memory_job_t job,
    /// In the previous cycle there was room for six jobs, three of which write.
    output logic             job_room_o,

    /// A line of this group must not be fetched, because a write to it is queued or in flight. One cycle later.
    input  wire group_t fill_group_i,
    output logic        fill_wait_o,

    output ring_t writes_o,
    input  wire   write_end_i,

    /// The read of a value begins, in place reads_o.put.
    output ring_t    reads_o,
    output logic     read_begin_o,
    output reading_t reading_o,
    input  wire      read_end_i,

    // Requests to the channels.
    output logic         [Channels-1:0] read_valid,
    input  wire          [Channels-1:0] read_ready,
    output read_piece_t                 read,
    output logic         [Channels-1:0] write_valid,
    input  wire          [Channels-1:0] write_ready,
    output write_burst_t                write,
    /// Valid with write_valid and write_ready.
    output piece_t                      piece,
    input  wire          [Channels-1:0] piece_ready
);

  if (Channels != 1 && Channels != 2 && Channels != 4) begin : gen_check_channels
    $fatal(1, "Channels must be 1, 2 or 4 in %m");
  end

  localparam int unsigned BeatBits = $clog2(ValueBeats);
  localparam int unsigned BurstBits = piece_bits(Channels);
  localparam int unsigned BurstWords = 2 ** BurstBits;
  localparam int unsigned NumberBits = BeatBits - BurstBits;  // of a piece's number in its value
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);

  typedef logic [ChannelBits-1:0] channel_t;
  // verilator lint_off UNUSEDSIGNAL
  function automatic channel_t channel_of(logic [1:0] number);
    return Channels == 1 ? '0 : channel_t'(number);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // The part of a job that the queue keeps.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic has_words;
    logic [NumberBits-1:0] last_number;  // of its pieces
    logic [2:0] last_words;  // of that one, less 1
    logic has_header;
    logic clears;
    place_t place;
    job_index_t index;  // of the write
  } queued_t;

  // ---- jobs in

  logic queue_ready, queue_almost_full, write_room, head_valid, head_take, head_wait;
  logic [BeatBits-1:0] put_last;
  queued_t put, head;
  claim_t claim;

  assign job_ready = queue_ready && !(job.write && writes_o.full);
  // In a register, because many signals depend on it.
  always_ff @(posedge clk_i) job_room_o <= !queue_almost_full && write_room && !rst_i;
  assign put_last = last_word(job);
  assign put = '{
          write: job.write,
          bucket: job.bucket,
          way: job.way,
          has_words: has_words(job),
          last_number: put_last[BeatBits-1:BurstBits],
          last_words: 3'(put_last[BurstBits-1:0]),
          has_header: job.write && job.has_header,
          clears: job.clears,
          place: job.place,
          index: writes_o.put
      };
  assign claim = '{
          put: job_valid && job_ready,
          write: job.write,
          words: put.has_words,
          group: group_of(job.bucket)
      };

  stream_fifo_level #(
      .Width($bits(queued_t)),
      .Depth(Jobs),
      .AlmostFull(Jobs - 6),
      .Block(1'b0)
  ) i_queue (
      .*,
      .s_valid(job_valid && !(job.write && writes_o.full)),
      .s_ready(queue_ready),
      .s_payload(put),
      .m_valid(head_valid),
      .m_ready(head_take),
      .m_payload(head),
      .almost_full_o(queue_almost_full)
  );

  kv_hazards #(
      .Jobs  (Jobs),
      .Writes(Writes),
      .Reads (Reads)
  ) i_hazards (
      .*,
      .claim_i(claim),
      .write_room_o(write_room),
      .head_write_i(head.write),
      .head_take_i(head_take),
      .head_wait_o(head_wait),
      .read_begin_i(read_begin_o)
  );

  // ---- the first job: one burst per cycle, first the value's bursts, then the way's

  logic [NumberBits-1:0] number_q;  // of the piece
  logic asked_q;  // for all of the value
  logic value_step, value_last, step;
  `YOSYS_KEEP
  channel_t channel;
  logic [2:0] value_words;  // less 1
  address_t value_address, line_address;

  assign value_step = head.has_words && !asked_q;
  assign value_last = number_q == head.last_number;
  assign channel = channel_of(value_step ? head.way + 2'(number_q) : head.bucket[1:0]);
  assign value_words = value_last ? head.last_words : 3'(BurstWords - 1);
  assign value_address = {value_base_i[AddressBits-1:12] + head.bucket, head.way, number_q, (BurstBits + 6)'(0)};
  assign line_address = {
    line_base_i[AddressBits-1:12] + (AddressBits - 12)'(head.bucket[$bits(bucket_t)-1:6]),
    head.bucket[5:0],
    head.way[1] && !head.clears,
    5'd0
  };
  assign read = '{address: value_address, words: value_words, first: number_q == '0};
  assign write = '{
          address: value_step ? value_address : line_address,
          words: value_step ? value_words : '0,
          way: !value_step && !head.clears
      };
  assign piece = '{
          way: !value_step,
          index: head.index,
          place: head.place,
          number: 2'(number_q),
          words: write.words
      };
  assign reading_o = '{way: head.way, last: {head.last_number, head.last_words[BurstBits-1:0]}};

  // The signal that the job's group must wait is late, so it is combined last. `keep` stops Yosys from splitting a LUT
  // into two or three small ones, which it rates as cheaper.
  `YOSYS_KEEP
  logic read_may, write_may, read_able, write_able, nothing, step_last;
  `YOSYS_KEEP
  logic [Channels-1:0] write_open;
  assign read_may   = head_valid && !head.write && value_step && !(reads_o.full && read.first);
  assign write_may  = head_valid && head.write && (value_step || head.has_header);
  assign read_able  = read_may && read_ready[channel];
  assign write_open = write_ready & piece_ready;
  assign write_able = write_may && write_open[channel];
  always_comb begin
    read_valid = '0;
    write_valid = '0;
    read_valid[channel] = read_may && !head_wait;
    write_valid[channel] = write_may && piece_ready[channel] && !head_wait;
  end

  assign step         = (read_able || write_able) && !head_wait;
  assign step_last    = value_step ? value_last && !head.has_header : 1'b1;
  assign nothing      = head_valid && !value_step && !head.has_header;
  assign head_take    = nothing || (step && step_last);
  assign read_begin_o = read_able && !head_wait && read.first;

  always_ff @(posedge clk_i) begin
    if (step) begin
      number_q <= number_q + 1'b1;
      asked_q  <= value_last;
    end
    if (head_take || rst_i) begin
      number_q <= '0;
      asked_q  <= 1'b0;
    end
  end

  `ASSERT(length_right, !job_valid || job.length <= 11'(MaxValueBytes), "a value is too long")
  `ASSERT(line_base_aligned, line_base_i[11:0] == '0, "lines begin within a page")
  `ASSERT(value_base_aligned, value_base_i[11:0] == '0, "values begin within a page")

endmodule
`default_nettype wire
