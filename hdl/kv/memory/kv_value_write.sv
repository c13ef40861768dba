// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// Feeds the channels with the words to be written: words of values from the pool, and ways of lines, which are stored
/// here with their write.
///
/// Behaviour: each channel has its pieces in order. In each cycle one channel with a piece whose word is ready gets a
/// word. The choice is round robin, since a channel takes a word only every other cycle. The words of a value follow
/// the parser, which may still be filling its place.
/// Latency: 2 cycles from a piece to data_valid. The second cycle reads the pool or the way.
/// Paths: data_ready and filling_i to pool_read_o.
/// Reset: forgets the pieces.
/// Requirements: a write keeps its place until memory has the write.
module kv_value_write
  import kv_core_pkg::*;
  import kv_memory_pkg::*;
#(
    /// Memory channels: 1, 2 or 4.
    parameter int unsigned Channels = 2,
    /// The most writes that are queued or in flight; a power of two.
    parameter int unsigned Writes   = 32
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // but for two bits of the job, and of places that there are
    // put_i queues a job that writes, with a way's header, in place index_i.
    input wire                      put_i,
    input wire memory_job_t         job_i,
    input wire              [127:0] header_i,
    input wire job_index_t          index_i,
    // verilator lint_on UNUSEDSIGNAL

    input  wire         [Channels-1:0] piece_valid,
    output logic        [Channels-1:0] piece_ready,
    input  wire piece_t                piece,

    output pool_read_t            pool_read_o,
    input  wire           [511:0] pool_data_i,
    input  wire filling_t         filling_i,

    output logic        [Channels-1:0] data_valid,
    input  wire         [Channels-1:0] data_ready,
    output write_word_t                data
);

  localparam int unsigned BeatBits = $clog2(ValueBeats);
  localparam int unsigned BurstBits = piece_bits(Channels);
  localparam int unsigned WriteBits = $clog2(Writes);
  localparam int unsigned ChannelBits = Channels == 1 ? 1 : $clog2(Channels);
  typedef logic [ChannelBits-1:0] channel_t;

  piece_t [Channels-1:0] pieces;
  `YOSYS_KEEP
  logic [Channels-1:0] feedable;
  logic [Channels-1:0] valid, take, last, go;
  logic [Channels-1:0][2:0] fed_q;  // words
  logic [Channels-1:0][BeatBits-1:0] beat;

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
    stream_fifo #(
        .Width($bits(piece_t)),
        .Depth(32)
    ) i_pieces (
        .*,
        .s_valid  (piece_valid[c]),
        .s_ready  (piece_ready[c]),
        .s_payload(piece),
        .m_valid  (valid[c]),
        .m_ready  (take[c]),
        .m_payload(pieces[c])
    );
    assign beat[c] = (BeatBits'(pieces[c].number) << BurstBits) | BeatBits'(BurstBits'(fed_q[c]));
    // Word ready: !(filling_i.filling && filling_i.place == place && filling_i.filled <= beat), in parts of one LUT.
    `YOSYS_KEEP
    logic [1:0] same;
    `YOSYS_KEEP
    logic above, level, low_above, blocked;
    assign same = {filling_i.place[5:3] == pieces[c].place[5:3], filling_i.place[2:0] == pieces[c].place[2:0]};
    assign above = filling_i.filled[4] || filling_i.filled[3:2] > beat[c][3:2];
    assign level = filling_i.filled[3:2] == beat[c][3:2];
    assign low_above = filling_i.filled[1:0] > beat[c][1:0];
    assign blocked = filling_i.filling && same == '1 && !above && !(level && low_above);
    assign feedable[c] = valid[c] && (pieces[c].way || !blocked);
    assign last[c] = fed_q[c] == pieces[c].words;
  end

  // ---- the channel that gets the next word

  `YOSYS_KEEP
  logic free;
  logic fetch, held_q, held_take;
  channel_t held_channel_q, chosen;
  assign held_take = held_q && data_ready[held_channel_q];
  assign free      = !held_q || held_take;
  assign fetch     = |feedable && free;

  // Not a stream_arbiter, because that keeps its offer until it is taken. Here the choice is new in each cycle.
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
      pick[c] = feedable[c] && (feedable & ahead[c]) == '0;
      go[c]   = pick[c] && free;
      take[c] = go[c] && last[c];
      if (pick[c]) chosen |= channel_t'(c);
    end
  end

  // ---- the word

  assign pool_read_o = '{read: fetch && !pieces[chosen].way, place: pieces[chosen].place, beat: beat[chosen]};

  logic last_q, is_way_q, clear, odd;
  logic [127:0] way;
  simple_dual_port_ram #(
      .Width(130),
      .Depth(Writes)
  ) i_ways (
      .*,
      .write_i(put_i),
      .write_address_i(WriteBits'(index_i)),
      .write_data_i({job_i.clears, job_i.way[0], header_i}),
      .read_i(fetch),
      .read_address_i(WriteBits'(pieces[chosen].index)),
      .read_data_o({clear, odd, way})
  );
  assign data = '{data: pool_data_i, last: last_q, is_way: is_way_q, way: way, odd: odd, clear: clear};
  always_comb begin
    data_valid = '0;
    data_valid[held_channel_q] = held_q;
  end

  always_ff @(posedge clk_i) begin
    if (fetch) begin
      held_channel_q <= chosen;
      last_q         <= last[chosen];
      is_way_q       <= pieces[chosen].way;
    end
    for (int c = 0; c < int'(Channels); c++) if (go[c]) fed_q[c] <= last[c] ? '0 : fed_q[c] + 1'b1;
    if (!held_q || held_take) held_q <= fetch;
    if (rst_i) begin
      held_q         <= 1'b0;
      held_channel_q <= '0;
      fed_q          <= '0;
    end
  end

endmodule
`default_nettype wire
