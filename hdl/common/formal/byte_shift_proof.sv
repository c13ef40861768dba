// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of byte_shift in both forms: byte i of the result is byte i + down_i of the input.
module byte_shift_proof #(
    parameter int unsigned Bytes = 8,
    parameter bit Multipliers = 1'b1,
    parameter int unsigned Each = 3
) (
    input wire                  clk_i,
    input wire                  rst_i,
    input wire                  load_i,
    input wire [Bytes+2:0][7:0] data_i,
    input wire [      1:0]      down_i,
    input wire                  move_i
);

  logic [Bytes-1:0][7:0] data_o;
  byte_shift #(
      .Bytes(Bytes),
      .Multipliers(Multipliers),
      .Each(Each)
  ) dut (
      .*
  );

  `RESET_FIRST

  // An observer's copy of the loaded bytes and of the result.
  logic loaded_q, moved_q;
  logic [Bytes+2:0][7:0] data_q;
  logic [1:0] down_q;
  logic [Bytes-1:0][7:0] result_q;
  always_ff @(posedge clk_i) begin
    if (load_i) begin
      loaded_q <= 1'b1;
      data_q   <= data_i;
      down_q   <= down_i;
    end
    if (move_i) begin
      moved_q <= loaded_q;
      for (int i = 0; i < int'(Bytes); i++) result_q[i] <= data_q[i+int'(down_q)];
    end
    if (rst_i) begin
      loaded_q <= 1'b0;
      moved_q  <= 1'b0;
    end
  end
  `ASSERT(moved_down, !moved_q || data_o == result_q, "a byte is not the one that came above it")
  for (genvar i = 0; i < 4; i++) begin : gen_down
    `COVER(moved_by, moved_q && $past(move_i && loaded_q && down_q == 2'(i)) && data_o != '0)
  end

  // For induction: these assertions exclude unreachable starting states.
  if (Multipliers) begin : gen_inside
    `ASSERT(times_right, !loaded_q || dut.gen_multipliers.times_q == 4'd8 >> down_q, "the factor is another")
    for (genvar bit_ = 0; bit_ < 8; bit_++) begin : gen_bit
      for (genvar i = 0; i < int'(Bytes) + 3; i++) begin : gen_byte
        localparam int unsigned Last = (Bytes - 1) / Each;
        localparam int unsigned Block = i / Each < Last ? i / Each : Last;
        `ASSERT(kept,
                !loaded_q || dut.gen_multipliers.gen_bit[bit_].gen_block[Block].bits_q[i-Block*Each] == data_q[i][bit_],
                "a bit is another")
      end
      for (genvar i = 0; i < int'(Bytes) + 3; i++) begin : gen_shared
        localparam int unsigned Block = i / Each;
        if (Block > 0 && i % Each < 3 && Block <= (Bytes - 1) / Each) begin : gen_below
          `ASSERT(kept,
                  !loaded_q ||
                  dut.gen_multipliers.gen_bit[bit_].gen_block[Block-1].bits_q[i-(Block-1)*Each] == data_q[i][bit_],
                  "a bit that two blocks have is another")
        end
      end
    end
  end else begin : gen_inside
    `ASSERT(kept, !loaded_q || (dut.gen_shift.data_q == data_q && dut.gen_shift.down_q == down_q), "it is another")
  end

endmodule
`default_nettype wire
