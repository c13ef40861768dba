// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Reassembles read values from the channels on which their pieces arrive.
///
/// Behaviour: values come out at word_* in the order in which their reads began (read_begin_i). Each value begins with
/// the piece on the channel of its way. `value_begun_o` pulses once per value, in the same order, when the value begins
/// to arrive. The pulse comes at the latest with the value's first word at word_valid.
/// Latency: 0 cycles from a channel's word to word_*; 1 from channel_begun_i to value_begun_o.
/// Paths: word_valid and word_data from the channels' signals, word_ready to the channels and to read_end_o.
/// Reset: forgets everything.
/// Requirements: on each channel the pieces arrive in the order of their requests.
module kv_value_read
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// Values in flight; a power of two.
    parameter int unsigned Reads = 64
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // `full`, and of places that there are not
    input  wire ring_t    reads_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire           read_begin_i,
    input  wire reading_t reading_i,
    /// The oldest value has been delivered.
    output logic          read_end_o,

    input  wire  [Channels-1:0]        channel_valid,
    output logic [Channels-1:0]        channel_ready,
    input  wire  [Channels-1:0][511:0] channel_data,
    /// The first word of a value has reached the channel's fifo.
    input  wire  [Channels-1:0]        channel_begun_i,

    output logic         word_valid,
    input  wire          word_ready,
    output logic [511:0] word_data,
    output logic         value_begun_o
);

  localparam int unsigned BeatBits = $clog2(ValueBeats);
  localparam int unsigned ReadBits = $clog2(Reads);
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);
  typedef logic [ChannelBits-1:0] channel_t;
  // verilator lint_off UNUSEDSIGNAL
  function automatic channel_t channel_of(logic [1:0] number);
    return Channels == 1 ? '0 : channel_t'(number);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [ReadBits-1:0] begin_q;  // the oldest value that has not begun to arrive
  reading_t reading;
  // verilator lint_off UNUSEDSIGNAL
  reading_t beginning;
  // verilator lint_on UNUSEDSIGNAL
  lutram #(
      .Width($bits(reading_t)),
      .Depth(Reads),
      .ReadPorts(2)
  ) i_readings (
      .*,
      .write_i(read_begin_i),
      .write_address_i(ReadBits'(reads_i.put)),
      .write_data_i(reading_i),
      .read_address_i({begin_q, ReadBits'(reads_i.oldest)}),
      .read_data_o({beginning, reading})
  );

  // ---- the oldest value's words

  logic [BeatBits-1:0] word_q;
  logic last;
  `YOSYS_KEEP
  channel_t from;
  `YOSYS_KEEP
  logic [Channels-1:0] word_there;
  assign from       = channel_of(reading.way + 2'(word_q >> piece_bits(Channels)));
  assign word_there = reads_i.some ? channel_valid : '0;
  assign word_valid = word_there[from];
  assign word_data  = channel_data[from];
  assign last       = word_q == reading.last;
  assign read_end_o = word_valid && word_ready && last;
  always_comb begin
    channel_ready = '0;
    channel_ready[from] = reads_i.some && word_ready;
  end

  always_ff @(posedge clk_i) begin
    if (word_valid && word_ready) word_q <= last ? '0 : word_q + 1'b1;
    if (rst_i) word_q <= '0;
  end

  // ---- first words that have arrived and are not announced yet. The next one announced is on the channel of the
  // oldest such value's way

  logic [Channels-1:0][ReadBits:0] firsts_q;
  channel_t begins_on;
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

`ifndef SYNTHESIS
  logic [ReadBits:0] begun_q;  // values that have begun and not ended
  always_ff @(posedge clk_i) begin
    begun_q <= begun_q + (ReadBits + 1)'(value_begun_o) - (ReadBits + 1)'(read_end_o);
    if (rst_i) begun_q <= '0;
  end
`endif

  `ASSERT(begun_before_word, !(word_valid && word_q == '0) || value_begun_o || begun_q != '0,
          "a value's first word came before it was announced")
  `ASSERT_NEXT(word_kept, word_valid && !word_ready, word_valid && word_data == $past(word_data),
               "a word was withdrawn or changed")

endmodule
`default_nettype wire
