// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Whether a request has read too early, because an earlier request is about to change the data.
///
/// Behaviour: a request in E1 is compared with those before it in E3 and in the two cycles after that:
/// docs/design/kv-core.md has the table. Two conflict if both concern one lane's record, buckets of one cell of the
/// filter (and so one line), or one note. Two kinds conflict with all others. A `replicate` that finds a note at its
/// place changes the filter at a second cell and may settle another lane. A request that ends a leftover returns a
/// place of the window that a client's value may be at. Only a write's own lane can change an entry of the window, so
/// that needs no comparison. A leader with a full window reports that a place's write is committed, and reuses the
/// place at once. The `replicate` is told that its note is settled (settled_o), and does not conflict for that reason.
/// Latency: 0 cycles.
/// Reset: nothing is before the next request.
/// Requirements: a request that changes state is in E3 at the earliest two cycles after another one. An operation of
/// kv_recovery is not compared, since it runs alone.
module kv_e1_conflicts
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    parameter kv_config_t Config = DefaultConfig
) (
    input wire clk_i,
    input wire rst_i,

    // In E1.
    // verilator lint_off UNUSEDSIGNAL  // not all of a header matters here
    input wire kv_t kv_i,
    input wire filter_cell_t cell_i,
    input wire noted_i,  // there is a note at its place
    output logic settled_o,  // and one before it settles that
    output logic conflict_o,

    // In E3.
    input wire changing_t changing_i
    // verilator lint_on UNUSEDSIGNAL
);

  localparam int unsigned LaneBits = Config.lane_bits;

  /// The data that a request reads and changes.
  typedef struct packed {
    logic all;
    logic settles;
    logic note;  // one, of `place` of `node`
    logic [2:0] node;
    place_t place;
    logic [LaneBits-1:0] lane;
    filter_cell_t where;
  } touched_t;

  // verilator lint_off UNUSEDSIGNAL
  function automatic touched_t touched(kv_t kv, filter_cell_t where, logic all, logic settles);
    touched.all = all;
    touched.settles = settles;
    touched.note = kv.kind[4:3] == 2'b01;
    touched.node = kv.node;
    touched.place = kv.detail[5:0];
    touched.lane = kv.client[LaneBits-1:0];
    touched.where = where;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // verilator lint_off UNUSEDSIGNAL  // it settles nothing
  touched_t reads;
  // verilator lint_on UNUSEDSIGNAL
  touched_t [1:0] ahead;  // in E3; and the one before, if it was there in the last two cycles
  touched_t left_q;
  logic [1:0] there;
  logic left4_q, left5_q;  // it has left E3 one cycle ago, two
  logic reads_lane;
  assign reads      = touched(kv_i, cell_i, noted_i && is_replicate(kv_i.kind), 1'b0);
  assign reads_lane = kv_i.kind != KindRead && kv_i.kind != KindFetch && kv_i.kind != KindPing;
  assign ahead      = {left_q, touched(changing_i.kv, changing_i.where, changing_i.all, changing_i.settles)};
  assign there      = {left4_q || left5_q, changing_i.valid};

  always_ff @(posedge clk_i) begin
    if (changing_i.valid) left_q <= ahead[0];
    left4_q <= changing_i.valid;
    left5_q <= left4_q;
    if (rst_i) begin
      left4_q <= 1'b0;
      left5_q <= 1'b0;
    end
  end

  // Compares threes of bits, so that Yosys does not build a carry chain.
  `YOSYS_KEEP
  logic [1:0][3:0] lanes_differ, cells_differ;
  `YOSYS_KEEP
  logic [1:0][2:0] notes_differ;
  logic [1:0] same_note, settled, conflicts;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      for (int j = 0; j < 4; j++) begin
        lanes_differ[i][j] = 3'(12'(ahead[i].lane) >> 3 * j) != 3'(12'(reads.lane) >> 3 * j);
        cells_differ[i][j] = ahead[i].where[3*j+:3] != reads.where[3*j+:3];
      end
      notes_differ[i] = {
        ahead[i].node != reads.node, ahead[i].place[5:3] != reads.place[5:3], ahead[i].place[2:0] != reads.place[2:0]
      };
      same_note[i] = notes_differ[i] == '0 && ahead[i].note && reads.note;
      settled[i] = there[i] && same_note[i] && ahead[i].settles && is_replicate(kv_i.kind);
      conflicts[i] = there[i] && (ahead[i].all || cells_differ[i] == '0 || (lanes_differ[i] == '0 && reads_lane)
          || (same_note[i] && !settled[i]));
    end
  end
  assign settled_o  = settled != '0;
  assign conflict_o = conflicts != '0 || (there != '0 && reads.all && !settled_o);

  `ASSERT(apart, !changing_i.valid || !left4_q, "two requests that change state follow each other at once")

endmodule
`default_nettype wire
