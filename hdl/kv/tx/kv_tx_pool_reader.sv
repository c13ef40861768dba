// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Reads a value from the pool word by word. It waits for the parser, which may still be filling the place.
///
/// Behaviour: start_i starts reading the words of the record's value. `idle_o` rises after the last one. A word stays
/// at the pool's output, with valid_o, until it is taken. The next word is read in the same cycle.
/// Latency: start_i to the first read 1 cycle, to valid_o 2.
/// Paths: take_i and filling_i to pool_read_o.
/// Reset: forgets the value.
/// Requirements: start_i only while idle_o is high, for a value with at least one word.
module kv_tx_pool_reader
  import kv_core_pkg::*;
  import kv_tx_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire             start_i,
    input  wire tx_record_t record_i,
    output logic            idle_o,

    output pool_read_t    pool_read_o,
    input  wire filling_t filling_i,

    output logic valid_o,
    input  wire  take_i    // also while there is none
);

  localparam int unsigned BeatBits = $clog2(ValueBeats);

  place_t place_q;
  logic [BeatBits-1:0] beat_q;
  logic [BeatBits:0] left_q;  // words still to be read
  logic held_q, unwritten;

  assign idle_o = left_q == '0;
  assign valid_o = held_q;
  assign unwritten = filling_i.filling && filling_i.place == place_q && filling_i.filled <= {1'b0, beat_q};
  assign pool_read_o = '{read: !idle_o && (!held_q || take_i) && !unwritten, place: place_q, beat: beat_q};

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      place_q <= record_i.place;
      beat_q  <= '0;
      left_q  <= (BeatBits + 1)'((record_i.length + 11'(BeatBytes - 1)) >> $clog2(BeatBytes));
    end else if (pool_read_o.read) begin
      beat_q <= beat_q + 1'b1;
      left_q <= left_q - 1'b1;
    end
    if (!held_q || take_i) held_q <= pool_read_o.read;
    if (rst_i) begin
      left_q <= '0;
      held_q <= 1'b0;
    end
  end

  logic unused_record;
  assign unused_record = ^record_i;

endmodule
`default_nettype wire
