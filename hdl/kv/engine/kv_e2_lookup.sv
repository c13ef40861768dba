// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's third stage, beside kv_e2_plan: compares the line's four ways with the request and selects one.
/// Combinational.
/// Behaviour: see ways_t. For a client's read or write the selected way is the one with the key.
/// If a write finds no key, it is the way that the key's hash prefers, or if that is not free,
/// the lowest free way. Exception: if versions lag (with refresh_i) and the write is not refused
/// for a missing key or a full bucket, it is the lowest lagging way. All other requests name
/// their way.
/// Latency: 0 cycles. `line_i` arrives late.
/// Reset: none.
/// Requirements: none.
module kv_e2_lookup
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
(
    input wire [511:0] line_i,

    input wire op_e op_i,
    // verilator lint_off UNUSEDSIGNAL  // most of it does not matter here
    input wire looked_t looked_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire [1:0] first_way_i,
    input wire refresh_i,

    output logic  several_o,  // two or more ways were written: the key may be in another bucket
    output ways_t ways_o
);

  // verilator lint_off UNUSEDSIGNAL  // the lane does not matter here
  kv_t kv;
  // verilator lint_on UNUSEDSIGNAL
  way_header_t [3:0] ways;
  logic [3:0][21:0] same;  // key comparison, in groups of three bits
  logic [3:0] match, free, equal;
  logic [1:0] found_way, new_way, named_way, detail_way;
  logic plain, found, searches, conditional, lags, adds, lagging, hit;
  logic [3:0] written, lag;
  logic [1:0] lag_way, other_way;
  assign kv          = looked_i.kv;
  assign plain       = op_i == OpRequest || op_i == OpAgain;
  assign searches    = plain && (kv.kind == KindRead || is_write(kv.kind));
  assign conditional = kv.kind == KindWriteIf || kv.kind == KindRemoveIf;
  assign found       = match != '0;
  assign found_way   = {match[3] | match[2], match[3] | match[1]};
  assign detail_way  = kv.detail[7:6];

  always_comb begin
    for (int i = 0; i < 4; i++) begin
      ways[i] = way_of(line_i, 2'(i));
      for (int j = 0; j < 22; j++) same[i][j] = 3'(ways[i].key >> 3 * j) == 3'(kv.key >> 3 * j);
      match[i] = all_of({same[i], ways[i].present, 1'b1});
      free[i] = !ways[i].present;
      equal[i] = same_word(ways[i].version, kv.version);
      written[i] = ways[i].reserved[0];
    end
    lag = '0;
    for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
    if (written[i] && written[j] && version_lags(ways[i].version[31:29], ways[j].version[31:29])) lag[i] = 1'b1;
    lags = lag != '0 && refresh_i && plain && is_write(kv.kind);
    // A write whose key is missing may be refused. The refusal has priority over a refresh.
    adds = !looked_i.removes && !(conditional && kv.version != '0) && free != '0;
    lag_way = {!lag[0] && !lag[1], !lag[0] && (lag[1] || !lag[2])};
    new_way = first_way_i;
    if (!free[first_way_i]) begin
      for (int i = 3; i >= 0; i--) if (free[i]) new_way = 2'(i);
    end
    named_way = detail_way;
    if (op_i == OpRequest && kv.kind == KindFetch) named_way = kv.key[1:0];
    if (op_i == OpRequest && is_replicated(kv.kind)) named_way = looked_i.window.way;
  end

  always_comb begin
    several_o = (written[0] && written[1]) || (written[2] && written[3]) || (written[1:0] != '0 && written[3:2] != '0);
    // The late signals come last in the logic.
    lagging = lags && (adds || found);
    hit = match != '0 && searches;
    other_way = searches ? new_way : named_way;
    ways_o.way = lagging ? lag_way : hit ? found_way : other_way;
    ways_o.lags = lagging;
    ways_o.header = ways[ways_o.way];
    ways_o.found = found;
    ways_o.same = kv.detail[5] ? match[detail_way] : free[detail_way];
    ways_o.fresh = newer(kv.version, ways[detail_way].version) || looked_i.flag;
    ways_o.equal = equal[detail_way];
    ways_o.no_key = looked_i.removes && !found;
    ways_o.mismatch = conditional && (found ? (match & equal) == '0 : kv.version != '0);
    ways_o.full = !found && free == '0;
    ways_o.free = free;
    for (int i = 0; i < 2; i++) begin
      ways_o.newest[i] = not_older(ways[2*i].version, ways[2*i+1].version) ? ways[2*i].version : ways[2*i+1].version;
    end
  end

endmodule
`default_nettype wire
