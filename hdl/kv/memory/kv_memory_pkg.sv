// SPDX-License-Identifier: Apache-2.0
/// Types that the blocks of kv_memory exchange: docs/design/kv-core.md.
package kv_memory_pkg;

  import kv_frame_pkg::*;
  import kv_core_pkg::*;

  // Each module that uses the package uses only a part of it.
  /* verilator lint_off UNUSEDPARAM */

  // ---- jobs

  /// The largest number of jobs of one kind in progress, and a job's index among them.
  localparam int unsigned MostJobs = 64;
  typedef logic [$clog2(MostJobs)-1:0] job_index_t;

  /// A ring of places, which jobs occupy and free in order.
  typedef struct packed {
    logic full;
    job_index_t put;  // the next place that is taken
    logic some;  // there is an oldest job
    job_index_t oldest;  // its place
  } ring_t;

  /// The properties of a new job that matter for its group.
  typedef struct packed {
    logic   put;
    logic   write;
    logic   words;  // of a read: it has some. One that has none gets in nobody's way
    group_t group;
  } claim_t;

  /// True if a value with words is transferred for the job.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic has_words(memory_job_t job);
    return job.length != '0 && !(job.write && !job.has_value);
  endfunction
  /// The index of the value's last word.
  function automatic logic [$clog2(ValueBeats)-1:0] last_word(memory_job_t job);
    logic [10:0] end_;
    end_ = job.length - 1'b1;
    return end_[$clog2(BeatBytes)+:$clog2(ValueBeats)];
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// A value's piece (one burst) has 2^piece_bits words. A small piece can begin before the value is complete.
  function automatic int unsigned piece_bits(int unsigned channels);
    return channels == 1 ? 3 : 2;
  endfunction

  /// A value that is being read, in order.
  typedef struct packed {
    logic [1:0] way;
    logic [$clog2(ValueBeats)-1:0] last;  // word
  } reading_t;

  /// A burst to write, as described to the source of its words.
  typedef struct packed {
    logic way;  // of a line: the write's header, not words of a value
    job_index_t index;  // of the write
    place_t place;
    logic [1:0] number;  // of the piece in its value
    logic [2:0] words;  // less 1
  } piece_t;

  // ---- the ports of memory: kv_axi_port

  /// The largest number of lines in flight, and the index of one.
  localparam int unsigned MostFills = 16;
  typedef logic [$clog2(MostFills)-1:0] fill_tag_t;

  /// A request for a line.
  typedef struct packed {
    address_t  address;
    fill_tag_t tag;
  } fill_t;
  /// A line that arrives.
  typedef struct packed {
    fill_tag_t tag;
    logic [511:0] data;
  } filled_line_t;

  /// A piece of a value to read: 1 to 8 words of 64 bytes.
  typedef struct packed {
    address_t address;
    logic [2:0] words;  // less 1
    logic first;  // of the value
  } read_piece_t;
  /// A burst to read: a piece of a value, or a line.
  typedef struct packed {
    address_t address;
    logic [2:0] words;  // less 1; not looked at with `line`
    logic first;  // of a value
    logic line;
    fill_tag_t tag;  // of a line
  } read_burst_t;

  /// A burst to write: 1 to 8 words of 64 bytes, or one beat.
  typedef struct packed {
    address_t address;
    logic [2:0] words;  // less 1
    logic way;  // one beat, which is half a word: 16 bytes are written
  } write_burst_t;

  /// A word of a write burst: two beats, or one beat for a way.
  typedef struct packed {
    logic [511:0] data;
    logic last;  // of the burst
    logic is_way;  // not `data`, but this:
    logic [127:0] way;
    logic odd;  // in the upper half of its beat
    logic clear;  // two beats of zeros; is_way, and `way` is 0
  } write_word_t;

  /* verilator lint_on UNUSEDPARAM */

endpackage
