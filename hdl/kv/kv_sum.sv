// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Sums the 16-bit words of a beat: what internet checksums (RFC 1071) are made of.
///
/// Behaviour: word i is bytes 2 i (high) and 2 i + 1 (low) of the beat, in the order of the wire. The sum is not folded: 32
/// words of 16 bits need 21.
/// Latency: a beat is taken where enable_i is high, its sum is there two cycles later, for one cycle at least.
/// Reset: none.
/// Requirements: none.
module kv_sum (
    input wire clk_i,

    input  wire          enable_i,
    input  wire  [511:0] beat_i,
    output logic [ 20:0] sum_o
);

  logic [31:0][15:0] word;
  logic [ 7:0][17:0] quarter_q;

  always_comb begin
    for (int i = 0; i < 32; i++) word[i] = {beat_i[16*i+:8], beat_i[16*i+8+:8]};
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      for (int q = 0; q < 8; q++) begin
        quarter_q[q] <= (18'(word[4*q]) + 18'(word[4*q+1])) + (18'(word[4*q+2]) + 18'(word[4*q+3]));
      end
    end
    sum_o <= ((21'(quarter_q[0]) + 21'(quarter_q[1])) + (21'(quarter_q[2]) + 21'(quarter_q[3])))
           + ((21'(quarter_q[4]) + 21'(quarter_q[5])) + (21'(quarter_q[6]) + 21'(quarter_q[7])));
  end

endmodule
`default_nettype wire
