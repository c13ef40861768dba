// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Reads and writes values, and writes ways of lines, in the order of its jobs.
///
/// Behaviour: a value is cut into bursts of BurstWords words; burst j of location x = {bucket, way} is at value_base + 1024 x + 64 BurstWords j and
/// travels on channel (j + x) mod Channels; only as many words as the length needs. A line is at line_base + 64 bucket, its ways 16 bytes each, and
/// travels on channel bucket mod Channels; a write changes one way, or clears all of it. Jobs start in order. A read waits while a write of its group has started and not ended; a write waits
/// while a read of its group is on its way: so each sees exactly what the jobs before it left. Values that are read come out in order at word_*; of a value
/// of no bytes, nothing. A write takes its value from the pool, behind the parser that may still fill it; done_o, in order,
/// when memory has answered for all of it.
/// Latency: job in to read_valid or write_valid 1 cycle; channel's word to word_* 0; word of the pool to data_valid 1 cycle after its read,
/// which is 2 after the job; memory's last answer to done_o 0.
/// Paths: word_valid and word_data from the channels', word_ready to the channels'; write_done_i to done_o; job.write to job_ready.
/// Reset: forgets everything.
/// Requirements: bases are multiples of 4096 and change only while there is no job. The place stays the write's until done_o.
///
/// No deadlock: jobs start in order, so the words in a return fifo are of values not younger than any that waits for room in one, and the
/// oldest value's bursts have all been asked for or are next: the word stream's taker alone decides. A write waits for reads before it
/// (which wait for that taker), for memory, and for the parser.
module kv_value_io
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// Jobs that wait; a power of two.
    parameter int unsigned Jobs = 32,
    /// Writes, waiting or under way; a power of two.
    parameter int unsigned Writes = 32,
    /// Reads on their way; a power of two.
    parameter int unsigned Reads = 64,
    localparam int unsigned BeatBits = $clog2(ValueBeats)
) (
    input wire clk_i,
    input wire rst_i,

    input wire address_t line_base_i,
    input wire address_t value_base_i,

    input  wire                      job_valid,
    output logic                     job_ready,
    /// A cycle ago there was room for six jobs, three of which write.
    output logic                     job_room_o,
    input  wire memory_job_t         job,
    /// With has_header.
    input  wire              [127:0] job_header,

    output logic     done_o,
    output job_tag_t done_tag_o,

    output logic         word_valid,
    input  wire          word_ready,
    output logic [511:0] word_data,
    output logic         word_first,
    output logic         word_last,
    /// A value has begun to arrive, in order: once for each that has words, when or before its first word is at word_valid.
    output logic         value_begun_o,

    output logic                       pool_read_o,
    output place_t                     pool_place_o,
    output logic        [BeatBits-1:0] pool_beat_o,
    input  wire         [       511:0] pool_data_i,
    input  wire                        filling_i,
    input  wire place_t                filling_place_i,
    input  wire         [  BeatBits:0] filled_i,

    /// No line of this group may be fetched: a write to it waits or is under way. A cycle later.
    input  wire group_t fill_group_i,
    output logic        fill_wait_o,

    // To the channels; what is not an array is for that whose valid is high.
    output logic     [Channels-1:0]        read_valid,
    input  wire      [Channels-1:0]        read_ready,
    output address_t                       read_address,
    output logic     [         2:0]        read_words,
    /// The first burst of a value.
    output logic                           read_first,
    input  wire      [Channels-1:0]        channel_valid,
    output logic     [Channels-1:0]        channel_ready,
    input  wire      [Channels-1:0][511:0] channel_data,
    /// The first word of a value has reached the channel's fifo.
    input  wire      [Channels-1:0]        channel_begun_i,
    output logic     [Channels-1:0]        write_valid,
    input  wire      [Channels-1:0]        write_ready,
    output address_t                       write_address,
    output logic     [         2:0]        write_words,
    output logic                           write_way,
    output logic     [Channels-1:0]        data_valid,
    input  wire      [Channels-1:0]        data_ready,
    output logic     [       511:0]        data,
    output logic                           data_last,
    /// The word is not `data`, but a way, or zeros: see kv_axi_port.
    output logic                           data_is_way,
    output logic     [       127:0]        data_way,
    output logic                           data_odd,
    output logic                           data_clear,
    input  wire      [Channels-1:0]        write_done_i
);

  if (Channels != 1 && Channels != 2 && Channels != 4) begin : gen_check_channels
    $fatal(1, "Channels must be 1, 2 or 4 in %m");
  end

  localparam int unsigned BurstWords = Channels == 1 ? 8 : 4;  // small ones begin while the rest still arrives
  localparam int unsigned BurstBits = $clog2(BurstWords);
  localparam int unsigned Bursts = ValueBeats / BurstWords;
  localparam int unsigned NumberBits = BeatBits - BurstBits;  // of a burst's number in its value
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);
  localparam int unsigned WriteBits = $clog2(Writes);
  localparam int unsigned ReadBits = $clog2(Reads);

  typedef logic [ChannelBits-1:0] channel_t;
  // verilator lint_off UNUSEDSIGNAL
  function automatic channel_t channel_of(logic [1:0] number);
    return Channels == 1 ? '0 : channel_t'(number);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // What the queue keeps of a job.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic has_value;
    logic [NumberBits-1:0] last_number;  // of its bursts
    logic [2:0] last_words;  // of that one, less 1
    logic has_header;
    logic clears;
    place_t place;
    logic [WriteBits-1:0] index;  // its place in the tracker
  } queued_t;

  // What is needed to end a write: its answers, by channel.
  typedef struct packed {
    job_tag_t tag;
    logic [Channels-1:0][1:0] answers;
  } ending_t;

  // ---- jobs in

  // verilator lint_off UNUSEDSIGNAL
  logic [$clog2(Jobs+1)-1:0] jobs_count;
  logic [Channels-1:0][5:0] feed_count;
  logic jobs_almost_full;
  logic [Channels-1:0] feed_almost_full;
  // verilator lint_on UNUSEDSIGNAL

  logic queue_ready, tracker_full, tracker_room, put, put_write;
  queued_t put_job, head;
  ending_t put_ending, ending;
  logic [WriteBits-1:0] put_index, end_index;
  logic [BeatBits-1:0] last_word;

  assign job_ready = queue_ready && !(job.write && tracker_full);
  assign put       = job_valid && job_ready;
  assign put_write = put && job.write;
  // In a register, since much depends on it.
  always_ff @(posedge clk_i) job_room_o <= !jobs_almost_full && tracker_room && !rst_i;
  assign last_word = BeatBits'((job.length - 1'b1) >> 6);
  always_comb begin
    put_job.write       = job.write;
    put_job.bucket      = job.bucket;
    put_job.way         = job.way;
    put_job.has_value   = job.length != '0 && !(job.write && !job.has_value);
    put_job.last_number = last_word[BeatBits-1:BurstBits];
    put_job.last_words  = 3'(last_word[BurstBits-1:0]);
    put_job.has_header  = job.write && job.has_header;
    put_job.clears      = job.clears;
    put_job.place       = job.place;
    put_job.index       = put_index;
  end
  always_comb begin
    put_ending.tag     = job.tag;
    put_ending.answers = '0;
    for (int j = 0; j < int'(Bursts); j++) begin
      if (put_job.has_value && put_job.last_number >= NumberBits'(j)) begin
        put_ending.answers[channel_of(job.way+2'(j))] += 2'd1;
      end
    end
    if (job.has_header) put_ending.answers[channel_of(job.bucket[1:0])] += 2'd1;
  end

  logic head_valid, head_take;
  stream_fifo #(
      .Width($bits(queued_t)),
      .Depth(Jobs),
      .AlmostFull(Jobs - 6),
      .Block(1'b0)
  ) i_jobs (
      .clk_i,
      .rst_i,
      .s_valid(job_valid && !(job.write && tracker_full)),
      .s_ready(queue_ready),
      .s_payload(put_job),
      .m_valid(head_valid),
      .m_ready(head_take),
      .m_payload(head),
      .count_o(jobs_count),
      .almost_full_o(jobs_almost_full)
  );

  lutram #(
      .Width($bits(ending_t)),
      .Depth(Writes)
  ) i_endings (
      .clk_i,
      .write_i(put_write),
      .write_address_i(put_index),
      .write_data_i(put_ending),
      .read_address_i(end_index),
      .read_data_o(ending)
  );

  logic fetch;  // of what is written
  logic [WriteBits-1:0] way_index;
  simple_dual_port_ram #(
      .Width(130),
      .Depth(Writes)
  ) i_ways (
      .clk_i,
      .write_i(put_write),
      .write_address_i(put_index),
      .write_data_i({job.clears, job.way[0], job_header}),
      .read_i(fetch),
      .read_address_i(way_index),
      .read_data_o({data_clear, data_odd, data_way})
  );

  logic write_started, write_end, reads_full, read_begin, read_there, read_end, head_wait;
  logic [ReadBits-1:0] read_begin_index, read_index;
  kv_hazards #(
      .Jobs  (Jobs),
      .Writes(Writes),
      .Reads (Reads)
  ) i_tracker (
      .clk_i,
      .rst_i,
      .put_i(put),
      .put_write_i(job.write),
      .put_words_i(put_job.has_value),
      .put_group_i(group_of(job.bucket)),
      .write_full_o(tracker_full),
      .write_room_o(tracker_room),
      .write_put_index_o(put_index),
      .head_write_i(head.write),
      .head_take_i(head_take),
      .head_wait_o(head_wait),
      .write_started_o(write_started),
      .write_end_index_o(end_index),
      .write_end_i(write_end),
      .read_full_o(reads_full),
      .read_begin_i(read_begin),
      .read_begin_index_o(read_begin_index),
      .read_there_o(read_there),
      .read_end_index_o(read_index),
      .read_end_i(read_end),
      .fill_group_i,
      .fill_wait_o
  );

  // ---- the first job: a burst a cycle, its value's, then its way's

  logic [NumberBits-1:0] number_q;  // of the burst
  logic asked_q;  // for all of the value
  logic value_step, value_last, step;
  `YOSYS_KEEP
  channel_t channel;
  logic [2:0] burst_words;  // less 1
  logic [Channels-1:0] feed_ready;

  assign value_step = head.has_value && !asked_q;
  assign value_last = number_q == head.last_number;
  assign channel    = channel_of(value_step ? head.way + 2'(number_q) : head.bucket[1:0]);
  always_comb begin
    burst_words = value_last ? head.last_words : 3'(BurstWords - 1);
    if (!value_step) burst_words = '0;
  end

  address_t value_address, line_address;
  assign value_address = {value_base_i[AddressBits-1:12] + head.bucket, head.way, number_q, (BurstBits + 6)'(0)};
  assign line_address = {
    line_base_i[AddressBits-1:12] + (AddressBits - 12)'(head.bucket[$bits(bucket_t)-1:6]),
    head.bucket[5:0],
    head.way[1] && !head.clears,
    5'd0
  };
  assign read_address = value_address;
  assign read_words = value_last ? head.last_words : 3'(BurstWords - 1);
  assign read_first = number_q == '0;
  assign write_address = value_step ? value_address : line_address;
  assign write_words = burst_words;
  assign write_way = !value_step && !head.clears;

  // Whether a job's group must wait is late, so it meets everything else last. What is kept is so that Yosys, which counts small LUTs for
  // less, does not make two or three of one.
  logic read_step;
  `YOSYS_KEEP
  logic read_may, write_may, read_able, write_able, nothing, step_last;
  `YOSYS_KEEP
  logic [Channels-1:0] write_open;
  assign read_may   = head_valid && !head.write && value_step && !(reads_full && read_first);
  assign write_may  = head_valid && head.write && (value_step || head.has_header);
  assign read_able  = read_may && read_ready[channel];
  assign write_open = write_ready & feed_ready;
  assign write_able = write_may && write_open[channel];
  always_comb begin
    read_valid = '0;
    write_valid = '0;
    read_valid[channel] = read_may && !head_wait;
    write_valid[channel] = write_may && feed_ready[channel] && !head_wait;
  end

  assign read_step  = read_able && !head_wait;
  assign step       = (read_able || write_able) && !head_wait;
  assign step_last  = value_step ? value_last && !head.has_header : 1'b1;
  assign nothing    = head_valid && !value_step && !head.has_header;
  assign head_take  = nothing || (step && step_last);
  assign read_begin = read_step && read_first;

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

  // ---- values that are read: in the tracker's order

  typedef struct packed {
    logic [1:0] way;
    logic [BeatBits-1:0] last;  // word
  } reading_t;

  logic [ReadBits-1:0] begin_q;  // the oldest value that has not begun
  reading_t reading;
  // verilator lint_off UNUSEDSIGNAL
  reading_t beginning;
  // verilator lint_on UNUSEDSIGNAL
  lutram #(
      .Width($bits(reading_t)),
      .Depth(Reads),
      .ReadPorts(2)
  ) i_readings (
      .clk_i,
      .write_i(read_begin),
      .write_address_i(read_begin_index),
      .write_data_i({head.way, head.last_number, head.last_words[BurstBits-1:0]}),
      .read_address_i({begin_q, read_index}),
      .read_data_o({beginning, reading})
  );

  logic [BeatBits-1:0] word_q;
  `YOSYS_KEEP
  channel_t from;
  `YOSYS_KEEP
  logic [Channels-1:0] word_there;
  channel_t begins_on;
  assign from       = channel_of(reading.way + 2'(word_q >> BurstBits));
  assign word_there = read_there ? channel_valid : '0;
  assign word_valid = word_there[from];
  assign word_data  = channel_data[from];
  assign word_first = word_q == '0;
  assign word_last  = word_q == reading.last;
  assign read_end   = word_valid && word_ready && word_last;
  always_comb begin
    channel_ready = '0;
    channel_ready[from] = read_there && word_ready;
  end

  always_ff @(posedge clk_i) begin
    if (word_valid && word_ready) word_q <= word_last ? '0 : word_q + 1'b1;
    if (rst_i) word_q <= '0;
  end

  // First words that are here, of values that have not been announced. They are of the oldest such value, on the channel that it begins on.
  logic [Channels-1:0][ReadBits:0] firsts_q;
  assign begins_on     = channel_of(beginning.way);
  assign value_begun_o = firsts_q[begins_on] != '0;

  always_ff @(posedge clk_i) begin
    for (int c = 0; c < int'(Channels); c++) begin
      firsts_q[c] <= firsts_q[c] + (ReadBits + 1)'(channel_begun_i[c])
                   - (ReadBits + 1)'(value_begun_o && begins_on == channel_t'(c));
    end
    if (value_begun_o) begin_q <= begin_q + 1'b1;
    if (rst_i) begin
      firsts_q <= '0;
      begin_q  <= '0;
    end
  end

  // ---- words that are written: each channel has its bursts in order, and a word goes to whoever has one that is there

  typedef struct packed {
    logic way;
    logic [WriteBits-1:0] index;  // of the way
    place_t place;
    logic [NumberBits-1:0] number;
    logic [2:0] words;  // less 1
  } feed_t;

  feed_t feed;
  feed_t [Channels-1:0] feeds;
  `YOSYS_KEEP
  logic [Channels-1:0] feedable;
  logic [Channels-1:0] feed_valid, feed_take, feed_end, feed_go;
  logic [Channels-1:0][2:0] fed_q;  // words
  logic [Channels-1:0][BeatBits-1:0] beat;
  assign feed = '{way: !value_step, index: head.index, place: head.place, number: number_q, words: burst_words};

  `YOSYS_KEEP
  logic free;
  logic held_q, held_take;
  channel_t held_channel_q, chosen;

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_feed
    stream_fifo #(
        .Width($bits(feed_t)),
        .Depth(32)
    ) i_feed (
        .clk_i,
        .rst_i,
        .s_valid(write_valid[c] && write_ready[c]),
        .s_ready(feed_ready[c]),
        .s_payload(feed),
        .m_valid(feed_valid[c]),
        .m_ready(feed_take[c]),
        .m_payload(feeds[c]),
        .count_o(feed_count[c]),
        .almost_full_o(feed_almost_full[c])
    );
    assign beat[c] = {feeds[c].number, BurstBits'(fed_q[c])};
    // Not filling_i && filling_place_i == feeds[c].place && filled_i <= beat[c], in the parts that are LUTs.
    `YOSYS_KEEP
    logic [1:0] same;
    `YOSYS_KEEP
    logic above, level, low_above, blocked;
    assign same        = {filling_place_i[5:3] == feeds[c].place[5:3], filling_place_i[2:0] == feeds[c].place[2:0]};
    assign above       = filled_i[4] || filled_i[3:2] > beat[c][3:2];
    assign level       = filled_i[3:2] == beat[c][3:2];
    assign low_above   = filled_i[1:0] > beat[c][1:0];
    assign blocked     = filling_i && same == '1 && !above && !(level && low_above);
    assign feedable[c] = feed_valid[c] && (feeds[c].way || !blocked);
    assign feed_end[c] = fed_q[c] == feeds[c].words;
  end

  assign held_take = held_q && data_ready[held_channel_q];
  assign free      = !held_q || held_take;
  assign fetch     = |feedable && free;

  // The next after the last, since a channel takes a word every other cycle.
  logic [Channels-1:0][Channels-1:0] ahead;  // [c][j]: j comes before c
  logic [Channels-1:0] pick;
  always_comb begin
    ahead  = '0;
    chosen = '0;
    for (int c = 0; c < int'(Channels); c++) begin
      for (int j = 0; j < int'(Channels); j++) begin
        ahead[c][j] = Channels > 1
            && channel_t'(channel_t'(j) - held_channel_q - 1'b1) < channel_t'(channel_t'(c) - held_channel_q - 1'b1);
      end
      pick[c]      = feedable[c] && (feedable & ahead[c]) == '0;
      feed_go[c]   = pick[c] && free;
      feed_take[c] = feed_go[c] && feed_end[c];
      if (pick[c]) chosen |= channel_t'(c);
    end
  end
  always_comb begin
    data_valid = '0;
    data_valid[held_channel_q] = held_q;
  end

  assign pool_read_o  = fetch && !feeds[chosen].way;
  assign pool_place_o = feeds[chosen].place;
  assign pool_beat_o  = beat[chosen];
  assign way_index    = feeds[chosen].index;
  assign data         = pool_data_i;

  always_ff @(posedge clk_i) begin
    if (fetch) begin
      held_channel_q <= chosen;
      data_last      <= feed_end[chosen];
      data_is_way    <= feeds[chosen].way;
    end
    for (int c = 0; c < int'(Channels); c++) if (feed_go[c]) fed_q[c] <= feed_end[c] ? '0 : fed_q[c] + 1'b1;
    if (!held_q || held_take) held_q <= fetch;
    if (rst_i) begin
      held_q         <= 1'b0;
      held_channel_q <= '0;
      fed_q          <= '0;
    end
  end

  // ---- the oldest write ends when each channel has answered for its part of it

  // What it needs of a channel is late: of the answers that are there it meets two bits, and whether there are more.
  localparam int unsigned AnswerBits = $clog2(3 * Writes + 1);
  logic [Channels-1:0][AnswerBits-1:0] answers_q;
  `YOSYS_KEEP
  logic [Channels-1:0] plenty;
  logic [Channels-1:0] answered;
  logic [Channels-1:0][2:0] change;  // of answers_q, with a sign
  always_comb begin
    for (int c = 0; c < int'(Channels); c++) begin
      plenty[c] = answers_q[c][AnswerBits-1:2] != '0;
      // With the one that comes now.
      case (ending.answers[c])
        2'd0: answered[c] = 1'b1;
        2'd1: answered[c] = plenty[c] || answers_q[c][1:0] != '0 || write_done_i[c];
        2'd2: answered[c] = plenty[c] || answers_q[c][1] || (answers_q[c][0] && write_done_i[c]);
        default: answered[c] = plenty[c] || answers_q[c][1:0] == 2'd3 || (answers_q[c][1] && write_done_i[c]);
      endcase
    end
  end
  assign write_end  = write_started && &answered;
  assign done_o     = write_end;
  assign done_tag_o = ending.tag;

  always_comb begin
    for (int c = 0; c < int'(Channels); c++) begin
      case ({
        write_done_i[c], write_end ? ending.answers[c] : 2'd0
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

`ifndef SYNTHESIS
  logic [ReadBits:0] begun_q;  // values that have begun and not ended
  always_ff @(posedge clk_i) begin
    begun_q <= begun_q + (ReadBits + 1)'(value_begun_o) - (ReadBits + 1)'(read_end);
    if (rst_i) begun_q <= '0;
  end
`endif

  `ASSERT(length_right, !job_valid || job.length <= 11'(MaxValueBytes), "a value is too long")
  `ASSERT(line_base_aligned, line_base_i[11:0] == '0, "lines begin within a page")
  `ASSERT(value_base_aligned, value_base_i[11:0] == '0, "values begin within a page")
  `ASSERT(begun_before_word, !(word_valid && word_first) || value_begun_o || begun_q != '0,
          "a value's first word came before it was announced")
  `ASSERT_NEXT(word_kept, word_valid && !word_ready, word_valid && word_data == $past(word_data),
               "a word was withdrawn or changed")

endmodule
`default_nettype wire
