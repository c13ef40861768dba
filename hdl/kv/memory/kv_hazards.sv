// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Detects memory jobs that conflict: a value's read with a write of its bucket group, or a line's fill with a write.
///
/// Behaviour: jobs are queued and started in order. All writes are numbered, and so are all reads of values. Two tables
/// hold the numbers of each group's last write and last read. A new job gets the number of the last earlier job of its
/// group and of the other kind. At the head it waits (head_wait_o) while that job is in flight. A write is in flight
/// from its start until memory has answered, and a read from its start until its value is delivered. Both kinds end in
/// order, so it suffices to compare with the oldest number in flight. `fill_wait_o` uses the same method to report
/// whether a write of a group is queued or in flight. Numbers have 12 bits. So after 4096 jobs without one of its
/// group, a job may wait for a reused number. It waits longer than needed, but not for ever, because only jobs in
/// flight count.
/// Latency: head_wait_o covers jobs queued, started and ended before the cycle. `fill_wait_o` comes one cycle after the
/// question, and covers writes queued before it.
/// Reset: forgets everything.
/// Requirements: nothing is queued when full. Only present jobs start and end. At most Jobs jobs are
/// queued.
module kv_hazards
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// The most queued jobs; a power of two.
    parameter int unsigned Jobs = 32,
    /// The most writes that are queued or in flight; a power of two.
    parameter int unsigned Writes = 32,
    /// The most reads in flight; a power of two.
    parameter int unsigned Reads = 64,
    localparam int unsigned JobBits = $clog2(Jobs),
    localparam int unsigned WriteBits = $clog2(Writes),
    localparam int unsigned ReadBits = $clog2(Reads)
) (
    input wire clk_i,
    input wire rst_i,

    input  wire claim_t claim_i,
    /// There is room for three more writes.
    output logic        write_room_o,

    // The oldest job.
    input  wire  head_write_i,
    input  wire  head_take_i,
    output logic head_wait_o,

    /// The ring of all writes that are queued or in flight. Its oldest entry is the oldest write in flight.
    output ring_t writes_o,
    input  wire   write_end_i,

    /// The ring of reads in flight. `read_begin_i` starts the oldest queued read.
    output ring_t reads_o,
    input  wire   read_begin_i,
    input  wire   read_end_i,

    input  wire group_t fill_group_i,
    output logic        fill_wait_o
);

  localparam int unsigned NumberBits = 12;
  typedef logic [NumberBits-1:0] number_t;

  if (Jobs < 2 || 2 ** JobBits != Jobs) begin : gen_check_jobs
    $fatal(1, "Jobs must be a power of two and at least 2 in %m");
  end
  if (Writes < 4 || 2 ** WriteBits != Writes || Writes > MostJobs) begin : gen_check_writes
    $fatal(1, "Writes must be a power of two, 4 to 64, in %m");
  end
  if (Reads < 2 || 2 ** ReadBits != Reads || Reads > MostJobs) begin : gen_check_reads
    $fatal(1, "Reads must be a power of two, 2 to 64, in %m");
  end

  // ---- numbers: of the next job that is queued, and of the oldest job that has not ended

  number_t write_put_q, write_end_q, read_put_q, read_end_q;
  logic [WriteBits:0] written_q, started_q;  // writes that have not ended; of those, that were taken
  logic [  ReadBits:0] begun_q;  // reads that have not ended
  logic [ReadBits-1:0] read_begin_q;
  logic put_write, put_read, start;
  assign put_write = claim_i.put && claim_i.write;
  assign put_read = claim_i.put && !claim_i.write && claim_i.words;
  assign start = head_take_i && head_write_i;
  assign write_room_o = written_q < (WriteBits + 1)'(Writes - 2);
  assign writes_o = '{
          full: written_q[WriteBits],
          put: job_index_t'(write_put_q[WriteBits-1:0]),
          some: started_q != '0,
          oldest: job_index_t'(write_end_q[WriteBits-1:0])
      };
  assign reads_o = '{
          full: begun_q[ReadBits],
          put: job_index_t'(read_begin_q),
          some: begun_q != '0,
          oldest: job_index_t'(read_end_q[ReadBits-1:0])
      };

  always_ff @(posedge clk_i) begin
    if (put_write) write_put_q <= write_put_q + 1'b1;
    if (put_read) read_put_q <= read_put_q + 1'b1;
    if (write_end_i) write_end_q <= write_end_q + 1'b1;
    if (read_begin_i) read_begin_q <= read_begin_q + 1'b1;
    if (read_end_i) read_end_q <= read_end_q + 1'b1;
    if (put_write != write_end_i) written_q <= put_write ? written_q + 1'b1 : written_q - 1'b1;
    if (start != write_end_i) started_q <= start ? started_q + 1'b1 : started_q - 1'b1;
    if (read_begin_i != read_end_i) begun_q <= read_begin_i ? begun_q + 1'b1 : begun_q - 1'b1;
    if (rst_i) begin
      write_put_q  <= '0;
      write_end_q  <= '0;
      read_put_q   <= '0;
      read_begin_q <= '0;
      read_end_q   <= '0;
      written_q    <= '0;
      started_q    <= '0;
      begun_q      <= '0;
    end
  end

  // True if the job with this number is in flight, given the number of the oldest one and their count.
  function automatic logic under_way(number_t number, number_t oldest, logic [6:0] count);
    number_t ahead;
    ahead = number - oldest;
    return ahead[NumberBits-1:6] == '0 && {1'b0, ahead[5:0]} < count;
  endfunction

  // ---- the last job of each group and kind. A job writes its own number and reads the other kind's number

  number_t last, last_write;
  simple_dual_port_ram #(
      .Width(NumberBits),
      .Depth(2 * 2 ** GroupBits)
  ) i_last (
      .*,
      .write_i(put_write || put_read),
      .write_address_i({claim_i.write, claim_i.group}),
      .write_data_i(claim_i.write ? write_put_q : read_put_q),
      .read_i(1'b1),
      .read_address_i({!claim_i.write, claim_i.group}),
      .read_data_o(last)
  );
  simple_dual_port_ram #(
      .Width(NumberBits),
      .Depth(2 ** GroupBits)
  ) i_last_write (
      .*,
      .write_i(put_write),
      .write_address_i(claim_i.group),
      .write_data_i(write_put_q),
      .read_i(1'b1),
      .read_address_i(fill_group_i),
      .read_data_o(last_write)
  );
  assign fill_wait_o = under_way(last_write, write_end_q, 7'(written_q));

  // ---- the job that each job waits for, known one cycle after it was queued

  logic [JobBits-1:0] told_at_q, head_q;
  logic told_q, head_is_new;
  number_t kept, other;
  lutram #(
      .Width(NumberBits),
      .Depth(Jobs)
  ) i_others (
      .*,
      .write_i(told_q),
      .write_address_i(told_at_q),
      .write_data_i(last),
      .read_address_i(head_q),
      .read_data_o(kept)
  );
  assign head_is_new = told_q && told_at_q == head_q;
  assign other = head_is_new ? last : kept;
  assign head_wait_o = under_way(
      other, head_write_i ? read_end_q : write_end_q, head_write_i ? 7'(begun_q) : 7'(started_q)
  );

  always_ff @(posedge clk_i) begin
    told_q <= claim_i.put;
    if (told_q) told_at_q <= told_at_q + 1'b1;
    if (head_take_i) head_q <= head_q + 1'b1;
    if (rst_i) begin
      told_q    <= 1'b0;
      told_at_q <= '0;
      head_q    <= '0;
    end
  end

`ifndef SYNTHESIS
  logic [JobBits:0] jobs_q;
  number_t begins_q;  // the number of the next read that begins
  always_ff @(posedge clk_i) begin
    jobs_q <= jobs_q + (JobBits + 1)'(claim_i.put) - (JobBits + 1)'(head_take_i);
    if (read_begin_i) begins_q <= begins_q + 1'b1;
    if (rst_i) begin
      jobs_q   <= '0;
      begins_q <= '0;
    end
  end
`endif

  `ASSERT(write_room, !put_write || !writes_o.full, "a write was put in and there was no room")
  `ASSERT(job_taken_there, !head_take_i || jobs_q != '0, "a job was taken that is not there")
  `ASSERT(job_room, jobs_q <= (JobBits + 1)'(Jobs), "there are more jobs than there is room for")
  `ASSERT(write_ends_started, !write_end_i || writes_o.some, "a write ended that had not started")
  `ASSERT(read_room, !read_begin_i || !reads_o.full, "a read began and there was no room")
  `ASSERT(read_begins_put, !read_begin_i || begins_q != read_put_q, "a read began that was not put in")
  `ASSERT(read_ends_there, !read_end_i || reads_o.some, "a read ended that was not there")

endmodule
`default_nettype wire
