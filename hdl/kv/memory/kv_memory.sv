// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// The kv core's side of memory: lines with a cache, values, and the ports of memory.
///
/// Behaviour: lines (kv_line_cache) have priority over values. Read values come out in the order of their jobs at
/// word_*. A value of no bytes gives no word. A write takes its value from the pool, behind the parser that may still
/// fill it. job_done_o comes in the order of the jobs, when memory has answered for the whole job. A read shows the
/// writes of the jobs before it, and none of those after it (kv_jobs). Any of Channels ports (kv_axi_port) reaches any
/// address, and kv_jobs assigns them. error_o rises when memory answers with an error and stays until clear_i.
/// Latency: job in (a read, nothing else under way) to ARVALID 2 cycles; a word's second beat at R to word_* 1
/// (ReadDepth up to 64, in LUTs) or 2 (in block RAM); a write's job to WVALID 4; memory's last answer to job_done_o 0.
/// For a missing line: lookup_i to ARVALID 4 cycles, its second beat at R to here_o 2.
/// Paths: job.write to job_ready, BVALID to job_done_o, word_ready to nothing outside.
/// Reset: forgets everything, and empties the cache. Memory's outstanding answers must have come before it ends.
/// Requirements: bases are multiples of 4096 and change only when all is quiet. A line goes to the cache (line_write_i) in the cycle after the job
/// that takes it to memory is accepted, or later. A place of the pool stays its write's until job_done_o.
///
/// No deadlock: memory's answers are always taken. Values have reserved room before they are requested, and lines
/// bypass them. Jobs start in order, so the words in a return fifo belong to values that are not younger than any value
/// that waits for room in one. All pieces of the oldest value have been requested or are next. So only the taker of the
/// word stream decides. A write waits only for reads before it (which wait for that taker), for memory, and for the
/// parser.
module kv_memory
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// 2^n lines in the cache.
    parameter int unsigned LineCacheBits = 12,
    /// Words of values that may be in flight, for each channel. A power of two, at least 8. Above 64 in block RAM.
    parameter int unsigned ReadDepth = 128,
    /// Jobs that write, waiting or in progress; a power of two.
    parameter int unsigned Writes = 32,
    /// Values in flight; a power of two.
    parameter int unsigned Reads = 64
) (
    input wire clk_i,
    input wire rst_i,

    input  wire address_t line_base_i,
    input  wire address_t value_base_i,
    output logic          error_o,
    /// Error_o, or the error comes in this cycle. It may be the answer for job_done_o.
    output logic          fails_o,

    // Lines: kv_line_cache.
    input  wire              clear_i,
    output logic             clearing_o,
    input  wire want_t       announce_i,
    input  wire lookup_t     lookup_i,
    output found_t           found_o,
    input  wire want_t       want_i,
    output logic             here_o,
    input  wire line_write_t line_write_i,
    /// A write to the group of the look-up two cycles ago, put in a cycle ago or earlier, waits or is in flight.
    output logic             group_busy_o,

    // Jobs: kv_jobs.
    input  wire                      job_valid,
    output logic                     job_ready,
    input  wire memory_job_t         job,
    /// Of a job that has a header.
    input  wire              [127:0] job_header_i,
    /// Room for six jobs, three of which write.
    output logic                     job_room_o,
    output job_done_t                job_done_o,

    // Values that are read: kv_value_read.
    output logic         word_valid,
    input  wire          word_ready,
    output logic [511:0] word_data,
    output logic         value_begun_o,

    // Those that are written.
    output pool_read_t            pool_read_o,
    input  wire           [511:0] pool_data_i,
    input  wire filling_t         filling_i,

    output memory_req_t       [Channels-1:0] m_axi_req,
    input  wire memory_resp_t [Channels-1:0] m_axi_resp
);

  // ---- lines

  group_t fill_group;
  logic [Channels-1:0] fill_valid, fill_ready, line_valid, line_ready;
  fill_t fill;
  filled_line_t [Channels-1:0] line;
  kv_line_cache #(
      .LineCacheBits(LineCacheBits),
      .Channels(Channels)
  ) i_lines (
      .*,
      .fill_group_o(fill_group),
      .fill_wait_i (group_busy_o)
  );

  // ---- jobs

  logic read_begin, read_end, write_put;
  reading_t reading;
  ring_t writes, reads;
  logic [Channels-1:0] value_valid, write_valid, write_ready, piece_ready, write_done;
  `YOSYS_KEEP
  logic [Channels-1:0] value_ready;
  read_piece_t value;
  write_burst_t write;
  piece_t piece;
  assign write_put = job_valid && job_ready && job.write;
  kv_jobs #(
      .Channels(Channels),
      .Writes(Writes),
      .Reads(Reads)
  ) i_jobs (
      .*,
      .fill_group_i(fill_group),
      .fill_wait_o(group_busy_o),
      .writes_o(writes),
      .write_end_i(job_done_o.done),
      .reads_o(reads),
      .read_begin_o(read_begin),
      .reading_o(reading),
      .read_end_i(read_end),
      .read_valid(value_valid),
      .read_ready(value_ready),
      .read(value)
  );

  kv_write_end #(
      .Channels(Channels),
      .Writes  (Writes)
  ) i_write_end (
      .*,
      .put_i(write_put),
      .job_i(job),
      .writes_i(writes),
      .write_done_i(write_done),
      .done_o(job_done_o)
  );

  // ---- values

  logic [Channels-1:0] channel_valid, channel_ready, channel_begun, data_valid, data_ready;
  logic [Channels-1:0][511:0] channel_data;
  write_word_t data;
  kv_value_read #(
      .Channels(Channels),
      .Reads(Reads)
  ) i_value_read (
      .*,
      .reads_i(reads),
      .read_begin_i(read_begin),
      .reading_i(reading),
      .read_end_o(read_end),
      .channel_begun_i(channel_begun)
  );

  kv_value_write #(
      .Channels(Channels),
      .Writes  (Writes)
  ) i_value_write (
      .*,
      .put_i(write_put),
      .job_i(job),
      .header_i(job_header_i),
      .index_i(writes.put),
      .piece_valid(write_valid & write_ready)
  );

  // ---- the ports

  logic [Channels-1:0] errors;
  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
    // A line goes before a value. How many words it has is not looked at.
    logic read_ready;
    read_burst_t read;
    assign fill_ready[c] = read_ready;
    assign value_ready[c] = read_ready && !fill_valid[c];
    assign read = '{
            address: fill_valid[c] ? fill.address : value.address,
            words: value.words,
            first: value.first,
            line: fill_valid[c],
            tag: fill.tag
        };

    kv_axi_port #(
        .ReadDepth (ReadDepth),
        .WriteDepth(32)
    ) i_port (
        .*,
        .read_valid(fill_valid[c] || value_valid[c]),
        .word_valid(channel_valid[c]),
        .word_ready(channel_ready[c]),
        .word_data(channel_data[c]),
        .begun_o(channel_begun[c]),
        .line_valid(line_valid[c]),
        .line_ready(line_ready[c]),
        .line(line[c]),
        .write_valid(write_valid[c]),
        .write_ready(write_ready[c]),
        .data_valid(data_valid[c]),
        .data_ready(data_ready[c]),
        .write_done_o(write_done[c]),
        .error_o(errors[c]),
        .m_axi_req(m_axi_req[c]),
        .m_axi_resp(m_axi_resp[c])
    );
  end

  assign fails_o = error_o || |errors;
  always_ff @(posedge clk_i) begin
    if (|errors) error_o <= 1'b1;
    if (rst_i || clear_i) error_o <= 1'b0;
  end

endmodule
`default_nettype wire
