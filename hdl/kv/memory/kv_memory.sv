// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// The kv core's side of memory: lines with a cache, values, and the ports of memory.
///
/// Behaviour: kv_line_cache and kv_value_io, on Channels of kv_axi_port, where lines go before values. Any address is reached through any channel; which one
/// takes what is kv_value_io' business. error_o rises when memory answers with an error and stays until clear_i.
/// Latency: job in (a read, nothing else under way) to ARVALID 2 cycles; a word's second beat at R to word_* 1 (ReadDepth up to 64, in LUTs) or 2
/// (in block RAM). A line that is not there: read_i to ARVALID 4 cycles, its second beat at R to here_o 2.
/// Paths: job.write to job_ready, word_ready to nothing outside.
/// Reset: forgets everything, and empties the cache. What memory still answers must have come before it ends.
/// Requirements: bases are multiples of 4096 and change only when all is quiet. A line goes to the cache (write_i) in the cycle after the job
/// that takes it to memory is accepted, or later.
///
/// No deadlock: memory's answers are always taken: values have room of their own before they are asked for, and lines go past them. The rest is argued in kv_line_cache and kv_value_io.
module kv_memory
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// 2^n lines in the cache.
    parameter int unsigned LineCacheBits = 12,
    /// Words of values that may be on their way, for each channel; a power of two, at least 8. Above 64 in block RAM.
    parameter int unsigned ReadDepth = 128,
    /// Jobs that write, waiting or under way; a power of two.
    parameter int unsigned Writes = 32,
    /// Values on their way; a power of two.
    parameter int unsigned Reads = 64,
    localparam int unsigned BeatBits = $clog2(ValueBeats)
) (
    input wire clk_i,
    input wire rst_i,

    input  wire address_t line_base_i,
    input  wire address_t value_base_i,
    output logic          error_o,
    /// That, or the error comes in this cycle: it may be the answer that done_o is for.
    output logic          fails_o,

    // kv_line_cache
    input  wire                  clear_i,
    output logic                 clearing_o,
    input  wire                  announce_i,
    input  wire bucket_t         announce_bucket_i,
    input  wire                  read_i,
    input  wire                  read_changes_i,
    input  wire bucket_t         read_bucket_i,
    output logic                 read_hit_o,
    output logic         [511:0] read_line_o,
    input  wire                  want_i,
    input  wire bucket_t         want_bucket_i,
    output logic                 here_o,
    /// A write to the group of read_bucket_i of two cycles ago, put in a cycle ago or earlier, waits or is under way.
    output logic                 group_busy_o,
    input  wire                  write_i,
    input  wire bucket_t         write_bucket_i,
    input  wire          [  1:0] write_way_i,
    input  wire          [127:0] write_header_i,

    // kv_value_io
    input  wire                      job_valid,
    output logic                     job_ready,
    /// Room for six jobs, three of which write.
    output logic                     job_room_o,
    input  wire memory_job_t         job,
    input  wire              [127:0] job_header,
    output logic                     done_o,
    output job_tag_t                 done_tag_o,
    output logic                     word_valid,
    input  wire                      word_ready,
    output logic             [511:0] word_data,
    output logic                     word_first,
    output logic                     word_last,
    output logic                     value_begun_o,

    output logic                       pool_read_o,
    output place_t                     pool_place_o,
    output logic        [BeatBits-1:0] pool_beat_o,
    input  wire         [       511:0] pool_data_i,
    input  wire                        filling_i,
    input  wire place_t                filling_place_i,
    input  wire         [  BeatBits:0] filled_i,

    output logic     [Channels-1:0]        m_axi_arvalid,
    input  wire      [Channels-1:0]        m_axi_arready,
    output address_t [Channels-1:0]        m_axi_araddr,
    output logic     [Channels-1:0][  3:0] m_axi_arlen,
    input  wire      [Channels-1:0]        m_axi_rvalid,
    output logic     [Channels-1:0]        m_axi_rready,
    input  wire      [Channels-1:0][255:0] m_axi_rdata,
    input  wire      [Channels-1:0][  1:0] m_axi_rresp,
    output logic     [Channels-1:0]        m_axi_awvalid,
    input  wire      [Channels-1:0]        m_axi_awready,
    output address_t [Channels-1:0]        m_axi_awaddr,
    output logic     [Channels-1:0][  3:0] m_axi_awlen,
    output logic     [Channels-1:0]        m_axi_wvalid,
    input  wire      [Channels-1:0]        m_axi_wready,
    output logic     [Channels-1:0][255:0] m_axi_wdata,
    output logic     [Channels-1:0][ 31:0] m_axi_wstrb,
    output logic     [Channels-1:0]        m_axi_wlast,
    input  wire      [Channels-1:0]        m_axi_bvalid,
    output logic     [Channels-1:0]        m_axi_bready,
    input  wire      [Channels-1:0][  1:0] m_axi_bresp
);

  localparam int unsigned Fills = 16;
  localparam int unsigned TagWidth = $clog2(Fills);

  group_t fill_group;
  logic   fill_wait;
  assign group_busy_o = fill_wait;
  logic [Channels-1:0] fill_valid, fill_ready, line_valid, line_ready;
  address_t fill_address;
  logic [TagWidth-1:0] fill_tag;
  logic [Channels-1:0][511:0] line_data;
  logic [Channels-1:0][TagWidth-1:0] line_tag;

  kv_line_cache #(
      .LineCacheBits(LineCacheBits),
      .Channels(Channels),
      .Fills(Fills)
  ) i_lines (
      .clk_i,
      .rst_i,
      .line_base_i,
      .clear_i,
      .clearing_o,
      .announce_i,
      .announce_bucket_i,
      .read_i,
      .read_changes_i,
      .read_bucket_i,
      .read_hit_o,
      .read_line_o,
      .want_i,
      .want_bucket_i,
      .here_o,
      .write_i,
      .write_bucket_i,
      .write_way_i,
      .write_header_i,
      .fill_group_o(fill_group),
      .fill_wait_i (fill_wait),
      .fill_valid,
      .fill_ready,
      .fill_address,
      .fill_tag,
      .line_valid,
      .line_ready,
      .line_data,
      .line_tag
  );

  logic [Channels-1:0] value_valid, channel_valid, channel_ready, channel_begun;
  `YOSYS_KEEP
  logic [Channels-1:0] value_ready;
  address_t value_address, write_address;
  logic [2:0] value_words, write_words;
  logic value_first, data_last;
  logic [Channels-1:0][511:0] channel_data;
  logic [Channels-1:0] write_valid, write_ready, data_valid, data_ready, write_done, errors;
  logic [511:0] data;
  logic [127:0] data_way;
  logic write_way, data_is_way, data_odd, data_clear;

  kv_value_io #(
      .Channels(Channels),
      .Writes(Writes),
      .Reads(Reads)
  ) i_values (
      .clk_i,
      .rst_i,
      .line_base_i,
      .value_base_i,
      .job_valid,
      .job_ready,
      .job_room_o,
      .job,
      .job_header,
      .done_o,
      .done_tag_o,
      .word_valid,
      .word_ready,
      .word_data,
      .word_first,
      .word_last,
      .value_begun_o,
      .pool_read_o,
      .pool_place_o,
      .pool_beat_o,
      .pool_data_i,
      .filling_i,
      .filling_place_i,
      .filled_i,
      .fill_group_i(fill_group),
      .fill_wait_o(fill_wait),
      .read_valid(value_valid),
      .read_ready(value_ready),
      .read_address(value_address),
      .read_words(value_words),
      .read_first(value_first),
      .channel_valid,
      .channel_ready,
      .channel_data,
      .channel_begun_i(channel_begun),
      .write_valid,
      .write_ready,
      .write_address,
      .write_words,
      .write_way,
      .data_valid,
      .data_ready,
      .data,
      .data_last,
      .data_is_way,
      .data_way,
      .data_odd,
      .data_clear,
      .write_done_i(write_done)
  );

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
    logic read_ready, begun, begun_first;
    // verilator lint_off UNUSEDSIGNAL
    logic [TagWidth-1:0] word_tag, begun_tag, done_tag;
    // verilator lint_on UNUSEDSIGNAL
    assign fill_ready[c]    = read_ready;
    assign value_ready[c]   = read_ready && !fill_valid[c];
    assign channel_begun[c] = begun && begun_first && begun_tag[0];

    kv_axi_port #(
        .TagWidth(TagWidth),
        .ReadDepth(ReadDepth),
        .WriteDepth(32),
        .AddressWidth(AddressBits)
    ) i_channel (
        .clk_i,
        .rst_i,
        .read_valid(fill_valid[c] || value_valid[c]),
        .read_ready(read_ready),
        .read_address(fill_valid[c] ? fill_address : value_address),
        .read_words(value_words),
        .read_tag(fill_valid[c] ? fill_tag : TagWidth'(value_first)),
        .read_line(fill_valid[c]),
        .word_valid(channel_valid[c]),
        .word_ready(channel_ready[c]),
        .word_data(channel_data[c]),
        .word_tag(word_tag),
        .word_begun_o(begun),
        .word_begun_first_o(begun_first),
        .word_begun_tag_o(begun_tag),
        .line_valid(line_valid[c]),
        .line_ready(line_ready[c]),
        .line_data(line_data[c]),
        .line_tag(line_tag[c]),
        .write_valid(write_valid[c]),
        .write_ready(write_ready[c]),
        .write_address(write_address),
        .write_words(write_words),
        .write_way(write_way),
        .write_tag('0),
        .data_valid(data_valid[c]),
        .data_ready(data_ready[c]),
        .data(data),
        .data_last(data_last),
        .data_is_way(data_is_way),
        .data_way(data_way),
        .data_odd(data_odd),
        .data_clear(data_clear),
        .write_done_o(write_done[c]),
        .write_done_tag_o(done_tag),
        .error_o(errors[c]),
        .m_axi_arvalid(m_axi_arvalid[c]),
        .m_axi_arready(m_axi_arready[c]),
        .m_axi_araddr(m_axi_araddr[c]),
        .m_axi_arlen(m_axi_arlen[c]),
        .m_axi_rvalid(m_axi_rvalid[c]),
        .m_axi_rready(m_axi_rready[c]),
        .m_axi_rdata(m_axi_rdata[c]),
        .m_axi_rresp(m_axi_rresp[c]),
        .m_axi_awvalid(m_axi_awvalid[c]),
        .m_axi_awready(m_axi_awready[c]),
        .m_axi_awaddr(m_axi_awaddr[c]),
        .m_axi_awlen(m_axi_awlen[c]),
        .m_axi_wvalid(m_axi_wvalid[c]),
        .m_axi_wready(m_axi_wready[c]),
        .m_axi_wdata(m_axi_wdata[c]),
        .m_axi_wstrb(m_axi_wstrb[c]),
        .m_axi_wlast(m_axi_wlast[c]),
        .m_axi_bvalid(m_axi_bvalid[c]),
        .m_axi_bready(m_axi_bready[c]),
        .m_axi_bresp(m_axi_bresp[c])
    );
  end

  assign fails_o = error_o || |errors;
  always_ff @(posedge clk_i) begin
    if (|errors) error_o <= 1'b1;
    if (rst_i || clear_i) error_o <= 1'b0;
  end


endmodule
`default_nettype wire
