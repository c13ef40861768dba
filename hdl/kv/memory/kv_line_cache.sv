// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// A cache of bucket lines: direct-mapped, write-through, with a separate memory for each of a line's four ways.
///
/// Behaviour: lookup_i returns its line, or a miss, two cycles later. A miss requests the line from memory (a fill) at
/// once or not at all. Look-ups have this priority. First comes lookup_i. Then comes want_i, repeatedly, until here_o
/// reports that the wanted line is there; it must then be looked up at once. Last come announced lines, once each. In a
/// cycle of line_write_i there is no look-up. No fill is requested while another fill for its group is in flight, while
/// a write to its group is queued or in flight (fill_wait_i), or when Fills are in flight. `line_write_i` changes one
/// way of a line that was looked up for that purpose (changes). It uses the port of the look-ups. Fills use the other
/// port, and write half a line in each of two cycles. `line_write_i` also invalidates the group's fills in flight,
/// dropped on arrival. `clear_i` empties the cache, as reset does, during 2^LineCacheBits cycles of clearing_o.
/// Meanwhile Meanwhile every look-up misses and requests nothing.
/// Latency: 2 cycles from lookup_i to found_o; 3 from a look-up that misses to fill_valid; 1 from line_valid to here_o.
/// Reset: forgets work in progress and empties the cache.
/// Requirements: line_write_i comes five cycles after a look-up with `changes` that hit. It never comes with lookup_i
/// or clearing_o, and no other look-up with `changes` came in the cycle after that look-up. `fill_wait_i` comes one
/// cycle after fill_group_o. It is high for fills requested after line_write_i, because the write that takes the line
/// to memory is in flight. `line_base_i` is a multiple of 4096 and changes only during clearing. The upper half of
/// line.data, and line.tag, stay for one more cycle after line_ready.
///
/// Why a cached line is never older than memory with all queued writes: a fill's line is as old as its request. A write
/// that was queued before the request prevents the fill. A later write drops the fill's answer, even while it is being
/// stored (its tag then marks it as empty). A look-up decides after two cycles. A finished fill therefore keeps its
/// group for two more cycles, so earlier misses have no effect, and no fill is requested in a write's cycle.
/// Why line_write_i changes the right line: the line was there when it was read. If a fill has replaced it since
/// (lost), the place is empty afterwards. Up to two lines await this check, each for two cycles in the younger line's
/// registers, and then for two in the older's. There its place is compared with arriving fills.
/// Why a line is never half old and half new: the tag is written with the second half, and a read in the first half's
/// cycle misses. A read in the second half's cycle gets both halves, since the RAM returns the data being written.
/// There is no deadlock, because a fill waits only for memory.
module kv_line_cache
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// The cache has 2^LineCacheBits lines; 1 to 21.
    parameter int unsigned LineCacheBits = 12,
    /// Memory channels: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The most fills in flight; a power of two, at most 16.
    parameter int unsigned Fills = 16,
    /// The most waiting announcements; a power of two.
    parameter int unsigned Announcements = 32,
    localparam int unsigned FillBits = $clog2(Fills)
) (
    input wire clk_i,
    input wire rst_i,

    input wire address_t line_base_i,

    input  wire  clear_i,
    output logic clearing_o,

    /// The line will be read soon. The announcement may be lost.
    input wire want_t announce_i,

    input  wire lookup_t lookup_i,
    output found_t       found_o,

    /// The line was absent, and the engine waits for it. May end or change at any time.
    input  wire want_t want_i,
    output logic       here_o,

    input wire line_write_t line_write_i,

    output group_t fill_group_o,
    input  wire    fill_wait_i,

    // Requests to the channels.
    output logic              [Channels-1:0] fill_valid,
    input  wire               [Channels-1:0] fill_ready,
    output fill_t                            fill,
    input  wire               [Channels-1:0] line_valid,
    output logic              [Channels-1:0] line_ready,
    input  wire filled_line_t [Channels-1:0] line
);

  if (LineCacheBits < 1 || LineCacheBits >= $bits(bucket_t)) begin : gen_check_cache
    $fatal(1, "LineCacheBits must be 1 to 21 in %m");
  end
  if (Channels != 1 && Channels != 2 && Channels != 4) begin : gen_check_channels
    $fatal(1, "Channels must be 1, 2 or 4 in %m");
  end
  if (Fills < 2 || Fills > MostFills || 2 ** FillBits != Fills) begin : gen_check_fills
    $fatal(1, "Fills must be a power of two, 2 to 16, in %m");
  end

  localparam int unsigned TagBits = $bits(bucket_t) - LineCacheBits;
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);
  localparam int unsigned NearBits = LineCacheBits < GroupBits ? LineCacheBits : GroupBits;
  typedef logic [TagBits-1:0] cache_tag_t;
  typedef logic [LineCacheBits-1:0] index_t;
  typedef logic [ChannelBits-1:0] channel_t;
  function automatic cache_tag_t tag_of(bucket_t bucket);
    return cache_tag_t'(bucket >> LineCacheBits);
  endfunction

  // ---- look-ups: cycle 0 selects, 1 reads the RAM, 2 decides

  typedef struct packed {
    logic valid;
    logic read;  // by lookup_i
    logic changes;  // and that has changes
    logic want;  // by want_i
    bucket_t bucket;
  } look_t;

  look_t look, look1_q, look2_q;
  logic announced_valid, announced_take, want_look, unused_announce_ready;
  bucket_t announced;
  stream_fifo #(
      .Width($bits(bucket_t)),
      .Depth(Announcements),
      .Block(1'b0)
  ) i_announced (
      .*,
      .s_valid  (announce_i.want),
      .s_ready  (unused_announce_ready),
      .s_payload(announce_i.bucket),
      .m_valid  (announced_valid),
      .m_ready  (announced_take),
      .m_payload(announced)
  );

  assign want_look      = want_i.want && !here_o && !look1_q.want && !look2_q.want && !line_write_i.write;
  assign announced_take = !lookup_i.read && !want_look && !line_write_i.write;
  always_comb begin
    look.read = lookup_i.read;
    look.changes = lookup_i.read && lookup_i.changes;
    look.want = !lookup_i.read && want_look;
    look.valid = lookup_i.read || want_look || (announced_valid && !line_write_i.write);
    look.bucket = lookup_i.read ? lookup_i.bucket : want_look ? want_i.bucket : announced;
  end
  always_ff @(posedge clk_i) begin
    look1_q <= look;
    look2_q <= look1_q;
    if (rst_i) begin
      look1_q.valid <= 1'b0;
      look2_q.valid <= 1'b0;
      look1_q.want <= 1'b0;
      look2_q.want <= 1'b0;
      look1_q.read <= 1'b0;
      look2_q.read <= 1'b0;
      look1_q.changes <= 1'b0;
      look2_q.changes <= 1'b0;
    end
  end

  // A fill writes ways 0 and 1 first, then ways 2 and 3 with the tag, which is stored beside way 3.
  logic there, lost, fill_first, fill_second;
  index_t fill_at, port_at;
  logic [255:0] fill_data;
  cache_tag_t tag;
  logic [3:0] port_write;
  // lookup_i.bucket arrives late, so it is combined last. It never comes with write_i.
  `YOSYS_KEEP
  index_t port_early;
  assign port_early = index_t'(line_write_i.write ? line_write_i.bucket : want_look ? want_i.bucket : announced);
  assign port_at    = lookup_i.read ? index_t'(lookup_i.bucket) : port_early;
  for (genvar i = 0; i < 3; i++) begin : gen_way
    assign port_write[i] = line_write_i.write && line_write_i.way == 2'(i) && !lost;
    shared_port_ram #(
        .Width(128),
        .Depth(2 ** LineCacheBits),
        .OutputRegister(1'b1)
    ) i_way (
        .*,
        .write_i(i < 2 ? fill_first : fill_second),
        .write_address_i(fill_at),
        .write_data_i(fill_data[128*(i%2)+:128]),
        .port_read_i(look.valid),
        .port_write_i(port_write[i]),
        .port_address_i(port_at),
        .port_data_i(line_write_i.header),
        .read_data_o(found_o.line[128*i+:128])
    );
  end
  // A write to a way repeats the tag that is already stored.
  logic fill_there;
  cache_tag_t fill_is;
  assign port_write[3] = line_write_i.write && (line_write_i.way == 2'd3 || lost);
  shared_port_ram #(
      .Width(128 + TagBits + 1),
      .Depth(2 ** LineCacheBits),
      .OutputRegister(1'b1)
  ) i_way_and_tag (
      .*,
      .write_i(clearing_o || fill_second),
      .write_address_i(fill_at),
      .write_data_i({fill_there, fill_is, fill_data[255:128]}),
      .port_read_i(look.valid),
      .port_write_i(port_write[3]),
      .port_address_i(port_at),
      .port_data_i({!lost, tag_of(line_write_i.bucket), line_write_i.header}),
      .read_data_o({there, tag, found_o.line[511:384]})
  );

  logic hit, torn_q;
  // All comparisons here use groups of three bits, as in same_word.
  assign hit         = there && same_word(32'(tag), 32'(tag_of(look2_q.bucket))) && !clearing_o;
  assign found_o.hit = look2_q.read && hit && !torn_q;

  // ---- fills in flight

  logic [Fills-1:0] fill_q, worthless_q, fill_match, write_match, free;
  group_t ask_group, fill_group_q[Fills];
  logic ask;
  logic [FillBits-1:0] ask_index;
  logic filled, filled1_q, filled2_q;  // 2: its entry is free from the next cycle on
  `YOSYS_KEEP
  logic [FillBits-1:0] filled_index;
  logic [FillBits-1:0] filled1_index_q, filled2_index_q;

  localparam int unsigned Threes = (GroupBits + 2) / 3;
  typedef logic [3*Threes-1:0] padded_t;
  logic [Fills-1:0][Threes-1:0] fill_equal;
  // YOSYS_KEEP, so that Yosys does not restructure it.
  `YOSYS_KEEP
  logic [Fills-1:0][Threes-1:0] write_equal;
  padded_t ask_padded, write_padded;
  padded_t [Fills-1:0] fill_padded;
  logic [Fills:0] fill_carry;
  assign ask_padded   = padded_t'(ask_group);
  assign write_padded = padded_t'(group_of(line_write_i.bucket));
  assign fill_carry   = {1'b0, {Fills{1'b1}}} + {1'b0, fill_match};

  assign fill_group_o = group_of(look1_q.bucket);
  assign ask_group    = group_of(look2_q.bucket);
  assign free         = ~fill_q & (fill_q + 1'b1);  // the lowest
  always_comb begin
    ask_index = '0;
    for (int i = 0; i < int'(Fills); i++) begin
      fill_padded[i] = padded_t'(fill_group_q[i]);
      for (int j = 0; j < int'(Threes); j++) begin
        fill_equal[i][j]  = fill_padded[i][3*j+:3] == ask_padded[3*j+:3];
        write_equal[i][j] = fill_padded[i][3*j+:3] == write_padded[3*j+:3];
      end
      fill_match[i]  = all_of({fill_equal[i], fill_q[i], (23 - Threes)'('1)});
      write_match[i] = line_write_i.write && &write_equal[i];
      if (free[i]) ask_index |= FillBits'(i);
    end
  end
  assign ask = look2_q.valid && !hit && !clearing_o && !clear_i && !line_write_i.write && !fill_wait_i
             && !fill_carry[Fills] && fill_q != '1;

  always_ff @(posedge clk_i) begin
    worthless_q <= worthless_q | write_match | {Fills{clear_i}};
    if (filled2_q) fill_q[filled2_index_q] <= 1'b0;
    if (ask) begin
      fill_q[ask_index]       <= 1'b1;
      fill_group_q[ask_index] <= ask_group;
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

  // Fills that are not requested yet. There are at most Fills, so there is always room.
  logic asking_valid, asking_take, asking_ready;
  logic [FillBits-1:0] asking_index;
  bucket_t asking, filled_bucket;
  channel_t asking_channel;
  stream_fifo #(
      .Width($bits(bucket_t) + FillBits),
      .Depth(Fills)
  ) i_asking (
      .*,
      .s_valid  (ask),
      .s_ready  (asking_ready),
      .s_payload({look2_q.bucket, ask_index}),
      .m_valid  (asking_valid),
      .m_ready  (asking_take),
      .m_payload({asking, asking_index})
  );
  assign asking_channel = Channels == 1 ? '0 : channel_t'(asking);
  assign asking_take = fill_ready[asking_channel];
  assign fill = '{
          address: {
            line_base_i[AddressBits-1:12] + (AddressBits - 12)'(asking[$bits(bucket_t)-1:6]), asking[5:0], 6'd0
          },
          tag: fill_tag_t'(asking_index)
      };
  always_comb begin
    fill_valid = '0;
    fill_valid[asking_channel] = asking_valid;
  end

  lutram #(
      .Width($bits(bucket_t)),
      .Depth(Fills)
  ) i_buckets (
      .*,
      .write_i(ask),
      .write_address_i(ask_index),
      .write_data_i(look2_q.bucket),
      .read_address_i(filled_index),
      .read_data_o(filled_bucket)
  );

  // ---- arrived data: half a line in each cycle, the second half from the same channel

  channel_t first_from, from_q;
  `YOSYS_KEEP
  channel_t from;
  logic second_q, good_q;  // the second half is written, and is worth it
  logic near, filled_good;
  logic   filled_worth;
  index_t clear_q;
  always_comb begin
    first_from = '0;
    for (int c = int'(Channels) - 1; c >= 0; c--) if (line_valid[c]) first_from = channel_t'(c);
  end
  assign from = second_q ? from_q : first_from;
  always_comb begin
    line_ready = '0;
    line_ready[from] = !second_q;
  end
  assign filled       = |line_valid && !second_q;
  assign filled_index = FillBits'(line[from].tag);
  // True for the same group, or for the same place of the cache.
  assign near         = same_word(32'(NearBits'(filled_bucket)), 32'(NearBits'(line_write_i.bucket)));
  assign filled_worth = filled && !worthless_q[filled_index] && !clear_i;
  assign filled_good  = filled_worth && !(line_write_i.write && near);
  assign fill_first   = filled_good;
  assign fill_second  = second_q && good_q;
  // For the line itself, `lost` reports the same at the other port, so the order of the two writes is irrelevant.
  assign fill_there   = !clearing_o && !clear_i && !(line_write_i.write && near);
  assign fill_is      = tag_of(filled_bucket);
  assign fill_at      = clearing_o ? clear_q : index_t'(filled_bucket);
  assign fill_data    = second_q ? line[from].data[511:256] : line[from].data[255:0];

  always_ff @(posedge clk_i) begin
    second_q <= filled;
    from_q   <= first_from;
    good_q   <= filled_good;
    if (rst_i) second_q <= 1'b0;
  end

  // first: a fill began to replace the line in the cycle of its read. For lines that may be written, young and old tell
  // whether a fill has begun since: young 2 and 3 cycles after the read, old 4 and 5 cycles after it.
  index_t first_at_q, young_at_q, old_at_q;
  logic began, young_gone_q, young_gone, old_gone_q, changes3_q;
  assign began      = second_q && good_q;
  assign young_gone = young_gone_q || (began && first_at_q == young_at_q);
  assign lost       = old_gone_q || (began && first_at_q == old_at_q);
  always_ff @(posedge clk_i) begin
    first_at_q   <= fill_at;
    torn_q       <= look1_q.read && began && first_at_q == index_t'(look1_q.bucket);
    changes3_q   <= look2_q.changes;
    young_gone_q <= young_gone && !look1_q.changes;
    old_gone_q   <= changes3_q ? young_gone : lost;
    if (look1_q.changes) young_at_q <= index_t'(look1_q.bucket);
    if (changes3_q) old_at_q <= young_at_q;
    if (rst_i) begin
      changes3_q   <= 1'b0;
      young_gone_q <= 1'b0;
      old_gone_q   <= 1'b0;
    end
  end

  logic wanted;
  assign wanted = same_word(32'(filled_bucket), 32'(want_i.bucket));

  always_ff @(posedge clk_i) begin
    if (clearing_o) clear_q <= clear_q + 1'b1;
    if (clearing_o && clear_q == '1) clearing_o <= 1'b0;
    here_o <= want_i.want && !here_o && ((filled && !worthless_q[filled_index] && wanted)
            || (look2_q.want && hit && same_word(
        32'(look2_q.bucket), 32'(want_i.bucket)
    )));
    if (rst_i || clear_i) begin
      clearing_o <= 1'b1;
      clear_q    <= '0;
    end
    if (rst_i) here_o <= 1'b0;
  end

  `ASSERT(line_base_aligned, line_base_i[11:0] == '0, "lines begin within a page")
  `ASSERT(not_written_while_clearing, !line_write_i.write || !clearing_o,
          "a line was written while the cache is cleared")
  `ASSERT(not_looked_up_while_written, !line_write_i.write || !look.valid, "lines were looked up while one is written")
`ifndef SYNTHESIS
  logic [5:3] found_q;  // to be changed, so many cycles after it was looked up
  always_ff @(posedge clk_i) begin
    found_q <= {found_q[4:3], look2_q.changes && found_o.hit && !look1_q.changes};
    if (rst_i) found_q <= '0;
  end
`endif
  `ASSERT(written_what_was_read, !line_write_i.write || (found_q[5] && index_t'(line_write_i.bucket) == old_at_q),
          "a line was written that had not been read for that")
  `ASSERT(filled_what_was_asked, !filled || fill_q[filled_index], "a line came that nobody asked for")
  `ASSERT(room_to_ask, !ask || asking_ready, "no room for a question")

endmodule
`default_nettype wire
