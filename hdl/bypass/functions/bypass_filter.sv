// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Filters frames by their first 64 bytes. Each rule compares some bits, and the first matching rule decides.
///
/// Behaviour: the first beat is cut into 128 pieces of four bits. For each value of a piece, with its byte present
/// or absent, a LUT RAM has one bit for each rule: whether the rule allows it. A rule matches if all pieces allow
/// it. rules_i.build builds the table row by row from filter_match and filter_mask; until then no rule matches.
/// Stream frames to be dropped end here. Frames in place continue with way.drop, and without way.look.
/// Latency: 2 cycles. The table is complete 8195 cycles after rules_i.build, plus one per cycle of rules_i.taken.
/// Paths: m_ready to s_ready.
/// Reset: discards frames in progress, and builds the table.
/// Requirements: an enabled rule (filter_settings_t) must not change. The ones of s_keep begin at the lowest bit.
module bypass_filter
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
#(
    /// 1 to MaxRules.
    parameter int unsigned Rules = MaxRules
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // there may be fewer rules
    input wire filter_settings_t settings_i,
    // verilator lint_on UNUSEDSIGNAL

    input  wire rules_given_t rules_i,
    output rules_asked_t      rules_o,

    input  wire               s_valid,
    output logic              s_ready,
    input  wire way_t         s_way,
    input  wire bypass_axis_t s_payload,

    output logic         m_valid,
    input  wire          m_ready,
    output way_t         m_way,
    output bypass_axis_t m_payload,

    /// A frame was judged by this rule, or by none if it is MaxRules.
    output logic       event_o,
    output logic [3:0] event_rule_o
);

  if (Rules < 1 || Rules > MaxRules) begin : gen_check_rules
    $fatal(1, "Rules must be 1 to MaxRules in %m");
  end

  localparam int unsigned Pieces = 128;
  localparam int unsigned WordPieces = 8;  // in a word of 32 bits
  typedef logic [Rules-1:0] rules_t;

  // ---- building: for each word of the frame and each row, all rules, the last one first; match, then mask

  typedef struct packed {
    logic [3:0] word;
    logic [4:0] row;     // the byte is there; four bits
    logic [2:0] passed;  // rules of this row that were read
    logic       mask;
  } step_t;
  step_t step_q, read_q;
  logic done_q, reads_q, write_q, right_q;
  assign rules_o = '{building: !right_q, word: {step_q.mask, ~step_q.passed, step_q.word}};

  always_ff @(posedge clk_i) begin
    reads_q <= !done_q && !rules_i.taken;
    read_q  <= step_q;
    if (!done_q && !rules_i.taken) {done_q, step_q} <= {1'b0, step_q} + 1'b1;
    if (rst_i || rules_i.build) begin
      done_q  <= 1'b0;
      step_q  <= '0;
      reads_q <= 1'b0;
    end
  end

  logic [31:0] match_q;
  logic [WordPieces-1:0][MaxRules-1:0] row_q;
  logic [WordPieces-1:0] piece;
  logic [3:0] row_word_q;
  logic [4:0] row_number_q;
  always_comb begin
    for (int i = 0; i < int'(WordPieces); i++) begin
      piece[i] = ((match_q[4*i+:4] ^ read_q.row[3:0]) & rules_i.word[4*i+:4]) == '0
          && (read_q.row[4] || rules_i.word[4*i+:4] == '0);
    end
  end
  always_ff @(posedge clk_i) begin
    write_q      <= reads_q && read_q.mask && read_q.passed == '1;
    row_word_q   <= read_q.word;
    row_number_q <= read_q.row;
    if (reads_q) begin
      if (!read_q.mask) match_q <= rules_i.word;
      else for (int i = 0; i < int'(WordPieces); i++) row_q[i] <= {row_q[i][MaxRules-2:0], piece[i]};
    end
    right_q <= done_q && !reads_q && !write_q;
    if (rst_i || rules_i.build) begin
      write_q <= 1'b0;
      right_q <= 1'b0;
    end
  end

  // ---- the table looks up the first beat

  rules_t [Pieces-1:0] allows;
  logic [Pieces-1:0][4:0] piece_value;
  for (genvar i = 0; i < int'(Pieces); i++) begin : gen_piece
    assign piece_value[i] = {s_payload.keep[i/2], s_payload.data[4*i+:4]};
    lutram #(
        .Width(Rules),
        .Depth(32)
    ) i_rows (
        .clk_i,
        .write_i(write_q && row_word_q == 4'(i / WordPieces)),
        .write_address_i(row_number_q),
        .write_data_i(row_q[i%WordPieces][Rules-1:0]),
        .read_address_i(piece_value[i]),
        .read_data_o(allows[i])
    );
  end

  // One LUT combines six pieces. The results are combined after a register.
  localparam int unsigned Groups = (Pieces + 5) / 6;
  rules_t [Groups-1:0] group, group_q;
  always_comb begin
    group = '1;
    for (int i = 0; i < int'(Pieces); i++) group[i/6] &= allows[i];
  end

  logic valid1_q, valid2_q, next_first_q, first1_q, first2_q, right1_q, move1, move2, passes;
  way_t way1_q, way2_q;
  bypass_axis_t axis1_q, axis2_q;
  rules_t matching;
  logic [3:0] rule, rule2_q;
  logic drop, drop2_q;
  assign passes  = !drop2_q || way2_q.place;
  assign move2   = !valid2_q || !passes || m_ready;
  assign move1   = !valid1_q || move2;
  assign s_ready = move1;

  always_comb begin
    matching = settings_i.enable[Rules-1:0] & {Rules{right1_q && right_q}};
    for (int i = 0; i < int'(Groups); i++) matching &= group_q[i];
    rule = 4'(MaxRules);
    drop = settings_i.drop_default;
    for (int i = int'(Rules) - 1; i >= 0; i--) begin
      if (matching[i]) begin
        rule = 4'(i);
        drop = settings_i.drop[i];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (move1) begin
      valid1_q <= s_valid;
      first1_q <= next_first_q;
      way1_q   <= s_way;
      axis1_q  <= s_payload;
      group_q  <= group;
      right1_q <= right_q;
      if (s_valid) next_first_q <= s_payload.last;
    end
    if (move2) begin
      valid2_q <= valid1_q;
      first2_q <= first1_q;
      way2_q   <= way1_q;
      axis2_q  <= axis1_q;
      if (valid1_q && first1_q) begin
        drop2_q <= drop;
        rule2_q <= rule;
      end
    end
    if (rst_i) begin
      valid1_q     <= 1'b0;
      valid2_q     <= 1'b0;
      next_first_q <= 1'b1;
    end
  end

  assign m_valid   = valid2_q && passes;
  assign m_payload = axis2_q;
  always_comb begin
    m_way = way2_q;
    if (way2_q.place && drop2_q) begin
      m_way.drop = 1'b1;
      m_way.look = 1'b0;
    end
  end
  assign event_o      = valid2_q && first2_q && move2;
  assign event_rule_o = rule2_q;

  `ASSERT(nothing_while_building, !(valid1_q && first1_q) || right_q || rule == 4'(MaxRules),
          "a rule matches while the table is being built")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, {m_way, m_payload} == $past({m_way, m_payload}),
               "a beat changed before it was taken")

endmodule
`default_nettype wire
