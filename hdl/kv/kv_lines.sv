// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A cache of bucket lines: direct-mapped, written through.
///
/// Behaviour: a read that finds its line says so two cycles later. Any look-up that does not find its line asks memory for it (a fill), at
/// once or not at all. Lines are looked up for read_i; else for want_i, again and again, until here_o says that the wanted line is there, which has to
/// be read then; else for what was announced, once. No fill is asked for while another is on its way for its group, while a
/// write to its group is queued or under way (fill_wait_i), or when Fills are on their way. A fill is written when write_i leaves it a
/// cycle. write_i makes the fills of its group that are on their way worthless: they are thrown away when they come. clear_i empties the cache,
/// as reset does, for 2^LineCacheBits cycles of clearing_o; meanwhile every look-up fails and asks for nothing.
/// Latency: read_i to read_hit_o and read_line_o 2 cycles; a look-up that fails to fill_valid 3; a line at line_valid to here_o 1.
/// Paths: write_i to line_ready; fill_wait_i to fill_group_o within.
/// Reset: forgets what is under way and empties the cache.
/// Requirements: write_i of a line that a read has found, not while clearing_o; the write that takes it to memory is known to fill_wait_i from the
/// next cycle on, or since before. line_base_i is a multiple of 4096 and changes only while clearing.
///
/// Why a line here is never older than memory's, as changed by all writes that were queued: a fill's line is as old as its question. A write
/// that was queued before the question keeps it from being asked; one after throws its answer away. A look-up takes two cycles to its
/// decision: a fill that ends keeps its group for two more, so that a failure from before it leads to nothing, and nothing is
/// asked for in the cycle of a write. No deadlock: a fill waits for memory, and for cycles without write_i.
module kv_lines
  import kv_core_pkg::*;
#(
    /// 2^n lines in the cache; 1 to 21.
    parameter int unsigned LineCacheBits = 12,
    /// Of memory: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// Lines that may be on their way from memory; a power of two, at most 16.
    parameter int unsigned Fills = 16,
    /// Announcements that wait; a power of two.
    parameter int unsigned Announcements = 32,
    localparam int unsigned FillBits = $clog2(Fills)
) (
    input wire clk_i,
    input wire rst_i,

    input wire address_t line_base_i,

    input  wire  clear_i,
    output logic clearing_o,

    /// It will be read soon. May be forgotten.
    input wire          announce_i,
    input wire bucket_t announce_bucket_i,

    input  wire                  read_i,
    input  wire bucket_t         read_bucket_i,
    output logic                 read_hit_o,
    output logic         [511:0] read_line_o,

    /// The line was not there, and nothing else is to be done. May end or change at any time.
    input  wire          want_i,
    input  wire bucket_t want_bucket_i,
    output logic         here_o,

    input wire                  write_i,
    input wire bucket_t         write_bucket_i,
    input wire          [511:0] write_line_i,

    output group_t fill_group_o,
    input  wire    fill_wait_i,

    // To the channels; what is not an array is for that whose valid is high.
    output logic     [Channels-1:0]               fill_valid,
    input  wire      [Channels-1:0]               fill_ready,
    output address_t                              fill_address,
    output logic     [FillBits-1:0]               fill_tag,
    input  wire      [Channels-1:0]               line_valid,
    output logic     [Channels-1:0]               line_ready,
    input  wire      [Channels-1:0][       511:0] line_data,
    input  wire      [Channels-1:0][FillBits-1:0] line_tag
);

  if (LineCacheBits < 1 || LineCacheBits >= $bits(bucket_t)) begin : gen_check_cache
    $fatal(1, "LineCacheBits must be 1 to 21 in %m");
  end
  if (Channels != 1 && Channels != 2 && Channels != 4) begin : gen_check_channels
    $fatal(1, "Channels must be 1, 2 or 4 in %m");
  end
  if (Fills < 2 || Fills > 16 || 2 ** FillBits != Fills) begin : gen_check_fills
    $fatal(1, "Fills must be a power of two, 2 to 16, in %m");
  end

  localparam int unsigned TagBits = $bits(bucket_t) - LineCacheBits;
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);
  typedef logic [TagBits-1:0] cache_tag_t;
  typedef logic [LineCacheBits-1:0] index_t;
  typedef logic [ChannelBits-1:0] channel_t;
  function automatic cache_tag_t tag_of(bucket_t bucket);
    return cache_tag_t'(bucket >> LineCacheBits);
  endfunction

  // verilator lint_off UNUSEDSIGNAL
  logic [$clog2(Announcements+1)-1:0] announced_count;
  logic [FillBits:0] asking_count;
  logic announced_almost_full, asking_almost_full, announce_ready, asking_ready;
  // verilator lint_on UNUSEDSIGNAL

  // ---- look-ups: 0 which, 1 the RAM reads, 2 decision

  typedef struct packed {
    logic valid;
    logic read;  // by read_i
    logic want;  // by want_i
    bucket_t bucket;
  } look_t;

  look_t look, look1_q, look2_q;
  logic announced_valid, announced_take, want_look;
  bucket_t announced;
  stream_fifo #(
      .Width($bits(bucket_t)),
      .Depth(Announcements),
      .Block(1'b0)
  ) i_announced (
      .clk_i,
      .rst_i,
      .s_valid(announce_i),
      .s_ready(announce_ready),
      .s_payload(announce_bucket_i),
      .m_valid(announced_valid),
      .m_ready(announced_take),
      .m_payload(announced),
      .count_o(announced_count),
      .almost_full_o(announced_almost_full)
  );

  assign want_look      = want_i && !here_o && !look1_q.want && !look2_q.want;
  assign announced_take = !read_i && !want_look;
  always_comb begin
    look.read   = read_i;
    look.want   = !read_i && want_look;
    look.valid  = read_i || want_look || announced_valid;
    look.bucket = read_i ? read_bucket_i : want_look ? want_bucket_i : announced;
  end
  always_ff @(posedge clk_i) begin
    look1_q <= look;
    look2_q <= look1_q;
    if (rst_i) begin
      look1_q.valid <= 1'b0;
      look2_q.valid <= 1'b0;
      look1_q.want  <= 1'b0;
      look2_q.want  <= 1'b0;
    end
  end

  logic ram_write, there;
  index_t ram_address;
  logic [511:0] ram_line;
  cache_tag_t ram_tag, tag;
  simple_dual_port_ram #(
      .Width(512 + TagBits + 1),
      .Depth(2 ** LineCacheBits),
      .Ultra(1'b1),
      .OutputRegister(1'b1)
  ) i_ram (
      .clk_i,
      .write_i(ram_write),
      .write_address_i(ram_address),
      .write_data_i({!clearing_o, ram_tag, ram_line}),
      .read_i(look.valid),
      .read_address_i(index_t'(look.bucket)),
      .read_data_o({there, tag, read_line_o})
  );

  logic hit;
  // By threes of bits, so that Yosys does not make a chain of it.
  localparam int unsigned TagThrees = (TagBits + 2) / 3;
  (* keep *)
  logic [TagThrees-1:0] tag_differs;
  logic [3*TagThrees-1:0] tag_wide, wanted_wide;
  assign tag_wide    = (3 * TagThrees)'(tag);
  assign wanted_wide = (3 * TagThrees)'(tag_of(look2_q.bucket));
  always_comb begin
    for (int i = 0; i < int'(TagThrees); i++) tag_differs[i] = tag_wide[3*i+:3] != wanted_wide[3*i+:3];
  end
  assign hit        = there && tag_differs == '0 && !clearing_o;
  assign read_hit_o = look2_q.valid && look2_q.read && hit;

  // ---- fills on their way

  logic [Fills-1:0] fill_q, worthless_q, fill_match, write_match, free;
  group_t fill_group_q[Fills];
  logic ask;
  logic [FillBits-1:0] ask_index;
  logic filled, filled1_q, filled2_q;  // 2: its entry is free from the next cycle on
  logic [FillBits-1:0] filled_index, filled1_index_q, filled2_index_q;

  // Compared as in kv_tracker.
  localparam int unsigned Threes = (GroupBits + 2) / 3;
  typedef logic [3*Threes-1:0] padded_t;
  (* keep *)
  logic [Fills-1:0][Threes-1:0] fill_equal, write_equal;
  padded_t ask_padded, write_padded;
  padded_t [Fills-1:0] fill_padded;
  logic [Fills:0] fill_carry;
  assign ask_padded   = padded_t'(fill_group_o);
  assign write_padded = padded_t'(group_of(write_bucket_i));
  assign fill_carry   = {1'b0, {Fills{1'b1}}} + {1'b0, fill_match};

  assign fill_group_o = group_of(look2_q.bucket);
  assign free         = ~fill_q & (fill_q + 1'b1);  // the lowest
  always_comb begin
    ask_index = '0;
    for (int i = 0; i < int'(Fills); i++) begin
      fill_padded[i] = padded_t'(fill_group_q[i]);
      for (int j = 0; j < int'(Threes); j++) begin
        fill_equal[i][j]  = fill_padded[i][3*j+:3] == ask_padded[3*j+:3];
        write_equal[i][j] = fill_padded[i][3*j+:3] == write_padded[3*j+:3];
      end
      fill_match[i]  = fill_q[i] && &fill_equal[i];
      write_match[i] = write_i && &write_equal[i];
      if (free[i]) ask_index |= FillBits'(i);
    end
  end
  assign ask = look2_q.valid && !hit && !clearing_o && !clear_i && !write_i && !fill_wait_i
             && !fill_carry[Fills] && fill_q != '1;

  always_ff @(posedge clk_i) begin
    worthless_q <= worthless_q | write_match | {Fills{clear_i}};
    if (filled2_q) fill_q[filled2_index_q] <= 1'b0;
    if (ask) begin
      fill_q[ask_index]       <= 1'b1;
      fill_group_q[ask_index] <= fill_group_o;
      worthless_q[ask_index]  <= 1'b0;
    end
    filled1_q       <= filled;
    filled1_index_q <= filled_index;
    filled2_q       <= filled1_q;
    filled2_index_q <= filled1_index_q;
    if (rst_i) begin
      fill_q    <= '0;
      filled1_q <= 1'b0;
      filled2_q <= 1'b0;
    end
  end

  // What has not been asked yet: at most Fills, so there is room.
  logic asking_valid, asking_take;
  bucket_t asking, filled_bucket;
  channel_t asking_channel;
  stream_fifo #(
      .Width($bits(bucket_t) + FillBits),
      .Depth(Fills)
  ) i_asking (
      .clk_i,
      .rst_i,
      .s_valid(ask),
      .s_ready(asking_ready),
      .s_payload({look2_q.bucket, ask_index}),
      .m_valid(asking_valid),
      .m_ready(asking_take),
      .m_payload({asking, fill_tag}),
      .count_o(asking_count),
      .almost_full_o(asking_almost_full)
  );
  assign asking_channel = Channels == 1 ? '0 : channel_t'(asking);
  assign asking_take = fill_ready[asking_channel];
  assign fill_address = {
    line_base_i[AddressBits-1:12] + (AddressBits - 12)'(asking[$bits(bucket_t)-1:6]), asking[5:0], 6'd0
  };
  always_comb begin
    fill_valid = '0;
    fill_valid[asking_channel] = asking_valid;
  end

  lutram #(
      .Width($bits(bucket_t)),
      .Depth(Fills)
  ) i_buckets (
      .clk_i,
      .write_i(ask),
      .write_address_i(ask_index),
      .write_data_i(look2_q.bucket),
      .read_address_i(filled_index),
      .read_data_o(filled_bucket)
  );

  // ---- what is written: the engine's line, else one that has come, else nothing while clearing

  channel_t from;
  logic filled_good;
  index_t clear_q;
  always_comb begin
    from = '0;
    for (int c = int'(Channels) - 1; c >= 0; c--) if (line_valid[c]) from = channel_t'(c);
  end
  always_comb begin
    line_ready = '0;
    line_ready[from] = !write_i;
  end
  assign filled       = |line_valid && !write_i;
  assign filled_index = line_tag[from];
  assign filled_good  = filled && !worthless_q[filled_index] && !clear_i;

  // filled_bucket == want_bucket_i
  localparam int unsigned BucketThrees = ($bits(bucket_t) + 2) / 3;
  typedef logic [BucketThrees-1:0][2:0] threes_t;
  threes_t filled_threes, want_threes;
  (* keep *)
  logic [BucketThrees-1:0] wanted;
  assign filled_threes = (3 * BucketThrees)'(filled_bucket);
  assign want_threes   = (3 * BucketThrees)'(want_bucket_i);
  always_comb begin
    for (int j = 0; j < int'(BucketThrees); j++) wanted[j] = filled_threes[j] == want_threes[j];
  end

  assign ram_write   = clearing_o || write_i || filled_good;
  assign ram_address = clearing_o ? clear_q : index_t'(write_i ? write_bucket_i : filled_bucket);
  assign ram_tag     = tag_of(write_i ? write_bucket_i : filled_bucket);
  assign ram_line    = write_i ? write_line_i : line_data[from];

  always_ff @(posedge clk_i) begin
    if (clearing_o) clear_q <= clear_q + 1'b1;
    if (clearing_o && clear_q == '1) clearing_o <= 1'b0;
    here_o <= want_i && !here_o && ((filled_good && &wanted)
            || (look2_q.want && hit && look2_q.bucket == want_bucket_i));
    if (rst_i || clear_i) begin
      clearing_o <= 1'b1;
      clear_q    <= '0;
    end
    if (rst_i) here_o <= 1'b0;
  end

  `ASSERT(line_base_aligned, line_base_i[11:0] == '0, "lines begin within a page")
  `ASSERT(not_written_while_clearing, !write_i || !clearing_o, "a line was written while the cache is cleared")
  `ASSERT(filled_what_was_asked, !filled || fill_q[filled_index], "a line came that nobody asked for")
  `ASSERT(room_to_ask, !ask || asking_ready, "no room for a question")

endmodule
`default_nettype wire
