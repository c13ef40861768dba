// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The engine's memories: lane records, notes, filters of buckets, and the window.
///
/// Behaviour: entered_i reads all memories at once. Changes are registered, and written one cycle later. A decision may
/// change two filter cells; the second is written one cycle later. `again_i` reads the filter of the note's bucket, in
/// the cycle after entered_i. A window place counts as used a cycle after its content is readable, and as free equally
/// late. `clear_i` clears lanes, notes and filters at its address.
/// Latency: entered_i to records_o 1 cycle, to answered_o 0; again_i to filter 1; decision to memories 2, in_use_o 3.
/// Reset: nothing is in progress, and all window places are free. `clear_i` clears the rest.
/// Requirements: no decision changes a filter in the cycle after one that changes two, nor while clear_i is high.
module kv_records
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    parameter kv_config_t Config = DefaultConfig
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // its lane, sender and place; what matters of a decision
    input wire entered_t   entered_i,
    input wire             again_i,
    input wire decision_t  decision_i,
    input wire looked_t    looked_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire ram_clear_t clear_i,

    output records_t                  records_o,
    output logic         [       7:0] answered_o,
    output logic         [Places-1:0] in_use_o,    // places of the window
    output place_count_t              used_o       // so many
);

  localparam int unsigned LaneBits = Config.lane_bits;

  logic read;
  // verilator lint_off UNUSEDSIGNAL
  kv_t  kv;
  // verilator lint_on UNUSEDSIGNAL
  assign read = entered_i.valid;
  assign kv   = entered_i.kv;
  place_t place;
  assign place = kv.detail[5:0];

  lane_t lane_write_q;
  logic lane_put_q;
  logic [LaneBits-1:0] lane_at_q;
  simple_dual_port_ram #(
      .Width($bits(lane_t)),
      .Depth(2 ** LaneBits)
  ) i_lanes (
      .*,
      .write_i(lane_put_q),
      .write_address_i(lane_at_q),
      .write_data_i(lane_write_q),
      .read_i(read),
      .read_address_i(kv.client[LaneBits-1:0]),
      .read_data_o(records_o.lane)
  );

  note_t note_write_q;
  logic note_put_q;
  logic [8:0] note_at_q;
  simple_dual_port_ram #(
      .Width($bits(note_t)),
      .Depth(512)
  ) i_notes (
      .*,
      .write_i(note_put_q),
      .write_address_i(note_at_q),
      .write_data_i(note_write_q),
      .read_i(read),
      .read_address_i({kv.node, place}),
      .read_data_o(records_o.note)
  );

  filter_t filter_write_q;
  logic filter_put_q;
  filter_cell_t filter_at_q;
  simple_dual_port_ram #(
      .Width($bits(filter_t)),
      .Depth(4096)
  ) i_filter (
      .*,
      .write_i(filter_put_q),
      .write_address_i(filter_at_q),
      .write_data_i(filter_write_q),
      .read_i(read || again_i),
      .read_address_i(filter_cell(again_i ? records_o.note.bucket : entered_i.bucket)),
      .read_data_o(records_o.filter)
  );

  window_t window_write_q;
  logic window_put_q, window_clear_q, answered_put_q, in_use_change_q, in_use_q;
  place_t window_at_q, in_use_at_q;
  logic [7:0] answered_write_q;
  simple_dual_port_ram #(
      .Width($bits(window_t)),
      .Depth(Places)
  ) i_window (
      .*,
      .write_i(window_put_q),
      .write_address_i(window_at_q),
      .write_data_i(window_write_q),
      .read_i(read),
      .read_address_i(place),
      .read_data_o(records_o.window)
  );
  lutram #(
      .Width(8),
      .Depth(Places)
  ) i_answered (
      .*,
      .write_i(answered_put_q),
      .write_address_i(window_at_q),
      .write_data_i(answered_write_q),
      .read_address_i(place),
      .read_data_o(answered_o)
  );

  // ---- writes

  logic filter_second_q;
  filter_t filter_second_write_q;
  filter_cell_t filter_second_at_q;

  always_ff @(posedge clk_i) begin
    lane_put_q      <= decision_i.lane_put || clear_i.valid;
    lane_write_q    <= decision_i.lane;
    lane_at_q       <= clear_i.valid ? LaneBits'(clear_i.at) : looked_i.kv.client[LaneBits-1:0];
    note_put_q      <= decision_i.note_put || clear_i.valid;
    note_write_q    <= decision_i.note;
    note_at_q       <= clear_i.valid ? clear_i.at[8:0] : {decision_i.note_node, looked_i.kv.detail[5:0]};
    window_put_q    <= decision_i.window_put;
    window_write_q  <= decision_i.window;
    window_at_q     <= decision_i.window_place;
    window_clear_q  <= decision_i.window_clear;
    // A request may read the entry one cycle before it is written. It reads in_use_o one cycle later, so in_use_o must
    // still be low then.
    in_use_at_q     <= window_at_q;
    in_use_change_q <= window_put_q || window_clear_q;
    in_use_q        <= window_put_q;
    if (in_use_change_q) begin
      in_use_o[in_use_at_q] <= in_use_q;
      // A free place may be freed again, so only changes are counted.
      if (in_use_o[in_use_at_q] != in_use_q) used_o <= in_use_q ? used_o + 1'b1 : used_o - 1'b1;
    end
    answered_put_q <= decision_i.answered_put;
    answered_write_q <= decision_i.answered;

    // A second filter cell is written in the next cycle. No other write comes in that cycle.
    filter_put_q <= decision_i.filter_put || filter_second_q || clear_i.valid;
    filter_write_q <= filter_second_q ? filter_second_write_q : decision_i.filter;
    filter_at_q <= clear_i.valid ? clear_i.at : filter_second_q ? filter_second_at_q : filter_cell(looked_i.bucket);
    filter_second_q <= decision_i.filter_old_put;
    filter_second_write_q <= decision_i.filter_old;
    filter_second_at_q <= filter_cell(looked_i.note.bucket);
    if (clear_i.valid) begin
      lane_write_q   <= '0;
      note_write_q   <= '0;
      filter_write_q <= '0;
    end
    if (rst_i) begin
      lane_put_q      <= 1'b0;
      note_put_q      <= 1'b0;
      window_put_q    <= 1'b0;
      window_clear_q  <= 1'b0;
      in_use_change_q <= 1'b0;
      in_use_o        <= '0;
      used_o          <= '0;
      answered_put_q  <= 1'b0;
      filter_put_q    <= 1'b0;
      filter_second_q <= 1'b0;
    end
  end

  `ASSERT(used_right, used_o == place_count_t'($countones(in_use_o)), "the count is not that of the places in use")

endmodule
`default_nettype wire
