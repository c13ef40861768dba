// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Which groups of buckets memory is being read and written in.
///
/// Behaviour: a write is put in when its job is queued, starts when the memory is asked, and ends when the memory has answered; writes start and end in
/// the order in which they were put in. A value's read is put in when the memory is asked, and ends, in order, when the value has been delivered. Three questions
/// are answered: is any write of fill_group_i here (then no line may be fetched); of job_group_i, has any write
/// started (then no value may be read), is any read on its way (then nothing may be written).
/// Latency: answers in the same cycle, of what was put in, started and ended before it.
/// Reset: forgets everything.
/// Requirements: nothing is put in that is full; starts and ends only what is there.
module kv_tracker
  import kv_core_pkg::*;
#(
    /// Writes, queued or under way; a power of two.
    parameter int unsigned Writes = 32,
    /// Reads on their way; a power of two.
    parameter int unsigned Reads = 64,
    localparam int unsigned WriteBits = $clog2(Writes),
    localparam int unsigned ReadBits = $clog2(Reads)
) (
    input wire clk_i,
    input wire rst_i,

    output logic                        write_full_o,
    /// There is room for two.
    output logic                        write_room_o,
    input  wire                         write_put_i,
    input  wire group_t                 write_put_group_i,
    /// Its place, until it ends.
    output logic        [WriteBits-1:0] write_put_index_o,
    /// The oldest that has not started.
    input  wire                         write_start_i,
    /// The oldest has started.
    output logic                        write_started_o,
    output logic        [WriteBits-1:0] write_end_index_o,
    input  wire                         write_end_i,

    output logic                read_full_o,
    /// In job_group_i.
    input  wire                 read_put_i,
    output logic [ReadBits-1:0] read_put_index_o,
    output logic                read_there_o,
    output logic [ReadBits-1:0] read_end_index_o,
    input  wire                 read_end_i,

    input  wire group_t fill_group_i,
    output logic        fill_wait_o,
    input  wire group_t job_group_i,
    output logic        job_read_wait_o,
    output logic        job_write_wait_o
);

  if (Writes < 2 || 2 ** WriteBits != Writes) begin : gen_check_writes
    $fatal(1, "Writes must be a power of two and at least 2 in %m");
  end
  if (Reads < 2 || 2 ** ReadBits != Reads) begin : gen_check_reads
    $fatal(1, "Reads must be a power of two and at least 2 in %m");
  end

  // Both are lists, the newest first, that shift when something is put in: no decoders. What is there, and of the writes
  // what has not started, are the first so many places: bits that shift up and down.

  logic [Writes-1:0] write_q, waiting_q;
  logic [Writes-1:0][GroupBits-1:0] write_group_q;
  logic [WriteBits-1:0] write_put_q, write_end_q;
  logic [WriteBits:0] started_q;  // writes

  assign write_full_o      = write_q[Writes-1];
  assign write_room_o      = !write_q[Writes-2];
  assign write_put_index_o = write_put_q;
  assign write_started_o   = started_q != '0;
  assign write_end_index_o = write_end_q;

  always_ff @(posedge clk_i) begin
    if (write_put_i) begin
      write_group_q <= {write_group_q[Writes-2:0], write_put_group_i};
      write_put_q   <= write_put_q + 1'b1;
    end
    if (write_put_i != write_end_i) begin
      write_q <= write_put_i ? {write_q[Writes-2:0], 1'b1} : {1'b0, write_q[Writes-1:1]};
    end
    if (write_put_i != write_start_i) begin
      waiting_q <= write_put_i ? {waiting_q[Writes-2:0], 1'b1} : {1'b0, waiting_q[Writes-1:1]};
    end
    if (write_start_i != write_end_i) started_q <= write_start_i ? started_q + 1'b1 : started_q - 1'b1;
    if (write_end_i) write_end_q <= write_end_q + 1'b1;
    if (rst_i) begin
      write_q     <= '0;
      waiting_q   <= '0;
      started_q   <= '0;
      write_put_q <= '0;
      write_end_q <= '0;
    end
  end

  logic [Reads-1:0] read_q;
  logic [Reads-1:0][GroupBits-1:0] read_group_q;
  logic [ReadBits-1:0] read_put_q, read_end_q;

  assign read_full_o      = read_q[Reads-1];
  assign read_put_index_o = read_put_q;
  assign read_there_o     = read_q[0];
  assign read_end_index_o = read_end_q;

  always_ff @(posedge clk_i) begin
    if (read_put_i) begin
      read_group_q <= {read_group_q[Reads-2:0], job_group_i};
      read_put_q   <= read_put_q + 1'b1;
    end
    if (read_put_i != read_end_i) begin
      read_q <= read_put_i ? {read_q[Reads-2:0], 1'b1} : {1'b0, read_q[Reads-1:1]};
    end
    if (read_end_i) read_end_q <= read_end_q + 1'b1;
    if (rst_i) begin
      read_q     <= '0;
      read_put_q <= '0;
      read_end_q <= '0;
    end
  end

  // Compared by threes of bits, since two threes are a LUT; kept apart, or Yosys finds worse. Whether any matches is the
  // carry of match - 1 + 2^n: a carry chain is shorter than a tree of LUTs.
  localparam int unsigned Threes = (GroupBits + 2) / 3;
  typedef logic [3*Threes-1:0] padded_t;

  (* keep *)
  logic [Writes-1:0][Threes-1:0] fill_equal, job_equal;
  (* keep *)
  logic [Reads-1:0][Threes-1:0] read_equal;
  logic [Writes-1:0] fill_match, started_match;
  logic [Reads-1:0] read_match;
  padded_t fill_padded, job_padded;
  padded_t [Writes-1:0] write_padded;
  padded_t [ Reads-1:0] read_padded;
  assign fill_padded = padded_t'(fill_group_i);
  assign job_padded  = padded_t'(job_group_i);
  always_comb begin
    for (int i = 0; i < int'(Writes); i++) begin
      write_padded[i] = padded_t'(write_group_q[i]);
      for (int j = 0; j < int'(Threes); j++) begin
        fill_equal[i][j] = write_padded[i][3*j+:3] == fill_padded[3*j+:3];
        job_equal[i][j]  = write_padded[i][3*j+:3] == job_padded[3*j+:3];
      end
      fill_match[i]    = write_q[i] && &fill_equal[i];
      started_match[i] = write_q[i] && !waiting_q[i] && &job_equal[i];
    end
    for (int i = 0; i < int'(Reads); i++) begin
      read_padded[i] = padded_t'(read_group_q[i]);
      for (int j = 0; j < int'(Threes); j++) read_equal[i][j] = read_padded[i][3*j+:3] == job_padded[3*j+:3];
      read_match[i] = read_q[i] && &read_equal[i];
    end
  end
  logic [Writes:0] fill_carry, started_carry;
  logic [Reads:0] read_carry;
  assign fill_carry       = {1'b0, {Writes{1'b1}}} + {1'b0, fill_match};
  assign started_carry    = {1'b0, {Writes{1'b1}}} + {1'b0, started_match};
  assign read_carry       = {1'b0, {Reads{1'b1}}} + {1'b0, read_match};
  assign fill_wait_o      = fill_carry[Writes];
  assign job_read_wait_o  = started_carry[Writes];
  assign job_write_wait_o = read_carry[Reads];

  `ASSERT(write_room, !write_put_i || !write_full_o, "a write was put in and there was no room")
  `ASSERT(write_starts_there, !write_start_i || waiting_q[0], "no write could start")
  `ASSERT(write_ends_started, !write_end_i || write_started_o, "a write ended that had not started")
  `ASSERT(read_room, !read_put_i || !read_full_o, "a read was put in and there was no room")
  `ASSERT(read_ends_there, !read_end_i || read_there_o, "a read ended that was not there")

endmodule
`default_nettype wire
