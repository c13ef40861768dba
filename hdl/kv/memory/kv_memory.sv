// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// The memory side of the kv core: lines with a cache, values, and the memory ports.
///
/// Behaviour: lines (kv_line_cache) have priority over values. Values are read out at word_* in the order of their
/// jobs. An empty value gives no word. A write takes its value from the pool while the parser may still fill it.
/// `job_done_o` comes in job order, when memory has answered for the whole job. A read sees the writes of all earlier
/// jobs and no later one (kv_jobs). Each of the Channels ports (kv_axi_port) reaches every address, and kv_jobs assigns
/// the port. `error_o` rises when memory answers with an error, and stays until clear_i.
/// Latency: 2 cycles from a job (a read, with nothing else in progress) to ARVALID; from a word's second beat at R to
/// word_* 1 (ReadDepth up to 64, in LUTs) or 2 (in block RAM); 4 from a write's job to WVALID; 0 from memory's last
/// answer to job_done_o. For a missing line: 4 from lookup_i to ARVALID, 2 from its second beat at R to here_o.
/// Paths: job.write to job_ready; BVALID to job_done_o; word_ready to no output.
/// Reset: forgets everything and empties the cache. Outstanding memory answers must have arrived before reset ends.
/// Requirements: bases are multiples of 4096, and change only when idle. `line_write_i` comes at the earliest one cycle
/// after the job for the same line. A write keeps its place of the pool until job_done_o.
///
/// No deadlock: memory's answers are always taken. A value is requested only with reserved room, and lines bypass
/// values. Jobs start in order, so words in a return FIFO belong to values at least as old as any value that
/// waits for room. All pieces of the oldest value are requested or next. So progress depends only on the reader
/// of the word stream. A write waits only for earlier reads (and so for that reader), for memory, and for the
/// parser.
module kv_memory
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// Memory channels: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The cache has 2^LineCacheBits lines.
    parameter int unsigned LineCacheBits = 12,
    /// Words of values in flight per channel. A power of two, at least 8. Above 64 they are in block RAM.
    parameter int unsigned ReadDepth = 128,
    /// The most writes that are queued or in flight; a power of two.
    parameter int unsigned Writes = 32,
    /// The most values in flight; a power of two.
    parameter int unsigned Reads = 64
) (
    input wire clk_i,
    input wire rst_i,

    input  wire address_t line_base_i,
    input  wire address_t value_base_i,
    output logic          error_o,
    /// error_o, or an error in this cycle, which may belong to the answer for job_done_o.
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
    /// A write to the group looked up two cycles ago is queued (for at least one cycle) or in flight.
    output logic             group_busy_o,

    // Jobs: kv_jobs.
    input  wire                      job_valid,
    output logic                     job_ready,
    input  wire memory_job_t         job,
    /// The way's new header, for a job that has one.
    input  wire              [127:0] job_header_i,
    /// There is room for six jobs, three of which write.
    output logic                     job_room_o,
    output job_done_t                job_done_o,

    // Values that are read: kv_value_read.
    output logic         word_valid,
    input  wire          word_ready,
    output logic [511:0] word_data,
    output logic         value_begun_o,

    // Values that are written: kv_value_write.
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
    // A line has priority over a value. Its number of words is ignored.
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
