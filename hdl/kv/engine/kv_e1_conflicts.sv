// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Detects that a request has read data which an earlier request is about to change.
///
/// Behaviour: compares a request in E1 with earlier ones, from E3 to two cycles after it: table in
/// docs/design/kv-core.md. Two requests conflict if they concern the same lane's record, the same cell of the filter
/// (so also the same line), or the same note. Two kinds conflict with every request. One is a `replicate` that finds a
/// note at its place: it also changes a second filter cell and may settle another lane. The other ends a leftover: it
/// frees a window place that a client's value may be at. Window entries need no comparison, because only a write's own
/// lane changes its entry. A leader with a full window sends the commit of a place and reuses the place at once. Its
/// `replicate` learns from settled_o that the note is settled, and so does not conflict.
/// Latency: 0 cycles.
/// Reset: no earlier request is in progress.
/// Requirements: a request that changes state reaches E3 at least two cycles after another one. An operation of
/// kv_recovery is not compared, because it runs alone.
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
    input wire noted_i,  // there is a note at the request's place
    output logic settled_o,  // an earlier request settles that note
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
    logic note;  // it concerns the note at `place` of `node`
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
  touched_t [1:0] ahead;  // 0: the request in E3; 1: the one before, if it was in E3 in the last two cycles
  touched_t left_q;
  logic [1:0] there;
  logic left4_q, left5_q;  // that request left E3 one cycle ago (left4), or two (left5)
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

  // Compares groups of three bits, so that Yosys does not build a carry chain.
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
