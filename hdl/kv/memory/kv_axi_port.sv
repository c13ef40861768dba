// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// A memory port: an AXI3 master with 256-bit data, for words of 64 bytes.
///
/// Behaviour: a read of 1 to 8 words is one burst, and its words come out in order. A write is one burst whose words
/// come from the word stream in the order of the commands, or one beat for 16 bytes of a word (way). write_done_o
/// reports memory's answer. A read is requested only when the return FIFO has room for it (for 8 words, if the FIFO has
/// 16 or more), so memory never waits; ReadDepth limits the words in flight. Reads and writes are independent. A line
/// needs no room. It bypasses the FIFO to `line`, with its tag, and blocks memory until it is taken.
/// Latency: 1 cycle from command to ARVALID or AWVALID, and from word to WVALID; from a word's second half at R to the
/// word 1, or 2 from block RAM, and to `line` 1.
/// Paths: line_ready to RREADY; BVALID to write_done_o; R and B to error_o. The upper half of line.data, and line.tag,
/// stay for one cycle after line_ready.
/// Reset: forgets everything. Outstanding memory answers must have arrived before reset ends.
/// Requirements: addresses are multiples of 64, or 32 with `way`. Bursts do not cross a 4 KiB boundary. RLAST and
/// identifiers are ignored: all identifiers are 0, so answers come in order (AXI3, A5.3).
module kv_axi_port
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// Words that may be in flight from memory; a power of two, at least 8.
    parameter int unsigned ReadDepth  = 64,
    /// Writes that may be in flight.
    parameter int unsigned WriteDepth = 16
) (
    input wire clk_i,
    input wire rst_i,

    input  wire              read_valid,
    output logic             read_ready,
    input  wire read_burst_t read,

    output logic         word_valid,
    input  wire          word_ready,
    output logic [511:0] word_data,
    /// The first word of a value (read_burst_t.first) has reached the fifo.
    output logic         begun_o,

    output logic         line_valid,
    input  wire          line_ready,
    output filled_line_t line,

    input  wire               write_valid,
    output logic              write_ready,
    input  wire write_burst_t write,
    input  wire               data_valid,
    output logic              data_ready,
    input  wire write_word_t  data,
    output logic              write_done_o,
    /// Memory answers with an error in this cycle.
    output logic              error_o,

    output memory_req_t       m_axi_req,
    input  wire memory_resp_t m_axi_resp
);

  if (ReadDepth < 8) begin : gen_check_read
    $fatal(1, "ReadDepth must hold a burst of 8 words in %m");
  end

  // ---- reads

  localparam int unsigned CreditWidth = $clog2(ReadDepth + 1);
  logic [CreditWidth-1:0] credit_q;  // words of the fifo that nobody has asked for
  logic [CreditWidth-1:0] asked;
  logic read_take, asked_ready, word_take, ar_valid_q;
  memory_a_t ar_q;
  logic [2:0] words;  // of the burst, less 1
  `YOSYS_KEEP
  logic many, room;
  logic may_ask;
  // The late inputs come last in the logic.
  `YOSYS_KEEP
  logic [CreditWidth-1:0] credit_more, credit_less;
  assign credit_more = credit_q + CreditWidth'(word_take);
  assign credit_less = credit_more - asked;
  // many || room: credits suffice. A deep FIFO requires credits for the longest read, because read.words is late.
  assign many        = credit_q[CreditWidth-1:3] != '0;
  assign room        = ReadDepth < 16 && credit_q[2:0] > read.words;
  assign words       = read.line ? 3'd0 : read.words;
  assign asked       = read.line ? '0 : CreditWidth'(read.words) + 1'b1;
  assign may_ask     = (!ar_valid_q || m_axi_resp.ar_ready) && asked_ready;
  assign read_ready  = may_ask && (read.line || many || room);
  assign read_take   = read_valid && read_ready;

  // A stream_register here would make the joined core's longest path, through read_ready, one LUT longer in
  // Yosys.
  always_ff @(posedge clk_i) begin
    if (!ar_valid_q || m_axi_resp.ar_ready) ar_valid_q <= read_take;
    if (read_take) ar_q <= '{addr: read.address, len: {words, 1'b1}};
    credit_q <= read_take ? credit_less : credit_more;
    if (rst_i) begin
      ar_valid_q <= 1'b0;
      credit_q   <= CreditWidth'(ReadDepth);
    end
  end
  assign m_axi_req.ar = ar_q;
  assign m_axi_req.ar_valid = ar_valid_q;

  // Words in flight.
  typedef struct packed {
    logic line;
    logic first;
    fill_tag_t tag;
    logic [2:0] words;  // less 1
  } asked_t;
  asked_t coming;
  logic coming_valid, coming_end;
  stream_fifo #(
      .Width($bits(asked_t)),
      .Depth(32)
  ) i_asked (
      .*,
      .s_valid  (read_take),
      .s_ready  (asked_ready),
      .s_payload({read.line, read.first, read.tag, words}),
      .m_valid  (coming_valid),
      .m_ready  (coming_end),
      .m_payload(coming)
  );

  logic second_q;  // the first half of a word is in low_q
  logic [255:0] low_q, line_high_q;
  logic [2:0] index_q;  // of the word in its read
  fill_tag_t line_tag_q;
  logic r_ready, r_take, word_end, word_put, words_ready;
  assign r_ready           = !line_valid || line_ready;
  assign r_take            = m_axi_resp.r_valid && r_ready;
  assign word_end          = r_take && second_q;
  assign word_put          = word_end && !coming.line;
  assign coming_end        = word_end && index_q == coming.words;
  assign line              = '{tag: line_tag_q, data: {line_high_q, low_q}};  // low_q changes when the line is taken
  assign begun_o           = word_put && index_q == '0 && coming.first;
  assign m_axi_req.r_ready = r_ready;

  always_ff @(posedge clk_i) begin
    if (r_take) begin
      second_q <= !second_q;
      if (!second_q) low_q <= m_axi_resp.r.data;
      else line_high_q <= m_axi_resp.r.data;
    end
    if (word_end) begin
      index_q    <= coming_end ? '0 : index_q + 1'b1;
      line_tag_q <= coming.tag;
    end
    if (!line_valid || line_ready) line_valid <= word_end && coming.line;
    if (rst_i) begin
      second_q   <= 1'b0;
      index_q    <= '0;
      line_valid <= 1'b0;
    end
  end

  stream_fifo #(
      .Width(512),
      .Depth(ReadDepth)
  ) i_words (
      .*,
      .s_valid  (word_put),
      .s_ready  (words_ready),
      .s_payload({m_axi_resp.r.data, low_q}),
      .m_valid  (word_valid),
      .m_ready  (word_ready),
      .m_payload(word_data)
  );
  assign word_take = word_valid && word_ready;

  // ---- writes

  logic done_room, aw_ready;
  assign write_ready = aw_ready && done_room;

  stream_register #(
      .Width($bits(memory_a_t))
  ) i_aw (
      .*,
      .s_valid  (write_valid && done_room),
      .s_ready  (aw_ready),
      .s_payload({write.address, write.words, !write.way}),
      .m_valid  (m_axi_req.aw_valid),
      .m_ready  (m_axi_resp.aw_ready),
      .m_payload(m_axi_req.aw)
  );

  // Handles half a word at a time: the low half passes at once, and the high half is kept for the next beat.
  logic high_there_q, high_last_q, high_zero_q;
  logic [255:0] high_q;
  logic w_free, single;
  typedef struct packed {
    logic [255:0] data;
    logic [1:0] halves;  // that are written
    logic last;
  } beat_t;
  beat_t beat, beat_out;
  logic [1:0] source;
  logic [3:0][255:0] sources;
  assign data_ready = w_free && !high_there_q;
  assign single = data.is_way && !data.clear;
  assign source = {high_there_q, high_there_q ? high_zero_q : data.is_way};
  assign sources = {256'd0, high_q, {2{data.way}}, data.data[255:0]};
  assign beat = '{
          data: sources[source],
          halves: {high_there_q || !single || data.odd, high_there_q || !single || !data.odd},
          last: high_there_q ? high_last_q : single
      };
  assign m_axi_req.w = '{
          data: beat_out.data,
          strb: {{16{beat_out.halves[1]}}, {16{beat_out.halves[0]}}},
          last: beat_out.last
      };

  stream_register #(
      .Width($bits(beat_t))
  ) i_w (
      .*,
      .s_valid  (high_there_q || data_valid),
      .s_ready  (w_free),
      .s_payload(beat),
      .m_valid  (m_axi_req.w_valid),
      .m_ready  (m_axi_resp.w_ready),
      .m_payload(beat_out)
  );

  always_ff @(posedge clk_i) begin
    if (w_free) high_there_q <= !high_there_q && data_valid && !single;
    if (data_valid && data_ready) begin
      high_q      <= data.data[511:256];
      high_last_q <= data.last;
      high_zero_q <= data.is_way;
    end
    if (rst_i) high_there_q <= 1'b0;
  end

  // ---- answers

  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(WriteDepth)
  ) i_done (
      .*,
      .take_i(write_valid && write_ready),
      .give_i(m_axi_resp.b_valid),
      .available_o(done_room),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign m_axi_req.b_ready = 1'b1;
  assign write_done_o = m_axi_resp.b_valid;
  // The low response bit only separates OKAY from EXOKAY, and one error from the other.
  logic unused_resp;
  assign unused_resp = m_axi_resp.b.resp[0] ^ m_axi_resp.r.resp[0];
  assign error_o = (m_axi_resp.b_valid && m_axi_resp.b.resp[1]) || (r_take && m_axi_resp.r.resp[1]);

  `ASSERT(room_for_words, !word_put || words_ready, "memory answered and there was no room")
  `ASSERT(asked_for_words, !m_axi_resp.r_valid || coming_valid, "memory answered what nobody asked")
  `ASSERT(read_aligned, !read_valid || read.address[5:0] == '0, "a read is not at a word's start")
  `ASSERT(read_within_page, !read_valid || read.line || 7'(read.address[11:6]) + 7'(read.words) < 7'd64,
          "a read crosses a 4 KiB boundary")
  `ASSERT(write_aligned, !write_valid || write.address[4:0] == '0 && (write.way || !write.address[5]),
          "a write is not at a word's start")
  `ASSERT(way_is_last, !data_valid || !data.is_way || data.last, "words follow a way")
  `ASSERT(clears_with_zeros, !data_valid || !data.is_way || !data.clear || data.way == '0,
          "a line is cleared with something")
  `ASSERT(write_within_page, !write_valid || 7'(write.address[11:6]) + 7'(write.words) < 7'd64,
          "a write crosses a 4 KiB boundary")
  `ASSERT_NEXT(line_kept, line_valid && !line_ready, line_valid && line.data == $past(line.data),
               "a line was withdrawn or changed")
  `ASSERT_NEXT(high_kept, line_valid && line_ready, line.data[511:256] == $past(line.data[511:256])
               && line.tag == $past(line.tag), "a line's upper half went with the lower one")
  `ASSERT_NEXT(ar_kept, ar_valid_q && !m_axi_resp.ar_ready, ar_valid_q && ar_q == $past(ar_q),
               "a read command was withdrawn or changed")

endmodule
`default_nettype wire
