// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// One port of memory: an AXI3 master of 256 bits, for words of 64 bytes.
///
/// Behaviour: a read of 1 to 8 words is one burst; its words come out in order, each with the command's tag. A write is one burst, its words
/// taken from the word stream in the order of the commands; or of one beat, for 16 bytes of it (write_way). write_done_o, with the command's tag, when memory has answered. Reads are asked for only
/// when the return fifo has room for them (of 8, if it is 16 deep or more), so that the memory is never kept waiting (the fifo's depth is what may be on its way).
/// Reads and writes do not wait for each other. A read with read_line is of one word, which needs no room: it goes past the fifo to line_*, and
/// holds up memory until it is taken there.
/// A word of data is `data`, two beats; or data_way, 16 bytes, one beat with half of its strobes; or with data_clear two beats of zeros.
/// Latency: command in to ARVALID or AWVALID 1 cycle, word in to WVALID 1; second half of a word at R to word out 1, or 2 from block RAM, to line 1.
/// Paths: line_ready to m_axi_rready. After line_ready the upper half of line_data and line_tag stay for a cycle.
/// Reset: forgets everything. What the memory still answers must have come before it ends.
/// Requirements: addresses are multiples of 64, with write_way of 32; no burst crosses a 4 KiB boundary; RLAST and identifiers are not looked at, since
/// all transactions have identifier 0 and come in order (AXI3, A5.3).
module kv_axi_port #(
    /// Bits of a tag; at least 1.
    parameter int unsigned TagWidth = 1,
    /// Words that may be on their way from memory; a power of two, at least 8.
    parameter int unsigned ReadDepth = 64,
    /// Writes that may be on their way; a power of two.
    parameter int unsigned WriteDepth = 16,
    parameter int unsigned AddressWidth = 34
) (
    input wire clk_i,
    input wire rst_i,

    input  wire                     read_valid,
    output logic                    read_ready,
    input  wire  [AddressWidth-1:0] read_address,
    /// Less 1; not looked at with read_line.
    input  wire  [             2:0] read_words,
    input  wire  [    TagWidth-1:0] read_tag,
    input  wire                     read_line,

    output logic                word_valid,
    input  wire                 word_ready,
    output logic [       511:0] word_data,
    output logic [TagWidth-1:0] word_tag,
    /// A word has reached the fifo; its tag, and whether it is the first of its read.
    output logic                word_begun_o,
    output logic                word_begun_first_o,
    output logic [TagWidth-1:0] word_begun_tag_o,

    output logic                line_valid,
    input  wire                 line_ready,
    output logic [       511:0] line_data,
    output logic [TagWidth-1:0] line_tag,

    input  wire                     write_valid,
    output logic                    write_ready,
    input  wire  [AddressWidth-1:0] write_address,
    /// Less 1.
    input  wire  [             2:0] write_words,
    /// Not words, but one beat.
    input  wire                     write_way,
    input  wire  [    TagWidth-1:0] write_tag,

    input  wire          data_valid,
    output logic         data_ready,
    input  wire  [511:0] data,
    /// The write's last word.
    input  wire          data_last,
    /// The word is data_way instead, in the upper half of its beat (data_odd) or the lower one.
    input  wire          data_is_way,
    input  wire  [127:0] data_way,
    input  wire          data_odd,
    /// Or zeros; data_is_way, and data_way is 0.
    input  wire          data_clear,

    output logic                write_done_o,
    output logic [TagWidth-1:0] write_done_tag_o,
    /// The memory answered with an error, now.
    output logic                error_o,

    output logic                    m_axi_arvalid,
    input  wire                     m_axi_arready,
    output logic [AddressWidth-1:0] m_axi_araddr,
    output logic [             3:0] m_axi_arlen,
    input  wire                     m_axi_rvalid,
    output logic                    m_axi_rready,
    input  wire  [           255:0] m_axi_rdata,
    input  wire  [             1:0] m_axi_rresp,
    output logic                    m_axi_awvalid,
    input  wire                     m_axi_awready,
    output logic [AddressWidth-1:0] m_axi_awaddr,
    output logic [             3:0] m_axi_awlen,
    output logic                    m_axi_wvalid,
    input  wire                     m_axi_wready,
    output logic [           255:0] m_axi_wdata,
    output logic [            31:0] m_axi_wstrb,
    output logic                    m_axi_wlast,
    input  wire                     m_axi_bvalid,
    output logic                    m_axi_bready,
    input  wire  [             1:0] m_axi_bresp
);

  if (TagWidth < 1) begin : gen_check_tag
    $fatal(1, "TagWidth must be at least 1 in %m");
  end
  if (ReadDepth < 8) begin : gen_check_read
    $fatal(1, "ReadDepth must hold a burst of 8 words in %m");
  end

  // verilator lint_off UNUSEDSIGNAL
  logic [5:0] tags_count;
  logic [$clog2(ReadDepth+1)-1:0] words_count;
  logic [$clog2(WriteDepth+1)-1:0] done_count;
  logic tags_almost_full, words_almost_full, done_almost_full, words_ready;
  // verilator lint_on UNUSEDSIGNAL

  // ---- reads

  localparam int unsigned CreditWidth = $clog2(ReadDepth + 1);
  logic [CreditWidth-1:0] credit_q;  // words of the fifo that nobody has asked for
  logic [CreditWidth-1:0] asked;
  logic read_take, tags_ready, word_take;
  `YOSYS_KEEP
  logic many, room;
  logic may_ask;
  // With what is late last.
  `YOSYS_KEEP
  logic [CreditWidth-1:0] credit_more, credit_less;
  assign credit_more = credit_q + CreditWidth'(word_take);
  assign credit_less = credit_more - asked;
  // Either: credit_q >= asked. A deep fifo waits for room for the longest read: read_words is late.
  assign many        = credit_q[CreditWidth-1:3] != '0;
  assign room        = ReadDepth < 16 && credit_q[2:0] > read_words;
  assign asked       = read_line ? '0 : CreditWidth'(read_words) + 1'b1;
  assign may_ask     = (!m_axi_arvalid || m_axi_arready) && tags_ready;
  assign read_ready  = may_ask && (read_line || many || room);
  assign read_take   = read_valid && read_ready;

  // Not a stream_register: with one, Yosys makes the joined core's longest path, through read_ready, a LUT longer.
  always_ff @(posedge clk_i) begin
    if (!m_axi_arvalid || m_axi_arready) m_axi_arvalid <= read_take;
    if (read_take) begin
      m_axi_araddr <= read_address;
      m_axi_arlen  <= {read_line ? 3'd0 : read_words, 1'b1};
    end
    credit_q <= read_take ? credit_less : credit_more;
    if (rst_i) begin
      m_axi_arvalid <= 1'b0;
      credit_q      <= CreditWidth'(ReadDepth);
    end
  end

  // What is on its way: tag and words of each read.
  logic tags_valid, tags_take;
  logic [TagWidth-1:0] tag;
  logic [2:0] words;
  logic is_line;
  stream_fifo #(
      .Width(TagWidth + 4),
      .Depth(32)
  ) i_tags (
      .clk_i,
      .rst_i,
      .s_valid(read_take),
      .s_ready(tags_ready),
      .s_payload({read_line, read_tag, read_line ? 3'd0 : read_words}),
      .m_valid(tags_valid),
      .m_ready(tags_take),
      .m_payload({is_line, tag, words}),
      .count_o(tags_count),
      .almost_full_o(tags_almost_full)
  );

  logic second_q;  // the first half of a word is in low_q
  logic [255:0] low_q;
  logic [2:0] index_q;  // of the word in its read
  logic [255:0] line_high_q;
  logic r_take, word_end, word_put;
  assign m_axi_rready = !line_valid || line_ready;
  assign r_take       = m_axi_rvalid && m_axi_rready;
  assign word_end     = r_take && second_q;
  assign word_put     = word_end && !is_line;
  assign tags_take    = word_end && index_q == words;
  assign line_data    = {line_high_q, low_q};  // low_q changes when the line is taken, not before

  always_ff @(posedge clk_i) begin
    if (r_take) begin
      second_q <= !second_q;
      if (!second_q) low_q <= m_axi_rdata;
      else line_high_q <= m_axi_rdata;
    end
    if (word_end) begin
      index_q  <= tags_take ? '0 : index_q + 1'b1;
      line_tag <= tag;
    end
    if (!line_valid || line_ready) line_valid <= word_end && is_line;
    if (rst_i) begin
      second_q   <= 1'b0;
      index_q    <= '0;
      line_valid <= 1'b0;
    end
  end

  stream_fifo #(
      .Width(TagWidth + 512),
      .Depth(ReadDepth)
  ) i_words (
      .clk_i,
      .rst_i,
      .s_valid(word_put),
      .s_ready(words_ready),
      .s_payload({tag, m_axi_rdata, low_q}),
      .m_valid(word_valid),
      .m_ready(word_ready),
      .m_payload({word_tag, word_data}),
      .count_o(words_count),
      .almost_full_o(words_almost_full)
  );
  assign word_take          = word_valid && word_ready;
  assign word_begun_o       = word_put;
  assign word_begun_first_o = index_q == '0;
  assign word_begun_tag_o   = tag;

  // ---- writes

  logic done_ready, aw_ready, write_take;
  assign write_ready = aw_ready && done_ready;
  assign write_take  = write_valid && write_ready;

  stream_register #(
      .Width(AddressWidth + 4)
  ) i_aw (
      .clk_i,
      .rst_i,
      .s_valid  (write_valid && done_ready),
      .s_ready  (aw_ready),
      .s_payload({write_address, write_words, !write_way}),
      .m_valid  (m_axi_awvalid),
      .m_ready  (m_axi_awready),
      .m_payload({m_axi_awaddr, m_axi_awlen})
  );

  // Half a word at a time: the low half is given on at once, the high half kept for the next beat.
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
  assign single = data_is_way && !data_clear;
  assign source = {high_there_q, high_there_q ? high_zero_q : data_is_way};
  assign sources = {256'd0, high_q, {2{data_way}}, data[255:0]};
  assign beat = '{
          data: sources[source],
          halves: {high_there_q || !single || data_odd, high_there_q || !single || !data_odd},
          last: high_there_q ? high_last_q : single
      };
  assign m_axi_wdata = beat_out.data;
  assign m_axi_wstrb = {{16{beat_out.halves[1]}}, {16{beat_out.halves[0]}}};
  assign m_axi_wlast = beat_out.last;

  stream_register #(
      .Width($bits(beat_t))
  ) i_w (
      .clk_i,
      .rst_i,
      .s_valid  (high_there_q || data_valid),
      .s_ready  (w_free),
      .s_payload(beat),
      .m_valid  (m_axi_wvalid),
      .m_ready  (m_axi_wready),
      .m_payload(beat_out)
  );

  always_ff @(posedge clk_i) begin
    if (w_free) high_there_q <= !high_there_q && data_valid && !single;
    if (data_valid && data_ready) begin
      high_q      <= data[511:256];
      high_last_q <= data_last;
      high_zero_q <= data_is_way;
    end
    if (rst_i) high_there_q <= 1'b0;
  end

  logic done_valid;
  stream_fifo #(
      .Width(TagWidth),
      .Depth(WriteDepth),
      .Block(1'b0)
  ) i_done (
      .clk_i,
      .rst_i,
      .s_valid(write_take),
      .s_ready(done_ready),
      .s_payload(write_tag),
      .m_valid(done_valid),
      .m_ready(m_axi_bvalid),
      .m_payload(write_done_tag_o),
      .count_o(done_count),
      .almost_full_o(done_almost_full)
  );
  assign m_axi_bready = 1'b1;
  assign write_done_o = m_axi_bvalid && done_valid;
  // OKAY and EXOKAY differ in the low bit, as the two errors do.
  logic unused_resp;
  assign unused_resp = m_axi_bresp[0] ^ m_axi_rresp[0];
  assign error_o     = (m_axi_bvalid && m_axi_bresp[1]) || (r_take && m_axi_rresp[1]);

  `ASSERT(room_for_words, !word_put || words_ready, "memory answered and there was no room")
  `ASSERT(asked_for_words, !m_axi_rvalid || tags_valid, "memory answered what nobody asked")
  `ASSERT(wrote_what_answers, !m_axi_bvalid || done_valid, "memory confirmed what nobody wrote")
  `ASSERT(read_aligned, !read_valid || read_address[5:0] == '0, "a read is not at a word's start")
  `ASSERT(read_within_page, !read_valid || read_line || 7'(read_address[11:6]) + 7'(read_words) < 7'd64,
          "a read crosses a 4 KiB boundary")
  `ASSERT(write_aligned, !write_valid || write_address[4:0] == '0 && (write_way || !write_address[5]),
          "a write is not at a word's start")
  `ASSERT(way_is_last, !data_valid || !data_is_way || data_last, "words follow a way")
  `ASSERT(clears_with_zeros, !data_valid || !data_is_way || !data_clear || data_way == '0,
          "a line is cleared with something")
  `ASSERT(write_within_page, !write_valid || 7'(write_address[11:6]) + 7'(write_words) < 7'd64,
          "a write crosses a 4 KiB boundary")
  `ASSERT_NEXT(line_kept, line_valid && !line_ready, line_valid && line_data == $past(line_data),
               "a line was withdrawn or changed")
  `ASSERT_NEXT(high_kept, line_valid && line_ready, line_data[511:256] == $past(line_data[511:256])
               && line_tag == $past(line_tag), "a line's upper half went with the lower one")
  `ASSERT_NEXT(ar_kept, m_axi_arvalid && !m_axi_arready, m_axi_arvalid && m_axi_araddr == $past(m_axi_araddr),
               "a read command was withdrawn or changed")

endmodule
`default_nettype wire
