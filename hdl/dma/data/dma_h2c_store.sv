// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"
`include "stream.svh"

/// Writes completions to their places in the ring of lines. Each byte goes to the lane of its card address.
///
/// Behaviour: a request's completions come in order, those of several in any order. For each tag, the store keeps
/// the next byte's place and the missing bytes. Data after an error, excess data, and data without a request are not
/// written. Bytes move up by lane[1:0] bytes (byte_shift, multipliers), then by lane[5:2] words, to banks with own
/// addresses (dma_banks). Only the last lane[1:0] bytes wait: for the next beat, or a cycle after the completion.
/// Throughput: a beat a cycle; one more if a completion's last beat, moved up by bytes, continues in another line.
/// Cuts: valid and payload.
/// Latency: beat to stored_o 1 cycle, to the ring 2; a reader that waits for stored_o always reads later.
/// Reset: discards work in progress.
/// Requirements: no valid is high during reset; beats are as in completion_t.
module dma_h2c_store
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter int unsigned Lines = 512,
    parameter int unsigned Tags = 128,
    localparam int unsigned LineBits = $clog2(Lines),
    localparam int unsigned TagBits = $clog2(Tags),
    localparam int unsigned PlaceBits = LineBits + 6
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,

    // A piece with its tag; none comes while a completion uses the table (keep_o).
    // verilator lint_off UNUSEDSIGNAL  // of tag and line the low bits
    input wire piece_put_i,
    input wire piece_t piece,
    input wire tag_t piece_tag_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic keep_o,

    `STREAM_RECEIVER(s_completion, completion_t)

    /// Whether the completion's tag is in flight.
    input  wire     found_i,
    output stored_t stored_o,

    output bank_write_t write_o
);

  // ---- for each tag: the next byte's place, the missing bytes, and the error
  typedef struct packed {
    logic [PlaceBits-1:0] place;
    logic [12:0]          left;
    error_e               error;
  } progress_t;

  progress_t kept, here, next, next_q;
  logic [TagBits-1:0] tag;
  logic found, found_q, keep, take, final_, moves;
  completion_t comes;
  error_e error;
  assign comes  = s_completion_payload;
  assign tag    = comes.tag[TagBits-1:0];
  assign keep_o = s_completion_valid && comes.last && !comes.final_;
  assign keep   = keep_o && s_completion_ready && found;
  lutram #(
      .Width($bits(progress_t)),
      .Depth(Tags)
  ) i_progress (
      .*,
      .write_i(keep || piece_put_i),
      .write_address_i(keep_o ? tag : piece_tag_i[TagBits-1:0]),
      .write_data_i(keep_o ? next : {piece.line[LineBits-1:0], piece.lane, piece.bytes, 3'(ErrorNone)}),
      .read_address_i(tag),
      .read_data_o(kept)
  );

  assign here   = comes.first ? kept : next_q;
  assign found  = comes.first ? found_i : found_q;
  assign final_ = comes.last && comes.final_;
  always_comb begin
    error = here.error;
    if (error == ErrorNone) error = comes.error;
    if (error == ErrorNone && 13'(comes.bytes) > here.left) error = ErrorMalformed;
    if (error == ErrorNone && final_ && 13'(comes.bytes) != here.left) error = ErrorMalformed;
  end
  assign next = '{place: here.place + PlaceBits'(comes.bytes), left: here.left - 13'(comes.bytes), error: error};
  logic [ 6:0] arriving;
  logic [15:0] filled;
  assign arriving = comes.bytes + 7'(here.place[1:0]);
  always_comb for (int i = 0; i < 16; i++) filled[i] = 5'(i) < arriving[6:2];
  assign moves = found && !stop_i && error == ErrorNone && comes.bytes != '0;

  // ---- a beat on its way to the banks
  typedef struct packed {
    logic [TagBits-1:0]   tag;
    logic                 first;
    logic                 ends;    // its request
    error_e               error;
    logic [6:0]           reach;   // where its bytes end, moved up by bytes
    logic [15:0]          full;    // words that they fill
    logic                 spills;  // into a cycle of its own
    logic [PlaceBits-1:0] place;
    logic [23:0]          last;    // bytes
  } beat_t;
  beat_t beat_q;
  logic valid_q, moves_q, over_q, over, done;
  assign s_completion_ready = !valid_q || done;
  assign take = s_completion_valid && s_completion_ready;
  assign over = valid_q && moves_q && beat_q.spills && !over_q;
  assign done = valid_q && !over;
  assign stored_o = '{valid: done && beat_q.ends, tag: tag_t'(beat_q.tag), error: beat_q.error};
  always_ff @(posedge clk_i) begin
    if (s_completion_ready) valid_q <= s_completion_valid && found;
    if (take) begin
      next_q <= next;
      found_q <= found;
      moves_q <= moves;
      beat_q <= '{
          tag: tag,
          first: comes.first,
          ends: final_,
          error: error,
          reach: arriving,
          full: filled,
          spills: comes.last && arriving > 7'd64,
          place: here.place,
          last: comes.data[511:488]
      };
    end
    if (over) beat_q.full <= '0;  // what is left is less than a word
    over_q <= over;
    if (rst_i) begin
      valid_q <= 1'b0;
      over_q  <= 1'b0;
    end
  end

  // ---- moved by bytes, after the waiting last bytes of the beat before; a completion's last bytes go alone
  // Kept, here and below, so that a choice of four stays one LUT, and does not merge with another.
  `YOSYS_KEEP
  logic [15:0][31:0] words;
  byte_shift i_fine (
      .*,
      .load_i(take || over),
      .data_i({comes.data, beat_q.last}),
      .down_i(2'd3 - (over ? beat_q.place[1:0] : here.place[1:0])),
      .move_i(1'b1),
      .data_o(words)
  );

  // ---- moved by words: bank b takes word b - coarse
  logic enable_q;
  logic [3:0] coarse_q, last_at_q, beyond_q, upto_q;
  // An inverted copy for half of the choices: otherwise Yosys would make extra LUTs of their common terms.
  logic [3:0] not_coarse_q;
  logic [LineBits-1:0] line_q, line_after;
  `YOSYS_KEEP
  logic [15:0][31:0] once;
  // Word enables of the first word, the full words, and the word after them; and of each word's bank.
  logic [15:0] full_q;
  `YOSYS_KEEP
  logic [15:0] full_once, full_bank, first_bank, last_bank;
  logic [6:0] end_;
  logic [1:0] begin_;
  assign end_   = over_q ? 7'(beat_q.reach[1:0]) : beat_q.reach;
  assign begin_ = beat_q.first && !over_q ? beat_q.place[1:0] : 2'd0;
  always_ff @(posedge clk_i) begin
    enable_q     <= valid_q && moves_q;
    coarse_q     <= beat_q.place[5:2];
    not_coarse_q <= ~beat_q.place[5:2];
    line_q       <= beat_q.place[PlaceBits-1:6] + LineBits'(over_q);
    full_q       <= beat_q.full;
    last_at_q    <= beat_q.place[5:2] + end_[5:2];
    for (int i = 0; i < 4; i++) begin
      beyond_q[i] <= 2'(i) < end_[1:0] && !end_[6];
      upto_q[i]   <= 2'(i) < begin_;
    end
    if (rst_i) enable_q <= 1'b0;
  end
  assign line_after = line_q + 1'b1;
  for (genvar b = 0; b < 16; b++) begin : gen_bank
    // Four by four: two levels of a choice of two, because a `case` becomes two LUTs.
    logic [31:0] low, high, low_more, high_more;
    logic [1:0] far, near;
    assign far = b / 8 % 2 == 0 ? coarse_q[3:2] : ~not_coarse_q[3:2];
    assign near = b / 2 % 2 == 0 ? coarse_q[1:0] : ~not_coarse_q[1:0];
    assign low = far[0] ? words[(b+12)%16] : words[b];
    assign high = far[0] ? words[(b+4)%16] : words[(b+8)%16];
    assign once[b] = far[1] ? high : low;
    assign low_more = near[0] ? once[(b+15)%16] : once[b];
    assign high_more = near[0] ? once[(b+13)%16] : once[(b+14)%16];
    assign write_o.data[b] = near[1] ? high_more : low_more;
    assign write_o.line[b] = 5'(b) + 5'd1 > 5'(coarse_q) ? line_t'(line_q) : line_t'(line_after);
    assign full_once[b] = full_q[4'(b)-{coarse_q[3:2], 2'b00}];
    assign full_bank[b] = full_once[4'(b)-{2'b00, coarse_q[1:0]}];
    assign first_bank[b] = coarse_q == 4'(b);
    assign last_bank[b] = last_at_q == 4'(b);
    for (genvar k = 0; k < 4; k++) begin : gen_byte
      assign write_o.enable[b][k] = (full_bank[b] || (last_bank[b] && beyond_q[k]))
                                    && !(first_bank[b] && upto_q[k]) && enable_q;
    end
  end

  `ASSERT(whole_beats, !s_completion_valid || comes.last || comes.bytes == 7'd64 || comes.error != ErrorNone,
          "a beat within a completion is not full")
  `ASSERT(bytes_in_range, !s_completion_valid || comes.bytes <= 7'd64, "a beat of more than 64 bytes")

endmodule
`default_nettype wire
