// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of kv_line_cache: a hit returns the last write, for any behaviour of memory, jobs, fills and look-ups.
///
/// Two buckets of one group share a place of the cache. Each write to one way of the first has a number as its header.
/// Memory makes a write effective between its job and its end, and reads a line between request and answer. Announced
/// lines are left out: they are looked up like wanted ones, and no request waits for them.
module kv_line_cache_proof
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// The way that is watched. Way 3 shares its memory with the tag.
    parameter int unsigned Way = 0,
    localparam int unsigned Fills = 2,
    localparam int unsigned FillBits = $clog2(Fills)
) (
    input wire                clk_i,
    input wire                rst_i,
    input wire                read_i,
    input wire                changes_i,
    input wire                read_second_i,
    input wire                want_i,
    input wire                want_second_i,
    input wire                put_i,
    input wire [         1:0] way_i,
    input wire                effective_i,
    input wire                end_i,
    input wire                wait_i,
    input wire                ask_ready_i,
    input wire [   Fills-1:0] sample_i,
    input wire                deliver_i,
    input wire [FillBits-1:0] deliver_tag_i,
    input wire [         2:0] junk_i
);

  typedef logic [2:0] number_t;

  function automatic bucket_t bucket_of(logic second);
    return bucket_t'(second) << GroupBits;
  endfunction
  function automatic logic [127:0] header_of(number_t number);
    return {124'd0, 1'b1, number};  // with a mark: what comes of the other bucket has none
  endfunction

  // ---- the cache

  logic clearing_o, here_o, fill_valid, line_ready, line_valid_q;
  group_t fill_group_o;
  want_t want;
  lookup_t lookup;
  found_t found_o;
  line_write_t line_write;
  fill_t fill;
  filled_line_t line;
  logic fill_wait;
  assign want   = '{want: want_i, bucket: bucket_of(want_second_i)};
  assign lookup = '{read: read_i, changes: changes_i, bucket: bucket_of(read_second_i)};
  kv_line_cache #(
      .LineCacheBits(1),
      .Channels(1),
      .Fills(Fills),
      .Announcements(2)
  ) dut (
      .*,
      .line_base_i('0),
      .clear_i(1'b0),
      .announce_i('0),
      .lookup_i(lookup),
      .want_i(want),
      .line_write_i(line_write),
      .fill_wait_i(fill_wait),
      .fill_ready(ask_ready_i),
      .line_valid(line_valid_q)
  );

  // ---- the engine: a look-up, the job four cycles later, the way five cycles later

  logic [5:1] read_q, changes_q, second_q;  // look-ups, so many cycles ago
  logic [5:3] hit_q;
  logic write_q, write_second_q, put;
  logic [1:0] write_way_q;
  assign put = put_i && changes_q[4] && hit_q[4] && !changes_q[3];
  always_ff @(posedge clk_i) begin
    read_q         <= {read_q[4:1], read_i};
    changes_q      <= {changes_q[4:1], read_i && changes_i};
    second_q       <= {second_q[4:1], read_second_i};
    hit_q          <= {hit_q[4:3], found_o.hit};
    write_q        <= put;
    write_second_q <= second_q[4];
    write_way_q    <= way_i;
    if (rst_i) begin
      read_q    <= '0;
      changes_q <= '0;
      hit_q     <= '0;
      write_q   <= 1'b0;
    end
  end

  // ---- writes to the watched way: counts of those queued as jobs, in the cache, effective in memory, and ended

  number_t put_q, put2_q, cache_q, effective_q, end_q;
  logic put_watched, write_watched;
  assign put_watched = put && !second_q[4] && way_i == 2'(Way);
  assign write_watched = write_q && !write_second_q && write_way_q == 2'(Way);
  assign line_write = '{
          write: write_q,
          bucket: bucket_of(write_second_q),
          way: write_way_q,
          header: write_watched ? header_of(put_q) : '0
      };
  // Fills wait for all jobs that were queued before the question, which came one cycle ago. These include jobs for
  // other ways and for the other bucket.
  assign fill_wait = put2_q != end_q || wait_i;
  always_ff @(posedge clk_i) begin
    if (put_watched) put_q <= put_q + 1'b1;
    put2_q <= put_q;
    if (write_watched) cache_q <= put_q;
    if (effective_i && effective_q != put2_q) effective_q <= effective_q + 1'b1;
    if (end_i && end_q != effective_q) end_q <= end_q + 1'b1;
    if (rst_i) begin
      put_q       <= '0;
      put2_q      <= '0;
      cache_q     <= '0;
      effective_q <= '0;
      end_q       <= '0;
    end
  end

  // ---- reads by memory

  logic [Fills-1:0] asked_q, asked_second_q, sampled_q;
  number_t [Fills-1:0] number_q;
  logic after_q;  // a line was taken a cycle ago: its upper half is still there
  logic [FillBits-1:0] tag_q;
  number_t shown;
  logic deliver;
  assign deliver = deliver_i && !line_valid_q && !after_q && sampled_q[deliver_tag_i];
  assign shown   = number_q[tag_q];
  always_comb begin
    line.tag  = fill_tag_t'(tag_q);
    line.data = '0;
    if (!asked_second_q[tag_q]) line.data[128*Way+:128] = header_of(shown);
    if (after_q) line.data[2:0] = junk_i;
    if (after_q) line.data[130:128] = junk_i;
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Fills); i++) begin
      if (asked_q[i] && sample_i[i] && !sampled_q[i]) begin
        sampled_q[i] <= 1'b1;
        number_q[i]  <= effective_q;
      end
    end
    after_q <= line_valid_q && line_ready;
    if (line_valid_q && line_ready) begin
      line_valid_q <= 1'b0;
      asked_q[tag_q] <= 1'b0;
      sampled_q[tag_q] <= 1'b0;
    end
    if (deliver) begin
      line_valid_q <= 1'b1;
      tag_q        <= deliver_tag_i;
    end
    if (fill_valid && ask_ready_i) begin
      asked_q[FillBits'(fill.tag)]        <= 1'b1;
      asked_second_q[FillBits'(fill.tag)] <= fill.address[GroupBits+6];
      sampled_q[FillBits'(fill.tag)]      <= sample_i[FillBits'(fill.tag)];
      number_q[FillBits'(fill.tag)]       <= effective_q;
    end
    if (rst_i) begin
      asked_q      <= '0;
      sampled_q    <= '0;
      line_valid_q <= 1'b0;
      after_q      <= 1'b0;
    end
  end

  `RESET_FIRST
  `ASSUME(nothing_read_while_written, !write_q || !read_i)
  `ASSUME(numbers_suffice, put_q != '1)

  number_t [2:1] expected_q;
  always_ff @(posedge clk_i) expected_q <= {expected_q[1], cache_q};
  logic hit;
  assign hit = found_o.hit && !second_q[2];
  `ASSERT(hit_was_asked, !found_o.hit || read_q[2], "a hit without a look-up")
  `ASSERT(hit_shows_last_write, !hit || found_o.line[128*Way+:128] == header_of(expected_q[2]),
          "a hit is older than the last write, or another bucket's")
  `ASSERT(asked_once, !(fill_valid && ask_ready_i) || !asked_q[FillBits'(fill.tag)], "two fills have one tag")
  `COVER(hit_after_write, hit && expected_q[2] != '0)
  `COVER(evicted_before_its_write, write_watched && dut.lost)
  `COVER(thrown_away, line_valid_q && line_ready && dut.worthless_q[tag_q])

endmodule
`default_nettype wire
