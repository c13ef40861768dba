// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Sums the 16-bit words of a beat, as a part of an internet checksum (RFC 1071).
///
/// Behaviour: word i consists of bytes 2i (high) and 2i + 1 (low) of the beat, in wire order. The sum is not folded: 32
/// words of 16 bits need 21 bits.
/// Latency: a beat is accepted when enable_i is high. Its sum is valid two cycles later, for a cycle or more. halves_o
/// is valid from one cycle after the beat until the next beat.
/// Reset: none.
/// Requirements: none.
module kv_sum (
    input wire clk_i,

    input  wire                enable_i,
    input  wire  [511:0]       beat_i,
    /// Four partial sums of eight words each, one cycle earlier than sum_o.
    output logic [  3:0][18:0] halves_o,
    output logic [ 20:0]       sum_o
);

  // Each is a two-input adder, which is a carry chain. Yosys would merge the adders of a stage into a carry-save tree
  // with twice the LUTs and no fewer levels. It does not if a sum's highest bit passes through some logic without
  // effect.
  function automatic logic [16:0] apart17(logic [16:0] a);
    return {a[16] && (a[16] || a[0]), a[15:0]};
  endfunction
  function automatic logic [18:0] apart19(logic [18:0] a);
    return {a[18] && (a[18] || a[0]), a[17:0]};
  endfunction
  function automatic logic [19:0] apart20(logic [19:0] a);
    return {a[19] && (a[19] || a[0]), a[18:0]};
  endfunction

  logic [31:0][15:0] word;
  logic [15:0][16:0] pair;
  logic [ 7:0][17:0] quarter_q;
  logic [ 1:0][19:0] whole;

  always_comb begin
    for (int i = 0; i < 32; i++) word[i] = {beat_i[16*i+:8], beat_i[16*i+8+:8]};
    for (int i = 0; i < 16; i++) pair[i] = 17'(word[2*i]) + 17'(word[2*i+1]);
    for (int i = 0; i < 4; i++) halves_o[i] = 19'(quarter_q[2*i]) + 19'(quarter_q[2*i+1]);
    for (int i = 0; i < 2; i++) whole[i] = 20'(apart19(halves_o[2*i])) + 20'(apart19(halves_o[2*i+1]));
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      for (int i = 0; i < 8; i++) quarter_q[i] <= 18'(apart17(pair[2*i])) + 18'(apart17(pair[2*i+1]));
    end
    sum_o <= 21'(apart20(whole[0])) + 21'(apart20(whole[1]));
  end

endmodule
`default_nettype wire
