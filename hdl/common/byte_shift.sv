// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// Moves bytes down by 0 to 3 lanes with multipliers. With LUTs, every bit would cost one LUT, for a choice of four.
///
/// Behaviour: two registers, for the input (load_i) and for the result (move_i). Byte i of data_o is byte i + down_i of
/// data_i.
/// Latency: 2 cycles. Cuts: every path.
/// Reset: none.
/// Requirements: none.
///
/// Bit n of all bytes forms a number. Multiplied by 8, 4, 2 or 1, that number is shifted. The input and result
/// registers are inside the DSP blocks. A block of UltraScale+ takes 26 unsigned bits (UG579), three of which it shares
/// with the next block. Simulation uses registers and a plain shift; formal/byte_shift_proof.sv shows that both forms
/// agree.
module byte_shift #(
    /// Bytes of the result; data_i has 3 more.
    parameter int unsigned Bytes = 64,
    /// Use multipliers instead of a plain shift.
    parameter bit Multipliers = `SYNTHESISED,
    /// Bits of the result that one multiplier computes; at most 23.
    parameter int unsigned Each = 22
) (
    input  wire                   clk_i,
    input  wire                   load_i,
    input  wire  [Bytes+2:0][7:0] data_i,
    input  wire  [      1:0]      down_i,
    input  wire                   move_i,
    output logic [Bytes-1:0][7:0] data_o
);

  if (Each > 23 || Each < 1) begin : gen_check_each
    $fatal(1, "Each must be 1 to 23 in %m");
  end

  if (Multipliers) begin : gen_multipliers
    localparam int unsigned Blocks = (Bytes + Each - 1) / Each;
    logic [3:0] times_q;
    always_ff @(posedge clk_i) if (load_i) times_q <= 4'b1000 >> down_i;
    for (genvar bit_ = 0; bit_ < 8; bit_++) begin : gen_bit
      for (genvar block = 0; block < int'(Blocks); block++) begin : gen_block
        localparam int unsigned First = block * Each;
        localparam int unsigned Count = Bytes - First < Each ? Bytes - First : Each;
        logic [Count+2:0] bits, bits_q;
        logic [Count+6:0] product_q;
        for (genvar i = 0; i < int'(Count) + 3; i++) begin : gen_in
          assign bits[i] = data_i[First+i][bit_];
        end
        always_ff @(posedge clk_i) begin
          if (load_i) bits_q <= bits;
          if (move_i) product_q <= bits_q * times_q;
        end
        for (genvar i = 0; i < int'(Count); i++) begin : gen_out
          assign data_o[First+i][bit_] = product_q[i+3];
        end
        logic unused;
        assign unused = ^{product_q[2:0], product_q[Count+6:Count+3]};
      end
    end
  end else begin : gen_shift
    logic [8*Bytes+23:0] data_q;
    logic [1:0] down_q;
    always_ff @(posedge clk_i) begin
      if (load_i) begin
        data_q <= data_i;
        down_q <= down_i;
      end
      if (move_i) data_o <= (8 * Bytes)'(data_q >> {down_q, 3'd0});
    end
  end

endmodule
`default_nettype wire
